"""Going back on the command line: files come back, and what does not is on the screen."""

import json
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, call, in_order, say
from support.tools.worktrees import small_repository


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, small_repository(tmp_path / "project"))


async def wrote(pegboard: CommandLine, *steps: tuple[str, str]) -> str:
    """A session in which each prompt writes a file."""
    session: list[str] = []
    for path, content in steps:
        write = call("write", {"filePath": path, "content": content})
        async with ModelServer(in_order(write, say("done"))) as server:
            pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
            again = ("-s", *session) if session else ()
            done = await pegboard("run", "--format", "json", *again, "go")
        session = [done.records[0]["sessionID"]]
    return session[0]


async def test_each_revert_goes_back_by_one_prompt_and_unrevert_returns_to_the_end(
    pegboard: CommandLine,
) -> None:
    session = await wrote(pegboard, ("b.txt", "first"), ("c.txt", "second"))
    files = ("b.txt", "c.txt")
    seen = []

    for word in ("revert", "revert", "unrevert"):
        done = await pegboard("session", word, session)
        seen.append((done.code, [(pegboard.project / name).exists() for name in files]))
        assert ("`pegboard session unrevert` restores it" in done.out) is (word == "revert")
    again = await pegboard("session", "revert", session, "msg_nothing")

    assert seen == [(0, [True, False]), (0, [False, False]), (0, [True, True])]
    assert again.code == 2
    assert "msg_nothing" in again.err


async def test_what_was_left_is_shown_and_told_to_programs(pegboard: CommandLine) -> None:
    session = await wrote(pegboard, ("b.txt", "first"), ("c.txt", "second"))
    for name in ("b.txt", "c.txt"):
        (pegboard.project / name).write_text("mine")

    shown = await pegboard("session", "revert", session)
    first = json.loads((await pegboard("session", "show", session, "--format", "json")).out)
    message = first["messages"][0]["info"]["id"]
    told = json.loads(
        (await pegboard("session", "revert", session, message, "--format", "json")).out
    )

    assert shown.code == 1
    assert "left      c.txt: edited since" in shown.out
    assert [(Path(each["path"]).name, each["reason"]) for each in told["left"]] == [
        ("b.txt", "changed")
    ]
    assert told["info"]["revert"]["messageID"] == message
    assert (pegboard.project / "c.txt").read_text() == "mine"
