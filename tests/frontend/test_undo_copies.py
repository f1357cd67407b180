"""Nothing is lost by an undo: what a user may have written while a command ran is copied first."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from pegboard.snapshots import RestoreWay
from pegboard_plugins.shared.frontend import Reverted, reverted
from pegboard_plugins.snapshots import objects
from support.models.written import ask, full_repository, played, shell, state, until, written
from support.tools.worktrees import OWNER, small_repository, taking, writing

WAITS = "echo run > a.txt; touch began; while [ ! -e go ]; do sleep 0.02; done; rm began go"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


def copy_of(back: Reverted, name: str) -> str:
    """What the command prints that a revert names for copies."""
    assert back.files.replaced is not None
    command = back.files.replaced.command.replace("FILE", name)
    return subprocess.run(
        ["/bin/sh", "-c", command], check=True, capture_output=True, text=True
    ).stdout


def copied(back: Reverted, project: Path) -> set[str]:
    paths = back.files.replaced.paths if back.files.replaced else ()
    return {str(path.relative_to(project)) for path in paths}


async def test_what_the_user_writes_while_a_command_runs_is_named_and_copied(
    tmp_path: Path, project: Path
) -> None:
    before = state(project)
    async with played(tmp_path, shell(WAITS)) as (app, session):
        asked = asyncio.create_task(ask(app, session))
        await until((project / "began").exists)
        (project / "src/b.txt").write_text("the user's edit\n")
        (project / "notes.txt").write_text("the user's file\n")
        (project / "go").touch()

        back = await reverted(app, session, await asked)

    assert state(project) == before
    assert copied(back, project) == {"a.txt", "src/b.txt", "notes.txt"}
    assert copy_of(back, "src/b.txt") == "the user's edit\n"
    assert copy_of(back, "notes.txt") == "the user's file\n"
    assert "edits of yours may be undone too: a.txt, notes.txt, src/b.txt; as they" in back.warning


async def test_what_a_tool_names_is_undone_without_a_word(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, written("a.txt", "new")) as (app, session):
        back = await reverted(app, session, await ask(app, session))

    assert (back.files.replaced, back.warning) == (None, "")


async def test_a_copy_outlives_the_next_prompt_and_the_session(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, shell("echo x > new.txt")) as (app, session):
        back = await reverted(app, session, await ask(app, session))
        await app.prompt(session, "on")
        await app.delete_session(session)
        assert app.snapshots is not None
        await app.snapshots.collect((project,))

    assert copy_of(back, "new.txt") == "x\n"


async def test_a_look_at_many_files_of_a_folder_reads_each_tree_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    parse = objects.tree_entries

    def counted(content: bytes, algorithm: objects.Algorithm) -> dict[bytes, objects.TreeEntry]:
        read.append(len(content))
        return parse(content, algorithm)

    monkeypatch.setattr(objects, "tree_entries", counted)
    project = small_repository(tmp_path / "project")
    async with taking(project) as snapshots:
        before = await snapshots.track()
        with writing(snapshots):
            for number in range(300):
                (project / f"src/{number}.txt").write_text(f"{number}\n")
        after = await snapshots.track()
        paths = snapshots.take(OWNER[0])
        assert before is not None
        assert after is not None
        way = {path: RestoreWay(before=before, after=after) for path in paths}

        assert len(await snapshots.diff(way)) == 300
        assert len(read) <= 4
