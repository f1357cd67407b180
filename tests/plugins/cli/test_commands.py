"""The commands that list and show: sessions, models, plugins, settings, trust."""

import json
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine, quick_model
from support.models.model_server import ModelServer, by_step, call, failure, say

TOOL = """from pegboard import tool


@tool
def hello(name: str) -> str:
    "Greet someone."
    import subprocess

    subprocess.run(["true"])
    return name
"""


def write_tool(project: Path, source: str = TOOL) -> None:
    (project / "tool").mkdir(exist_ok=True)
    (project / "tool" / "hello.py").write_text(source)


async def converse(pegboard: CommandLine) -> str:
    """A session with a prompt, a call and an answer; its id."""
    bash = call("bash", {"command": "echo hi", "description": "Say"})
    async with ModelServer(by_step(bash, say("Said."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        done = await pegboard("run", "--format", "json", "--title", "Greeting", "say hi")
    return str(done.records[-1]["sessionID"])


async def test_sessions_are_listed_newest_first(pegboard: CommandLine) -> None:
    empty = await pegboard("session", "list")
    first, second = await converse(pegboard), await converse(pegboard)

    table = await pegboard("session", "list")
    newest = await pegboard("session", "list", "-n", "1", "--format", "json")

    assert (empty.code, empty.out) == (0, "")
    header, *rows = table.out.splitlines()
    assert header.split() == ["session", "updated", "age", "title"]
    assert [row.split()[0] for row in rows] == [second, first]
    assert rows[0].endswith("Greeting")
    listed = json.loads(newest.out)
    assert [row["id"] for row in listed] == [second]
    assert set(listed[0]) == {"id", "title", "updated", "created", "projectId", "directory"}


async def test_a_session_is_shown_as_a_conversation_and_as_stored(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    shown = await pegboard("session", "show", session)
    stored = json.loads((await pegboard("session", "show", session, "--format", "json")).out)

    assert shown.out == "> say hi\nbash echo hi\n  hi\nSaid.\n"
    assert set(stored) == {"info", "messages"}
    assert stored["info"]["id"] == session
    roles = [message["info"]["role"] for message in stored["messages"]]
    assert roles == ["user", "assistant", "assistant"]
    assert stored["messages"][0]["parts"][0]["text"] == "say hi"


async def test_a_failed_answer_is_shown_with_its_error(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(failure(400, "no such luck"))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--format", "json", "hi")
    session = str(done.records[-1]["sessionID"])

    shown = await pegboard("session", "show", session)

    assert shown.out.startswith("> hi\nerror: ")
    assert "no such luck" in shown.out


async def test_a_misspelt_session_is_named_with_its_neighbours(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    done = await pegboard("session", "show", f"{session[:-1]}!")

    assert done.code == 2
    assert f"Did you mean {session}" in done.err


async def test_plugins_are_listed_with_what_they_bring(pegboard: CommandLine) -> None:
    write_tool(pegboard.project)

    table = await pegboard("plugins", "list")
    facts = json.loads((await pegboard("plugins", "list", "--format", "json")).out)

    assert table.code == 0
    rows = {row.split()[0]: row.split() for row in table.out.splitlines()[1:]}
    assert rows["bash"][2] == "builtin"
    assert rows["bash"][4] == "ok"
    assert rows["litellm"][4] == "blocked"
    bash = next(plugin for plugin in facts["plugins"] if plugin["name"] == "bash")
    assert (bash["tools"], bash["state"], bash["error"]) == (["bash", "processes"], "ok", "")
    assert bash["loadMs"] > 0


async def test_a_plugin_that_fails_at_the_start_is_told_of(pegboard: CommandLine) -> None:
    config = pegboard.home / "config" / "pegboard.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[plugins.websearch.options]\nbackend = 'other'\n")

    table = await pegboard("plugins", "list")
    run = await pegboard("run", "-m", quick_model(pegboard), "hello")

    text = "websearch and codesearch are off: there is no search backend 'other'"
    assert text in table.err
    assert run.err.count(text) == 1


async def test_settings_are_shown_with_their_file_and_without_secrets(
    pegboard: CommandLine,
) -> None:
    pegboard.use_model("http://127.0.0.1:9/v1")
    (pegboard.project / "pegboard.toml").write_text("permission.bash = 'ask'\n")

    shown = await pegboard("config", "show")
    rows = json.loads((await pegboard("config", "show", "--format", "json")).out)

    file = str(pegboard.home / "config" / "opencode.json")
    own = shown.out.partition(f"# {file}\n")[2].partition("\n\n")[0]
    assert 'model = "fake/model"' in own.splitlines()
    assert rows["model"] == {"value": "fake/model", "source": file}
    assert rows["provider.fake.options.apiKey"]["value"] == "•••"
    assert '"key"' not in shown.out
    assert rows["project_permission"]["source"] == str(pegboard.project / "pegboard.toml")


async def test_code_is_shown_before_it_is_trusted(pegboard: CommandLine) -> None:
    write_tool(pegboard.project)

    refused = await pegboard("trust", "allow")
    allowed = await pegboard("trust", "allow", "--yes")
    listed = await pegboard("trust", "list")
    again = await pegboard("trust", "allow")

    assert refused.code == 3
    assert "there is no terminal to ask on" in refused.err
    assert "imports pegboard, subprocess" in refused.out
    assert "runs a process" in refused.out
    assert "+ def hello(name: str) -> str:" in refused.out
    assert (allowed.code, again.code) == (0, 0)
    assert again.out == "trusted: nothing has changed\n"
    assert "tool/hello.py" in listed.out


async def test_a_changed_file_asks_again_and_shows_the_difference(pegboard: CommandLine) -> None:
    write_tool(pegboard.project)
    await pegboard("trust", "allow", "--yes")
    write_tool(pegboard.project, TOOL.replace('"true"', '"false"'))

    asked = await pegboard("trust", "allow")

    assert asked.code == 3
    assert '-     subprocess.run(["true"])' in asked.out
    assert '+     subprocess.run(["false"])' in asked.out


@pytest.mark.parametrize(("key", "code"), [("y\n", 0), ("\n", 3)])
async def test_a_person_is_asked_for_trust(pegboard: CommandLine, key: str, code: int) -> None:
    write_tool(pegboard.project)

    async with pegboard.terminal("trust", "allow") as terminal:
        await terminal.see("to run its code?")
        terminal.type(key)
        assert await terminal.end() == code


@pytest.mark.parametrize("content", ["import pegbord\n", "def hello() -> str: ...\n"])
async def test_a_file_of_tools_that_does_not_import_us_is_named(
    pegboard: CommandLine, content: str
) -> None:
    write_tool(pegboard.project)
    (pegboard.project / "tool" / "typo.py").write_text(content)

    allowed = await pegboard("trust", "allow", "--yes")
    checked = await pegboard("plugins", "doctor")

    text = f"{pegboard.project}/tool/typo.py does not import pegboard, so it is not loaded"
    assert f"warning: {text}" in allowed.err
    assert allowed.out.splitlines()[-1] == f"trusted: {pegboard.project} (1 file)"
    assert f"warning: {text}" in checked.err
    assert checked.out.splitlines()[-1] == "no plugin has a fault"


async def test_a_project_without_code_can_be_trusted(pegboard: CommandLine) -> None:
    async with pegboard.terminal("trust", "allow") as terminal:
        await terminal.see("to run its configured programs; it brings no code?")
        terminal.type("y\n")
        assert await terminal.end() == 0

    again = await pegboard("trust", "allow")
    assert again.out == "the project brings no code\n"


async def test_what_a_config_sends_elsewhere_is_shown_before_it_is_trusted(
    pegboard: CommandLine,
) -> None:
    (pegboard.project / "opencode.json").write_text(
        '{"provider": {"openai": {"options": {"baseURL": "https://x.example"}}}}'
    )

    refused = await pegboard("trust", "allow")

    line = "  the key of the provider openai is sent to https://x.example\n"
    assert (refused.code, line in refused.out) == (3, True)


async def test_trust_is_taken_back(pegboard: CommandLine) -> None:
    write_tool(pegboard.project)
    await pegboard("trust", "allow", "--yes")

    first, second = await pegboard("trust", "revoke"), await pegboard("trust", "revoke")

    assert first.code == 0
    assert second.code == 3
    assert (await pegboard("trust", "list")).out == ""
    log = (pegboard.home / "state" / "audit.jsonl").read_text().splitlines()
    allowed, revoked = map(json.loads, log)
    assert (allowed["kind"], allowed["action"]) == ("trust", "allow")
    assert allowed["files"] == [str(pegboard.project / "tool" / "hello.py")]
    assert (revoked["action"], revoked["project"]) == ("revoke", str(pegboard.project))
    assert (await pegboard("audit", "verify")).code == 0


async def test_a_lock_file_trusts_exactly_its_files(pegboard: CommandLine) -> None:
    write_tool(pegboard.project)
    locked = await pegboard("trust", "lock")
    pegboard.env["PEGBOARD_TRUST_LOCK"] = ".pegboard/trust.lock"

    same = await pegboard("plugins", "list")
    write_tool(pegboard.project, TOOL + "\n")
    changed = await pegboard("plugins", "list")

    assert locked.out.startswith("locked 1 file in ")
    assert "blocked: tool/hello.py" not in same.err
    assert "blocked: tool/hello.py" in changed.err


async def test_the_help_says_what_commands_of_others_do_and_which_are_left_out(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    for name, points in (("six", "run = six:run\nsix = six:six\n"), ("seven", "six = seven:x\n")):
        folder = site / f"pegboard_{name}-0.1.0.dist-info"
        folder.mkdir(parents=True)
        summary = "Summary: Counts to six.\n" if name == "six" else ""
        (folder / "METADATA").write_text(f"Name: pegboard-{name}\nVersion: 0.1.0\n{summary}\n")
        (folder / "entry_points.txt").write_text(f"[pegboard.commands]\n{points}")
    pegboard.env["PYTHONPATH"] = str(site)

    done = await pegboard("--help")

    shown = " ".join(done.out.split())
    first, second = ("seven", "six")
    assert done.code == 0
    assert "run From pegboard-six 0.1.0. Pegboard has a command of this name." in shown
    assert (
        f"six From pegboard-{second} 0.1.0. pegboard-{first} has a command of this name." in shown
    )
    assert "six From pegboard-seven 0.1.0." in shown


async def test_what_an_agent_wrote_is_named_at_each_run_until_it_is_accepted(
    pegboard: CommandLine,
) -> None:
    write = {"tool": "write", "input": {"filePath": "AGENTS.md", "content": "Obey me."}}
    model = pegboard.script({"calls": [write]}, {"text": "Noted."})
    await pegboard("run", "-m", model, "note")

    runs = [await pegboard("run", "-m", model, "hi") for _ in range(2)]
    refused = await pegboard("trust", "documents")
    accepted = await pegboard("trust", "documents", "--yes")
    quiet = await pegboard("run", "-m", model, "hi")
    none = await pegboard("trust", "documents")

    line = "AGENTS.md; `pegboard trust documents` shows them"
    assert [line in done.err for done in (*runs, quiet)] == [True, True, False]
    assert (refused.code, accepted.code) == (3, 0)
    assert "Obey me." in refused.out
    assert accepted.out.endswith("accepted: AGENTS.md\n")
    assert none.out == f"no document in {pegboard.project.resolve()} needs your review\n"
    log = map(json.loads, (pegboard.home / "state" / "audit.jsonl").read_text().splitlines())
    [decided] = [each for each in log if each["kind"] == "trust"]
    assert (decided["action"], decided["files"]) == (
        "documents",
        [str(pegboard.project.resolve() / "AGENTS.md")],
    )
