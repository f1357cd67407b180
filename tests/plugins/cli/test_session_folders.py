"""A session works in its own folder: from another one it is refused, and nothing is written."""

from dataclasses import replace
from pathlib import Path

import pytest

from model_server import ModelServer, by_step, call, say
from plugins.cli.commands import CommandLine, Done
from worktrees import git, small_repository

WRITE = call("write", {"filePath": "written.txt", "content": "x"})


async def run(pegboard: CommandLine, *arguments: str, start: tuple[str, ...] = ()) -> Done:
    """Run a prompt whose answer writes a file; `start` stands before `run`."""
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
        return await pegboard(*start, "run", "--format", "json", *arguments, "go")


def elsewhere(pegboard: CommandLine, kind: str) -> CommandLine:
    """Return the command line in another project, a subfolder, or another worktree of git."""
    project = pegboard.project
    if kind == "worktree":
        small_repository(project)
        git(project, "worktree", "add", "-q", "../other")
    folder = project / "sub" if kind == "subfolder" else project.parent / "other"
    folder.mkdir(exist_ok=True)
    return replace(pegboard, project=folder)


@pytest.mark.parametrize("kind", ["project", "subfolder", "worktree"])
async def test_a_session_is_not_run_in_another_folder(pegboard: CommandLine, kind: str) -> None:
    other = elsewhere(pegboard, kind)
    session = (await run(pegboard)).records[0]["sessionID"]

    refused = await run(other, "-s", session)
    there = await run(other, "-s", session, start=("-C", str(pegboard.project)))

    assert refused.code == 2
    assert f"session {session} works in {pegboard.project}, not in {other.project}" in refused.out
    assert f"pegboard -C {pegboard.project}" in refused.out
    assert not (other.project / "written.txt").exists()
    assert there.code == 0, there.err


async def test_a_copy_of_a_session_runs_in_another_folder(pegboard: CommandLine) -> None:
    other = elsewhere(pegboard, "project")
    session = (await run(pegboard)).records[0]["sessionID"]

    done = await run(other, "-s", session, "--fork")

    assert (done.code, (other.project / "written.txt").exists()) == (0, True)
    assert done.records[0]["sessionID"] != session


async def test_the_newest_session_of_the_folder_goes_on(pegboard: CommandLine) -> None:
    other = elsewhere(pegboard, "worktree")
    here = (await run(pegboard)).records[0]["sessionID"]
    refused = await run(other, "-c")
    await run(other)

    continued = await run(pegboard, "-c")

    assert (refused.code, f"session {here} works in" in refused.out) == (2, True)
    assert continued.records[0]["sessionID"] == here


@pytest.mark.parametrize("word", ["revert", "unrevert"])
async def test_files_of_another_worktree_are_not_put_back(pegboard: CommandLine, word: str) -> None:
    other = elsewhere(pegboard, "worktree")
    session = (await run(pegboard)).records[0]["sessionID"]

    refused = await other("session", word, session)

    assert (refused.code, f"session {session} works in" in refused.err) == (2, True)
    assert (pegboard.project / "written.txt").exists()


async def test_a_session_whose_folder_has_another_name_by_a_link_goes_on(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    session = (await run(pegboard)).records[0]["sessionID"]
    moved = pegboard.project.rename(tmp_path / "moved")
    pegboard.project.symlink_to(moved)

    done = await run(pegboard, "-s", session)

    assert done.code == 0, done.err
