"""Programs that we run by ourselves are never those of the project that we stand in."""

import asyncio
import os
from pathlib import Path

import pytest

from pegboard.programs import find_program, search_path
from pegboard.snapshot.git import ShadowGit
from pegboard.walk import ripgrep
from pegboard.workspace import open_workspace


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with programs of its own, in which we stand."""
    folder = tmp_path / "project"
    for name in ("rg", "git", "bin/rg", "bin/git"):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\ntouch ran\n")
        program.chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("path", ["bin:{}", ":{}", ".:./bin:{}:", "bin"])
def test_relative_entries_of_the_path_do_not_count(project: Path, path: str) -> None:
    env = {"PATH": path.format(os.defpath)}

    assert search_path(env) == os.defpath
    assert find_program("git", env, "/nowhere") in {"/bin/git", "/usr/bin/git"}


async def test_neither_the_search_nor_the_snapshots_run_a_program_of_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"bin:.:{os.environ['PATH']}")
    git = ShadowGit(open_workspace(project), tmp_path / "shadow", os.environ)

    git.loop = asyncio.get_running_loop()
    git.prepare()
    found = await asyncio.to_thread(git.listing, whole=False)
    search = ripgrep(project)

    assert b"rg" in found.others
    assert search is None or Path(search[0]).is_absolute()
    assert not (project / "ran").exists()
