"""`pegboard tool`, as a user runs it."""

import json
import shutil
from importlib.metadata import distribution
from typing import Any

import pytest

from plugins.cli.commands import CommandLine, Done
from support.models.model_server import ModelServer, by_step, say

TOOL = '''
from pegboard import Attachment, PermissionContext, ToolResult, tool


async def may_photograph(context: PermissionContext, of: str) -> None:
    await context.require("photo", [of])


@tool(requires=may_photograph)
async def photo(of: str, times: int = 1) -> ToolResult:
    """Take a picture.

    Args:
        of: what.
        times: how often.
    """
    picture = Attachment.of_bytes(b"PNG", "image/png")
    return ToolResult(output=f"{of} x {times}", attachments=(picture,) * times)


@tool
async def broken() -> str:
    """Fail."""
    raise KeyError("lens")
'''


@pytest.fixture
def photographing(pegboard: CommandLine) -> CommandLine:
    """The command line of a user who has a tool of their own."""
    folder = pegboard.home / "config" / "tool"
    folder.mkdir(parents=True)
    (folder / "photo.py").write_text(TOOL)
    return pegboard


def said(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.out)
    return found


async def sessions(pegboard: CommandLine) -> list[Any]:
    found: list[Any] = json.loads((await pegboard("session", "list", "--format", "json")).out)
    return found


async def test_a_call_gives_the_tool_s_result_and_leaves_no_session(
    photographing: CommandLine,
) -> None:
    done = await photographing("tool", "call", "photo", '{"of": "a ship", "times": "2"}')

    picture = {"mime": "image/png", "filename": None, "url": "data:image/png;base64,UE5H"}
    found = said(done)
    assert (done.code, found["tool"], found["output"]) == (0, "photo", "a ship x 2")
    assert found["attachments"] == [picture, picture]
    assert await sessions(photographing) == []


async def test_a_call_s_session_is_kept_when_that_is_asked_for(photographing: CommandLine) -> None:
    done = await photographing("tool", "call", "photo", '{"of": "a"}', "--keep")

    assert [each["id"] for each in await sessions(photographing)] == [said(done)["session"]]


async def test_a_call_is_shown_as_a_model_reads_it(photographing: CommandLine) -> None:
    done = await photographing("tool", "call", "photo", '{"of": "a"}', "--format", "text")

    assert (done.code, done.out) == (0, "a x 1\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("photo", '{"off": "a"}'), "- off: is not an argument of this tool"),
        (("photo", "[1]"), "the arguments must be a JSON object"),
        (("photo", "{"), "the arguments are not JSON"),
        (("foto", "{}"), "there is no tool 'foto'; did you mean photo"),
    ],
)
async def test_wrong_arguments_end_with_2(
    photographing: CommandLine, arguments: tuple[str, str], text: str
) -> None:
    done = await photographing("tool", "call", *arguments)

    assert (done.code, done.out) == (2, "")
    assert text in done.err


@pytest.mark.parametrize("action", ["ask", "deny"])
async def test_a_call_that_is_denied_ends_with_5(photographing: CommandLine, action: str) -> None:
    photographing.configure(permission={"photo": {"secret": action}})

    done = await photographing("tool", "call", "photo", '{"of": "secret"}')

    assert (done.code, said(done)["denied"]) == (5, True)
    assert await sessions(photographing) == []


async def test_a_tool_that_is_denied_altogether_ends_with_5(photographing: CommandLine) -> None:
    photographing.configure(permission={"photo": "deny"})

    done = await photographing("tool", "call", "photo", '{"of": "a"}')

    assert (done.code, said(done)["denied"]) == (5, True)


async def test_a_tool_that_fails_ends_with_1(photographing: CommandLine) -> None:
    done = await photographing("tool", "call", "photo_broken")

    assert (done.code, said(done)["denied"]) == (1, False)
    assert "KeyError: 'lens'" in said(done)["error"]


async def test_a_dry_run_tells_arguments_requests_and_verdict_and_runs_nothing(
    pegboard: CommandLine,
) -> None:
    pegboard.configure(permission={"bash": {"*": "ask", "echo *": "allow", "rm *": "deny"}})
    told: dict[str, tuple[int, str, list[str]]] = {}
    for command in ("echo a > out.txt", "rm out.txt", "date"):
        arguments = json.dumps({"command": command, "description": "try"})
        done = await pegboard("tool", "call", "bash", arguments, "--dry-run")
        found = said(done)
        told[command] = (done.code, found["verdict"], found["requests"][-1]["patterns"])
        assert found["arguments"]["command"] == command

    assert told == {
        "echo a > out.txt": (0, "allow", ["echo a"]),
        "rm out.txt": (5, "deny", ["rm out.txt"]),
        "date": (5, "ask", ["date"]),
    }
    assert not (pegboard.project / "out.txt").exists()


async def test_a_tool_of_a_project_that_is_not_trusted_is_told_with_what_would_have_it(
    pegboard: CommandLine,
) -> None:
    path = pegboard.project / "tool" / "hello.py"
    path.parent.mkdir(parents=True)
    path.write_text("from pegboard import tool\n@tool\ndef hello() -> str:\n    'Hi.'\n")

    done = await pegboard("tool", "call", "hello")

    assert done.code == 2
    assert "this project's own are there after `pegboard trust allow`" in done.err


async def test_a_tool_that_is_not_there_is_told_with_the_plugins_that_were_left_out(
    photographing: CommandLine,
) -> None:
    path = photographing.home / "config" / "tool" / "photo.py"
    path.write_text(f"import no_such_module\n{TOOL}")

    done = await photographing("tool", "call", "photo", '{"of": "a ship"}')

    assert done.code == 2
    assert "there is no tool 'photo'" in done.err
    assert "left out: tool/photo.py: line 1: No module named 'no_such_module'" in done.err


async def test_no_model_is_asked_for_a_call(photographing: CommandLine) -> None:
    async with ModelServer(by_step(say("never"))) as server:
        photographing.use_model(server.url)
        done = await photographing("tool", "call", "photo", '{"of": "a"}')

    assert (done.code, server.requests) == (0, [])


async def test_who_sits_at_the_terminal_is_asked(photographing: CommandLine) -> None:
    photographing.configure(permission={"photo": "ask"})

    async with photographing.terminal("tool", "call", "photo", '{"of": "a"}') as terminal:
        await terminal.see("Allow?")
        terminal.type("y\n")
        await terminal.see('"output": "a x 1"')
        assert await terminal.end() == 0


async def test_tools_are_listed_with_their_plugins(photographing: CommandLine) -> None:
    table = await photographing("tool", "list")
    rows = json.loads((await photographing("tool", "list", "--format", "json")).out)

    assert {"photo", "bash"} <= {each["tool"] for each in rows}
    (row,) = [each for each in rows if each["tool"] == "photo"]
    assert (row["plugin"], row["effect"], row["description"]) == (
        "tool/photo.py",
        "runs",
        "Take a picture.",
    )
    assert any(line.startswith("photo ") for line in table.out.splitlines())


async def test_the_list_says_how_a_model_gets_at_a_tool_and_by_which_setting(
    photographing: CommandLine,
) -> None:
    photographing.configure(exposure={"web*": "hidden", "webfetch": "deferred"})

    rows = json.loads((await photographing("tool", "list", "--format", "json")).out)

    found = {each["tool"]: each["exposure"] for each in rows}
    assert found["photo"] == "automatic"
    assert found["bash"] == "direct"
    assert found["webfetch"] == "deferred (exposure.webfetch)"


async def test_a_schema_is_what_a_model_reads(photographing: CommandLine) -> None:
    found = said(await photographing("tool", "schema", "photo", "--format", "json"))
    text = await photographing("tool", "schema", "photo")

    assert found["parameters"]["required"] == ["of"]
    assert found["parameters"]["properties"]["of"]["description"] == "what."
    assert "Take a picture." in text.out


async def test_a_schema_lists_the_skill_of_a_real_wheel(pegboard: CommandLine) -> None:
    wheel = distribution("fastapi")
    skills = [each for each in wheel.files or () if each.match("fastapi/.agents/skills/*/SKILL.md")]
    if not skills:
        pytest.skip("the installed fastapi has no skill")
    site = pegboard.project / ".venv" / "lib" / "python3" / "site-packages"
    for each in (*skills, *(file for file in wheel.files or () if file.match("*.dist-info/*"))):
        (site / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(each.locate(), site / each)
    (pegboard.project / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    line = f"- fastapi (from library fastapi {wheel.version}): "

    without = await pegboard("tool", "schema", "skill")
    (pegboard.project / "requirements.txt").write_text("fastapi\n")
    listed = await pegboard("tool", "schema", "skill")
    with (site / skills[0]).open("a") as file:
        file.write(" ")
    changed = await pegboard("tool", "schema", "skill")

    assert [line in each.out for each in (without, listed, changed)] == [False, True, False]
    assert len(listed.out.encode()) - len(without.out.encode()) <= 1000


async def test_a_schema_has_what_plugins_add_to_it_for_a_model(pegboard: CommandLine) -> None:
    skill = pegboard.home / "config" / "skill" / "brew" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brew\ndescription: Make tea.\n---\nBoil water.\n")

    text = await pegboard("tool", "schema", "skill")
    found = said(await pegboard("tool", "schema", "skill", "--format", "json"))

    assert "- brew: Make tea." in text.out
    assert "- brew: Make tea." in found["description"]
