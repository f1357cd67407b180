"""Effects of hooks on turns, prompts, results and sessions, in runs of a scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import tool
from pegboard.errors import PromptRefusedError
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from support.plugins.hook_house import CODEX, GEMINI, SHELL, House, Json, becomes, own

MISSING = {"tool": "read", "input": {"filePath": "none.txt"}}
MOST_TURNS = 400
DONE = {"steps": [{"text": "Done."}]}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _blocking(event: str) -> Json:
    """Return an answer with which a turn goes on."""
    return {"decision": "block", "reason": f"go on after {event}"}


async def test_a_message_for_the_user_is_a_warning(house: House) -> None:
    answer = {"systemMessage": "the tests are slow today", "suppressOutput": True}
    house.hook("PreToolUse", house.saying(answer))
    await house.run(SHELL)

    assert house.ran
    assert house.warnings == ["the tests are slow today"]


async def test_a_denied_request_can_end_the_turn(house: House) -> None:
    decision = {"behavior": "deny", "message": "no", "interrupt": True}
    house.hook("PermissionRequest", house.saying(own("PermissionRequest", decision=decision)))
    await house.run(SHELL, SHELL, config={"permission": {"*": "allow", "bash": "ask"}})

    calls = [part for turn in house.turns for part in turn.parts if isinstance(part, ToolPart)]
    assert len(calls) == 1


async def test_a_program_of_the_user_hears_of_a_rejected_request(house: House) -> None:
    house.hook("Notification", house.saying(""))
    file = json.loads((house.home / ".claude/settings.json").read_text())
    told = house.home / "told.json"
    file["hooks"]["PermissionDenied"] = [
        {"hooks": [{"type": "command", "command": f"cat > {told}"}]}
    ]
    (house.home / ".claude/settings.json").write_text(json.dumps(file))
    asks = {"permission": {"*": "allow", "bash": "ask"}}
    await house.run_asked(asks, "reject", then=lambda: told.exists() and told.read_text())

    assert json.loads(told.read_text())["hook_event_name"] == "PermissionDenied"


async def test_the_output_of_a_tool_of_a_server_can_be_replaced(house: House) -> None:
    @tool(requires=False, source="git")
    async def git_status() -> str:
        """Return the status."""
        return "dirty"

    answer = own("PostToolUse", updatedMCPToolOutput="clean")
    house.hook("PostToolUse", house.saying(answer), matcher="mcp__git__status|Bash")
    await house.run({"tool": "git_status", "input": {}}, tools=[git_status])
    of_server = house.ended
    await house.run(SHELL)

    assert isinstance(of_server, Completed)
    assert of_server.output == "clean"
    assert isinstance(house.ended, Completed)
    assert house.ended.output != "clean"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (own("PostToolUseFailure", additionalContext="look in docs"), 0),
        ({"decision": "block", "reason": "look in docs"}, 0),
        (">&2 look in docs", 2),
    ],
)
async def test_a_hook_says_more_about_a_call_that_failed(
    house: House, answer: Json | str, code: int
) -> None:
    house.hook("PostToolUseFailure", house.saying(answer, code=code))
    await house.run(MISSING)

    assert isinstance(house.ended, Failed)
    assert house.ended.error.endswith("look in docs")
    assert house.given["tool_name"] == "Read"
    assert "none.txt" in house.given["error"]


async def test_a_call_that_a_hook_has_stopped_has_not_failed(house: House) -> None:
    given = house.home / "failed.json"
    house.write(house.home / ".claude/settings.json", "PreToolUse", "echo no >&2; exit 2")
    house.write(house.home / CODEX, "PostToolUseFailure", f"cat > {given}")
    await house.run(SHELL)

    assert not house.ran
    assert not given.exists()


async def test_a_hook_adds_to_the_calls_of_a_step(house: House) -> None:
    house.hook("PostToolBatch", house.saying(own("PostToolBatch", additionalContext="all green")))
    scripts = [{"steps": [{"calls": [SHELL, MISSING]}, {"text": "{{result.1}}"}]}]
    async with house.played(scripts) as app:
        answer = await app.prompt(await app.create_session(), "Do it")

    assert answer.text.endswith("all green")
    assert [each["tool_name"] for each in house.given["tool_calls"]] == ["Bash", "Read"]


@pytest.mark.parametrize(
    ("answer", "code"), [({"decision": "block"}, 0), ({"continue": False}, 0), (">&2 no", 2)]
)
async def test_a_hook_ends_the_turn_after_the_calls_of_a_step(
    house: House, answer: Json | str, code: int
) -> None:
    house.hook("PostToolBatch", house.saying(answer, code=code))
    await house.run(SHELL, SHELL)

    calls = [part for turn in house.turns for part in turn.parts if isinstance(part, ToolPart)]
    assert len(calls) == 1


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
async def test_a_hook_names_the_session(house: House, event: str) -> None:
    house.hook(event, house.saying(own(event, sessionTitle="Fix  the door")))
    async with house.played([DONE]) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        title = (await app.session(session.id)).title

    assert title == "Fix the door"


def _command(house: House) -> None:
    file = house.project / ".opencode" / "command" / "review.md"
    file.parent.mkdir(parents=True)
    file.write_text("Review $ARGUMENTS.")


async def test_a_hook_adds_to_a_slash_command(house: House) -> None:
    _command(house)
    answer = own("UserPromptExpansion", additionalContext="be kind")
    house.hook("UserPromptExpansion", house.saying(answer), matcher="review")
    async with house.played([DONE], trust=True) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="review", arguments="a.py"))
        first, *_ = await app.list_turns(session.id)

    assert "be kind" in first.text
    assert house.given["command_name"] == "review"
    assert house.given["prompt"] == "Review a.py."


async def test_a_hook_refuses_a_slash_command(house: House) -> None:
    _command(house)
    house.hook("UserPromptExpansion", "echo not now >&2; exit 2")
    async with house.played([DONE], trust=True) as app:
        session = await app.create_session()
        with pytest.raises(PromptRefusedError, match="not now"):
            await run_command(app, session.id, CommandOrder(name="review", arguments="a.py"))


async def test_a_session_starts_again_after_a_summary(house: House) -> None:
    sources = house.home / "sources"
    command = f"cat >> {sources}; echo ' ' >> {sources}"
    house.hook("SessionStart", command)
    async with house.played([DONE]) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await app.summarize(session.id)
        await app.prompt(session, "Do it")
        await app.prompt(session, "Do it")

    given = [json.loads(line) for line in sources.read_text().splitlines() if line.strip()]
    assert [each["source"] for each in given] == ["startup", "compact"]


async def test_what_a_session_s_start_exports_is_in_the_environment_of_tools(
    house: House,
) -> None:
    inside = house.project / "bin"
    lines = (
        "export MODE='$HOME is literal'",
        'export PLACE="$HOME/x"',
        f"export PATH={inside}:bin:/opt/outside:$PATH",
        "EVIL=1",
    )
    (house.home / "lines").write_text("\n".join(lines))
    house.hook("SessionStart", f'cat {house.home}/lines >> "$CLAUDE_ENV_FILE"')
    shell = {"command": 'printf \'%s\\n\' "$MODE" "$PLACE" "$PATH" "x$EVIL"', "description": "x"}
    await house.run({"tool": "bash", "input": shell})

    assert isinstance(house.ended, Completed)
    mode, place, path, evil, *_ = house.ended.output.splitlines()
    assert mode == "$HOME is literal"
    assert place == f"{house.home}/x"
    assert path.startswith("/opt/outside:")
    assert evil == "x"


def _ending(event: str) -> list[Json]:
    """Return scripts in which a turn that goes on says so."""
    return [
        {"when": {"prompt": f"go on after {event}"}, "steps": [{"text": "Went on."}]},
        DONE,
    ]


@pytest.mark.parametrize(
    ("at", "event", "answer", "code"),
    [
        (".claude/settings.json", "Stop", _blocking("Stop"), 0),
        (".claude/settings.json", "Stop", own("Stop", additionalContext="go on after Stop"), 0),
        (".claude/settings.json", "Stop", ">&2 go on after Stop", 2),
        (CODEX, "Stop", _blocking("Stop"), 0),
        (GEMINI, "AfterAgent", _blocking("AfterAgent"), 0),
    ],
)
async def test_a_hook_has_the_turn_go_on(
    house: House, at: str, event: str, answer: Json | str, code: int
) -> None:
    once = house.home / "once"
    command = house.saying(answer, code=code)
    house.hook(event, f"test -e {once} && exit 0; touch {once}; {command}", at=at)
    async with house.played(_ending(event)) as app:
        answered = await app.prompt(await app.create_session(), "Do it")

    assert answered.text == "Went on."


async def test_a_hook_that_lets_a_turn_go_on_is_told_so(house: House) -> None:
    given = house.home / "all.jsonl"
    blocking = "{ echo go on after Stop >&2; exit 2; }"
    house.hook("Stop", f"cat >> {given}; test $(wc -l < {given}) -gt 1 || {blocking}")
    async with house.played(_ending("Stop")) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await app.prompt(session, "Do it")

    inputs = [json.loads(line) for line in given.read_text().splitlines()]
    assert [each["stop_hook_active"] for each in inputs] == [False, True, False]
    assert [each["last_assistant_message"] for each in inputs] == ["Done.", "Went on.", "Done."]


async def test_of_two_hooks_the_one_that_ends_the_turn_wins(house: House) -> None:
    house.hook("Stop", "echo go on after Stop >&2; exit 2")
    house.write(house.home / CODEX, "Stop", "echo '{\"continue\": false}'")
    async with house.played(_ending("Stop")) as app:
        answered = await app.prompt(await app.create_session(), "Do it")

    assert answered.text == "Done."


async def test_a_subagent_goes_on_by_a_hook_of_its_own(house: House) -> None:
    given = house.home / "all.jsonl"
    house.hook(
        "SubagentStop",
        f"cat >> {given}; test $(wc -l < {given}) -gt 1 || "
        "{ echo go on after SubagentStop >&2; exit 2; }",
        matcher="general",
    )
    task = {"description": "d", "prompt": "SUB", "subagent_type": "general"}
    scripts = [
        {"when": {"prompt": "go on after SubagentStop"}, "steps": [{"text": "Went on."}]},
        {"when": {"prompt": "SUB"}, "steps": [{"text": "Sub."}]},
        {"steps": [{"calls": [{"tool": "task", "input": task}]}, {"text": "{{result.0}}"}]},
    ]
    async with house.played(scripts) as app:
        answered = await app.prompt(await app.create_session(), "Do it")

    inputs = [json.loads(line) for line in given.read_text().splitlines()]
    assert "Went on." in answered.text
    assert [each["stop_hook_active"] for each in inputs] == [False, True]
    assert {each["agent_type"] for each in inputs} == {"general"}


async def test_a_turn_that_fails_or_is_stopped_is_told(house: House) -> None:
    failed, stopped = house.home / "failed.json", house.home / "stopped.json"
    house.hook("StopFailure", f"cat > {failed}.new; mv {failed}.new {failed}")
    house.write(house.home / CODEX, "Interrupt", f"cat > {stopped}.new; mv {stopped}.new {stopped}")
    slow = {"tool": "bash", "input": {"command": "touch started; sleep 60", "description": "x"}}
    scripts = [
        {"when": {"prompt": "slow"}, "steps": [{"calls": [slow]}, {"text": "."}]},
        {"steps": [{"fault": {"status": 400, "message": "broken"}}]},
    ]
    async with house.played(scripts) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await becomes(failed.exists)
        turn = asyncio.ensure_future(app.prompt(session, "slow"))
        await becomes((house.project / "started").exists)
        await app.abort(session.id)
        await asyncio.gather(turn, return_exceptions=True)
        await becomes(stopped.exists)

    assert "broken" in json.loads(failed.read_text())["error"]
    assert json.loads(stopped.read_text())["hook_event_name"] == "Interrupt"


async def test_a_summary_is_told_when_it_is_there(house: House) -> None:
    told = house.home / "told.json"
    house.hook("PostCompact", f"cat > {told}.new; mv {told}.new {told}", matcher="manual")
    scripts = [{"when": {"tools": False}, "steps": [{"text": "All of it."}]}, DONE]
    async with house.played(scripts) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await app.summarize(session.id)
        await becomes(told.exists)

    given = json.loads(told.read_text())
    assert (given["trigger"], given["compact_summary"]) == ("manual", "All of it.")


async def test_a_hook_that_reads_the_transcript_finds_one(house: House) -> None:
    script = house.home / "last.sh"
    script.write_text(
        'path=$(sed \'s/.*"transcript_path": *"\\([^"]*\\)".*/\\1/\')\n'
        f'cp "$path" {house.home}/copy.jsonl\n'
    )
    house.hook("Stop", f"sh {script}")
    await house.run(SHELL)

    lines = [json.loads(each) for each in (house.home / "copy.jsonl").read_text().splitlines()]
    kinds = [(each["type"], each["message"]["content"][0]["type"]) for each in lines]
    assert kinds == [
        ("user", "text"),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
        ("assistant", "text"),
    ]
    assert lines[1]["message"]["content"][0]["name"] == "Bash"


async def test_the_text_of_a_hook_that_wakes_goes_with_the_next_prompt(house: House) -> None:
    given = house.home / "ended"
    command = f"sleep 0.1; touch {given}; echo the build broke >&2; exit 2"
    house.hook("PostToolUse", command, asyncRewake=True)
    scripts = [
        {"when": {"prompt": "again"}, **DONE},
        {"steps": [{"calls": [SHELL]}, {"text": "Done."}]},
    ]
    async with house.played(scripts) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        await becomes(given.exists)
        texts = ""
        while "the build broke" not in texts:  # the process may not have been reaped yet
            await app.prompt(session, "again")
            turns = await app.list_turns(session.id)
            texts = " ".join(turn.text for turn in turns)
            assert len(turns) < MOST_TURNS

    assert texts.count("the build broke") == 1


async def test_hooks_of_gemini_can_run_one_after_the_other(house: House) -> None:
    order = house.home / "order"
    hooks = [
        {"type": "command", "command": f"sleep 0.2; echo first >> {order}"},
        {"type": "command", "command": f"echo second >> {order}", "name": "fast"},
        {"type": "command", "command": f"echo off >> {order}", "name": "off"},
    ]
    file = house.home / GEMINI
    file.parent.mkdir()
    groups = {"BeforeTool": [{"sequential": True, "hooks": hooks}]}
    file.write_text(json.dumps({"hooks": groups, "hooksConfig": {"disabled": ["off"]}}))
    await house.run(SHELL)

    assert order.read_text().split() == ["first", "second"]


async def test_a_failure_of_any_hook_blocks_where_the_user_says_so(house: House) -> None:
    house.hook("PreToolUse", "exit 1")
    config: dict[str, Any] = {"plugins": {"commandhooks": {"options": {"failure": "block"}}}}
    await house.run(SHELL, config=config)

    assert not house.ran


async def test_an_argument_that_a_tool_does_not_have_is_dropped_and_named(house: House) -> None:
    answer = own("PreToolUse", updatedInput={"command": "echo new > new.txt", "colour": "red"})
    house.hook("PreToolUse", house.saying(answer))
    await house.run(SHELL)

    assert (house.project / "new.txt").exists()
    assert [text for text in house.warnings if "the argument colour of bash" in text] != []
