"""A file that is too long for snapshots is overwritten on the command line."""

import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say
from support.tools.worktrees import git, small_repository


@pytest.mark.parametrize("committed", [False, True])
async def test_the_answer_says_when_undo_restores_a_file_only_from_git(
    pegboard: CommandLine, committed: bool
) -> None:
    small_repository(pegboard.project)
    file = pegboard.project / "long.txt"
    file.write_text("x" * 1023 + "\n")
    with file.open("a") as more:
        for _ in range(60):
            more.write(("x" * 1023 + "\n") * 1024)
    if committed:
        git(pegboard.project, "add", "-A")
        git(pegboard.project, "commit", "-qm", "long")
    steps = (
        call("read", {"filePath": "long.txt", "limit": 5}),
        call("write", {"filePath": "long.txt", "content": "short\n"}),
        say("Done."),
    )
    async with ModelServer(by_step(*steps)) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
        done = await pegboard("run", "--format", "json", "go")
    written = [each["part"] for each in done.records if each["type"] == "tool_use"][-1]
    undone = await pegboard("session", "revert", done.records[0]["sessionID"])

    output = written["state"]["output"]
    assert "61,441 lines in 62,915,584 bytes" in output
    assert "only if git has it committed" in output
    assert (undone.code == 0) is committed
