"""What an undo brings back has the permissions that it had, and empty folders stay or come back."""

import stat
from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import reverted
from support.models.written import ask, full_repository, played, shell


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = full_repository(tmp_path / "project")
    (folder / "own").mkdir()
    (folder / "own" / "mine.txt").write_text("mine\n")
    (folder / "own" / "logs" / "old").mkdir(parents=True)
    (folder / "inbox").mkdir()
    return folder


def modes(project: Path, *names: str) -> dict[str, int]:
    return {name: stat.S_IMODE((project / name).stat().st_mode) for name in names}


async def undone(tmp_path: Path, command: str) -> None:
    """Let a session run a command, and another process take it back."""
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)
    assert back.files.left == ()


@pytest.mark.parametrize("command", ["rm a.txt run.sh; rm -r own src", "rm -rf *"])
async def test_removed_files_and_folders_come_back_with_their_permissions(
    tmp_path: Path, project: Path, command: str
) -> None:
    for name, mode in {"a.txt": 0o600, "run.sh": 0o750, "own": 0o700, "src/b.txt": 0o640}.items():
        (project / name).chmod(mode)
    before = modes(project, "a.txt", "run.sh", "own", "own/mine.txt", "src", "src/b.txt")

    await undone(tmp_path, command)

    assert modes(project, *before) == before


async def test_a_changed_file_keeps_the_permissions_that_it_has(
    tmp_path: Path, project: Path
) -> None:
    (project / "a.txt").chmod(0o600)

    await undone(tmp_path, "echo x >> a.txt")

    assert modes(project, "a.txt") == {"a.txt": 0o600}


async def test_empty_folders_of_a_removed_folder_come_back(tmp_path: Path, project: Path) -> None:
    (project / "own" / "logs").chmod(0o700)

    await undone(tmp_path, "rm -r own")

    assert (project / "own" / "logs" / "old").is_dir()
    assert modes(project, "own/logs") == {"own/logs": 0o700}


@pytest.mark.parametrize("command", ["rmdir inbox own/logs/old", "mv inbox other", "rm -r *"])
async def test_empty_folders_that_go_alone_come_back(
    tmp_path: Path, project: Path, command: str
) -> None:
    (project / "inbox").chmod(0o700)
    (project / "own/logs/old").chmod(0o750)
    before = modes(project, "inbox", "own/logs/old")

    await undone(tmp_path, command)

    assert modes(project, *before) == before


async def test_a_folder_that_was_empty_stays_when_the_session_s_file_in_it_goes(
    tmp_path: Path, project: Path
) -> None:
    await undone(tmp_path, "echo x > inbox/new.txt; mkdir theirs; echo y > theirs/new.txt")

    assert (project / "inbox").is_dir()
    assert list((project / "inbox").iterdir()) == []
    assert not (project / "theirs").exists()
