"""What the kernel tells of a worktree is what a look at everything would find."""

import asyncio
import os
import random
import shutil
from pathlib import Path

import pytest

from pegboard_plugins.snapshots.worktree import GitSnapshots
from support.tools.worktrees import (
    counted_git,
    lines,
    small_repository,
    taking,
    tree_by_git,
    writing,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_repository(tmp_path / "project")


@pytest.fixture
def counted(tmp_path: Path) -> tuple[dict[str, str], Path]:
    return counted_git(tmp_path)


def change_something(folder: Path, chance: random.Random) -> None:
    """One of the things that commands do."""
    files = [path for path in sorted(folder.rglob("*")) if ".git" not in path.parts]
    folders = [folder, *(path for path in files if path.is_dir() and not path.is_symlink())]
    plain = [path for path in files if path.is_file() and not path.is_symlink()]
    new = chance.choice(folders) / f"n{chance.randrange(1000)}{chance.choice(['', '.log'])}"
    match chance.randrange(9):
        case 0 if plain:
            chance.choice(plain).write_text(str(chance.random()))
        case 1 if plain:
            chance.choice(plain).unlink()
        case 2 if plain and not new.exists():
            chance.choice(plain).rename(new)
        case 3:
            new.with_suffix(".d").mkdir(exist_ok=True)
        case 4 if len(folders) > 3:
            shutil.rmtree(chance.choice(folders[1:]))
        case 5 if plain:
            chance.choice(plain).chmod(chance.choice([0o644, 0o755]))
        case 6 if len(folders) > 2 and not new.exists():
            chance.choice(folders[1:]).rename(folder / f"m{chance.randrange(10**6)}")
        case 7 if not new.exists():
            new.symlink_to("a.txt")
        case _ if not new.is_dir():
            new.write_text(str(chance.random()))


@pytest.mark.parametrize("seed", range(6))
async def test_what_the_kernel_tells_is_what_a_look_would_find(project: Path, seed: int) -> None:
    chance = random.Random(seed)
    (project / ".gitignore").write_text("*.log\n")
    (project / "empty/folder").mkdir(parents=True)
    told = 0
    async with taking(project) as snapshots:
        await snapshots.track()
        for _ in range(40):
            await armed(snapshots)
            trusted = snapshots._trusted == snapshots._watch.generation > 0
            with writing(snapshots):
                change_something(project, chance)
            tree = await snapshots.track()
            told += trusted and snapshots._trusted == snapshots._watch.generation
            async with taking(project) as others:
                assert tree == await others.track()
    assert told >= 1


async def armed(snapshots: GitSnapshots) -> None:
    """Wait until the folders are watched."""
    if snapshots._upkeep is not None:
        await asyncio.wait((snapshots._upkeep,))


async def test_commands_cost_no_process_where_the_kernel_tells(
    project: Path, counted: tuple[dict[str, str], Path]
) -> None:
    env, log = counted
    (project / "empty/folder").mkdir(parents=True)
    async with taking(project, env) as snapshots:
        await snapshots.track()
        await snapshots.track(fresh=True)
        await armed(snapshots)
        await snapshots.track(fresh=True)
        assert lines(log) == 3

        with writing(snapshots):
            (project / "a.txt").write_text("by a command")
            (project / "src/deep/b.txt").unlink()
        await snapshots.track()
        await snapshots.track(fresh=True)
        assert lines(log) == 0

        with writing(snapshots):
            (project / "empty/folder/c.txt").write_text("new")
        await snapshots.track()
        assert lines(log) == 1

        assert await snapshots.track() == tree_by_git(project)
    assert len(snapshots.take("ses_1")) == 3


async def test_folders_of_ignored_files_do_not_keep_the_others_from_being_watched(
    project: Path, counted: tuple[dict[str, str], Path]
) -> None:
    env, log = counted
    (project / ".gitignore").write_text("build/\n:odd/\n")
    for name in ("build", ":odd", ":(top)other"):
        (project / name).mkdir()
        (project / name / "made.o").write_text("x")
    async with taking(project, env) as snapshots:
        await snapshots.track()
        await snapshots.track(fresh=True)
        await armed(snapshots)
        await snapshots.track(fresh=True)
        lines(log)

        with writing(snapshots):
            (project / "a.txt").write_text("by a command")
            (project / ":(top)other" / "made.o").write_text("y")
        assert await snapshots.track() == tree_by_git(project)
        assert lines(log) == 0


async def test_a_file_that_grows_without_end_keeps_no_look_busy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, plainly, reads = project / "a.txt", os.read, 0
    async with taking(project) as snapshots:
        await snapshots.track()
        with writing(snapshots):
            log.write_text("by the session")
        await snapshots.track()
        await armed(snapshots)
        with writing(snapshots):
            log.write_text("more by the session")
        await snapshots.track()
        watched = snapshots._watch._file
        assert watched >= 0

        def read(number: int, size: int) -> bytes:
            """Read; meanwhile the file grows, as long as a test can wait."""
            nonlocal reads
            content = plainly(number, size)
            if number == watched and reads < 1_000:
                reads += 1
                with log.open("a") as file:
                    file.write("x")
            return content

        with writing(snapshots):
            log.write_text("and more")
        with monkeypatch.context() as growing:
            growing.setattr(os, "read", read)
            before = await snapshots.track()
        after = await snapshots.track(fresh=True)

    assert 0 < reads <= 2
    assert None not in (before, after)
    assert before == after  # what comes while a look reads is of this look or of the next
