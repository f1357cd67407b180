"""A session works in its own folder, and follows it when the folder is renamed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine, Done
from support.models.model_server import ModelServer, by_step, call, say
from support.tools.worktrees import git, small_repository

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


async def test_sessions_follow_a_renamed_folder(pegboard: CommandLine, tmp_path: Path) -> None:
    session = (await run(pegboard)).records[0]["sessionID"]
    stored = (await pegboard("session", "show", session)).out
    old = pegboard.project
    moved = replace(pegboard, project=old.rename(tmp_path / "new name"))

    empty = await moved("session", "list")
    refused = await run(moved, "-s", session)
    adopted = await moved("session", "adopt", str(old))
    again = await moved("session", "adopt", str(old))
    listed = json.loads((await moved("session", "list", "--format", "json")).out)
    shown = await moved("session", "show", session)
    undone = await moved("session", "revert", session)
    done = await run(moved, "-s", session)

    assert (empty.out, f"{old} (1)" in empty.err) == ("", True)
    assert f"`pegboard session adopt {old}`" in empty.err
    assert (refused.code, f"pegboard session adopt {old}" in refused.out) == (2, True)
    assert (adopted.code, adopted.out.split()[0]) == (0, session)
    assert (again.code, "--all-projects" in again.err) == (2, True)
    assert [(row["id"], row["directory"]) for row in listed] == [(session, str(moved.project))]
    assert shown.out == stored
    assert (undone.code, undone.out.split()[0]) == (1, "left")
    assert (done.code, (moved.project / "written.txt").exists()) == (0, True)


async def test_a_folder_that_exists_keeps_its_sessions(pegboard: CommandLine) -> None:
    other = elsewhere(pegboard, "project")
    session = (await run(pegboard)).records[0]["sessionID"]

    refused = await other("session", "adopt", str(pegboard.project))

    assert (refused.code, f"{pegboard.project} exists" in refused.err) == (2, True)
    assert session in (await pegboard("session", "list")).out


async def test_sessions_of_all_projects_are_listed_with_their_folders(
    pegboard: CommandLine,
) -> None:
    other = elsewhere(pegboard, "project")
    first = (await run(pegboard)).records[0]["sessionID"]
    second = (await run(other)).records[0]["sessionID"]

    listed = await other("session", "list", "--all-projects")

    header, *rows = listed.out.splitlines()
    assert header.split() == ["session", "updated", "age", "folder", "title"]
    assert [row.split()[0] for row in rows] == [second, first]
    assert [row.split()[4] for row in rows] == [str(other.project), str(pegboard.project)]


@pytest.mark.parametrize("first", ["run", "list"])
async def test_sessions_follow_a_checkout_that_was_moved(
    pegboard: CommandLine, tmp_path: Path, first: str
) -> None:
    small_repository(pegboard.project)
    (pegboard.project / "sub").mkdir()
    top = (await run(pegboard)).records[0]["sessionID"]
    below = (await run(replace(pegboard, project=pegboard.project / "sub"))).records[0]["sessionID"]
    old = pegboard.project
    moved = replace(pegboard, project=old.rename(tmp_path / "new"))

    done = await (run(moved, "-s", top) if first == "run" else moved("session", "list"))
    listed = json.loads((await moved("session", "list", "--format", "json")).out)
    again = await moved("session", "list")

    assert done.code == 0, done.err
    assert f"2 sessions of {old} moved here with the folder" in done.err
    folders = {row["id"]: row["directory"] for row in listed}
    assert folders == {top: str(moved.project), below: str(moved.project / "sub")}
    assert "moved here" not in again.err


async def test_sessions_follow_no_other_checkout(pegboard: CommandLine, tmp_path: Path) -> None:
    small_repository(pegboard.project)
    clone, copy = tmp_path / "clone", tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(pegboard.project), str(clone))
    shutil.copytree(pegboard.project, copy)
    session = (await run(pegboard)).records[0]["sessionID"]
    shutil.rmtree(pegboard.project)

    for folder in (clone, copy):
        listed = await replace(pegboard, project=folder)("session", "list")
        assert session not in listed.out
        assert "moved here" not in listed.err


async def test_a_checkout_that_is_there_keeps_its_sessions(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    small_repository(pegboard.project)
    session = (await run(pegboard)).records[0]["sessionID"]
    moved = pegboard.project.rename(tmp_path / "new")
    pegboard.project.mkdir()

    listed = await replace(pegboard, project=moved)("session", "list")

    assert session not in listed.out


async def test_a_run_that_saves_nothing_leaves_sessions_to_the_next(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    small_repository(pegboard.project)
    session = (await run(pegboard)).records[0]["sessionID"]
    moved = replace(pegboard, project=pegboard.project.rename(tmp_path / "new"))

    unsaved = await run(moved, "--no-save")
    listed = await moved("session", "list")

    assert "moved here" not in unsaved.err
    assert session in listed.out
