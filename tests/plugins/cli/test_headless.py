"""Options of `pegboard run` for scripts: limits, settings, files and the result of one run."""

import json
import re

import pytest

from pegboard.cli import Exit
from plugins.cli.commands import CommandLine, Done
from support.models.model_server import Answer, ModelServer, by_step, call, say, text

FRAM = '{"year": 1892}'
YEAR = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}


def bash(command: str) -> Answer:
    return call("bash", {"command": command, "description": "Run"})


async def run(
    pegboard: CommandLine, *words: str, answers: tuple[Answer, ...] = (say("Done."),)
) -> tuple[Done, list[str]]:
    """Run one prompt; return its end and the system prompts of its requests with tools."""
    async with ModelServer(by_step(*answers)) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        done = await pegboard("run", *words, "hi")
    return done, [str(body["messages"][0]) for body in server.requests if body.get("tools")]


@pytest.mark.parametrize("option", ["--max-steps", "--max-turns"])
async def test_a_run_stops_after_its_most_steps(pegboard: CommandLine, option: str) -> None:
    answers = (bash("echo one"), bash("echo two"), say("Done."))
    done, requests = await run(pegboard, option, "2", "--budget-usd", "9999", answers=answers)

    assert (done.code, len(requests)) == (Exit.BUDGET, 2)
    assert "no more steps than 2 for this run" in done.err
    assert "`--max-steps`" in done.err


@pytest.mark.parametrize("option", ["--append-system", "--append-system-prompt"])
async def test_a_text_or_a_file_is_added_to_the_system_prompt(
    pegboard: CommandLine, option: str
) -> None:
    (pegboard.project / "tone.txt").write_text("Answer in Norwegian.\n")
    given, written = await run(pegboard, option, "Answer in Danish.")
    file, read = await run(pegboard, f"{option}=@tone.txt")

    assert (given.code, file.code) == (0, 0), given.err + file.err
    assert ("Answer in Danish." in written[0], "Norwegian" in written[0]) == (True, False)
    assert "Answer in Norwegian." in read[0]


@pytest.mark.parametrize("option", ["--set", "--config"])
async def test_settings_of_the_line_win_over_files_for_this_run(
    pegboard: CommandLine, option: str
) -> None:
    answers = (bash("echo a=b"), say("Done."))
    rule = 'permission.bash."echo a=*"=deny'
    denied, _ = await run(pegboard, option, rule, option, "agent.build.steps=5", answers=answers)
    plain, _ = await run(pegboard, answers=answers)

    assert "your config does not allow" in denied.err
    assert (plain.code, "Blocked" in plain.err) == (0, False)


async def test_options_with_a_name_of_their_own_win_over_settings(pegboard: CommandLine) -> None:
    answers = (bash("echo one"), say("Done."))
    words = ("--set", "budget.run.steps=1", "--max-steps", "2", "--set", "budget.run.usd=9999")
    done, requests = await run(pegboard, *words, answers=answers)

    assert (done.code, len(requests)) == (0, 2), done.err


@pytest.mark.parametrize("setting", ["modle=x", "budget.run.steps=-1", "plugins.skil.enabled=2"])
async def test_a_setting_that_cannot_be_is_refused_with_its_key(
    pegboard: CommandLine, setting: str
) -> None:
    done, requests = await run(pegboard, "--set", setting)

    assert (done.code, requests) == (Exit.CONFIG, [])
    assert done.err.startswith(f"error: --set: {setting.partition('=')[0]}: ")
    assert "overrides" not in done.err


async def test_a_bare_run_has_no_instructions_skills_foreign_files_or_code(
    pegboard: CommandLine,
) -> None:
    project = pegboard.project
    (project / "AGENTS.md").write_text("Say ahoy.")
    (project / ".claude" / "skills" / "knots").mkdir(parents=True)
    skill = "---\nname: knots\ndescription: Tie knots\n---\nTie."
    (project / ".claude" / "skills" / "knots" / "SKILL.md").write_text(skill)
    hook = {"type": "command", "command": "touch ran"}
    settings = {
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
        "permissions": {"deny": ["Bash(echo:*)"]},
    }
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    (project / ".pegboard" / "tool").mkdir(parents=True)
    tool = 'def ping() -> str:\n    """Ping."""\n    return "pong"\n'
    (project / ".pegboard" / "tool" / "ping.py").write_text(tool)
    assert (await pegboard("trust", "allow", "--yes")).code == 0

    answers = (bash("echo one"), say("Done."))
    whole, with_all = await run(pegboard, answers=answers)
    assert (project / "ran").exists(), whole.err
    (project / "ran").unlink()
    bare, alone = await run(pegboard, "--bare", answers=answers)
    but, with_files = await run(pegboard, "--bare", "--set", "plugins.instructions.enabled=true")

    assert ("Say ahoy." in with_all[0], "Blocked" in whole.err) == (True, True)
    assert ("Say ahoy." in alone[0], "Blocked" in bare.err) == (False, False)
    assert (bare.code, (project / "ran").exists()) == (0, False)
    assert "Say ahoy." in with_files[0], but.err


@pytest.mark.parametrize("option", ["-o", "--output", "--output-last-message"])
async def test_the_last_answer_is_written_to_a_file_as_well(
    pegboard: CommandLine, option: str
) -> None:
    answers = ([*text("First."), *bash("echo one")], say("Done."))
    file = pegboard.project / "answer.txt"
    file.write_text("of yesterday")
    done, _ = await run(pegboard, option, "answer.txt", answers=answers)

    assert (done.code, file.read_text()) == (0, "Done.\n"), done.err
    assert done.out.endswith("Done.\n")


async def test_a_value_is_written_and_a_failed_run_leaves_the_file_empty(
    pegboard: CommandLine,
) -> None:
    file = pegboard.project / "answer.json"
    given = ("--json-schema", json.dumps(YEAR), "-o", "answer.json")
    done, _ = await run(pegboard, *given, answers=(say(FRAM),))
    written = file.read_text()
    failed, _ = await run(pegboard, "-m", "fake/none", "-o", "answer.json")

    assert (done.code, json.loads(written)) == (0, json.loads(FRAM))
    assert (failed.code, file.read_text()) == (Exit.PROVIDER, "")


async def test_the_result_is_the_one_record_on_standard_output(pegboard: CommandLine) -> None:
    given = ("--format", "result", "--json-schema", json.dumps(YEAR))
    done, _ = await run(pegboard, *given, answers=(bash("echo one"), say(FRAM)))
    failed, _ = await run(pegboard, "--format", "result", "-m", "fake/none")

    (record,) = done.records
    assert (done.code, record["type"], record["outcome"]) == (0, "result", "done")
    assert (record["structured"], record["text"]) == (json.loads(FRAM), FRAM)
    assert re.fullmatch(r"ses_\w+", record["sessionID"])
    assert "bash echo one" in done.err
    (record,) = failed.records
    assert (failed.code, record["outcome"]) == (Exit.PROVIDER, "provider")
    assert "fake/none" in record["error"]["data"]["message"]


@pytest.mark.parametrize("form", [("-r", "{}"), ("-r{}",), ("-s", "{}")])
async def test_names_of_other_agents_for_sessions_have_their_effect(
    pegboard: CommandLine, form: tuple[str, ...]
) -> None:
    first, _ = await run(pegboard, "--format", "result")
    session = first.records[0]["sessionID"]
    words = [each.format(session) for each in form]
    same, _ = await run(pegboard, *words, "--format", "result")
    copy, _ = await run(pegboard, *words, "--fork-session", "--ephemeral", "--format", "result")

    assert same.records[0]["sessionID"] == session
    assert copy.records[0]["sessionID"] != session
    listed = await pegboard("session", "list", "--all", "--format", "json")
    assert [each["id"] for each in json.loads(listed.out)] == [session]
