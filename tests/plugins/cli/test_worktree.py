"""The git that makes the worktree of a run."""

import os
import shutil
from pathlib import Path

import pytest

from pegboard import InvalidInputError
from pegboard_plugins.cli import worktree
from pegboard_plugins.cli.worktree import Worktree
from support.processes.processes import MARK, remaining
from support.tools.worktrees import git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit, and a folder for a `git` at the head of the PATH."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-qm", "begin", "--allow-empty")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return folder


def stand_in(project: Path, script: str) -> None:
    file = project.parent / "bin" / "git"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_it_gets_no_keys(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_API_KEY", "secret-of-the-house")
    seen = project.parent / "seen"
    stand_in(project, f'env >> {seen}; exec {shutil.which("git")} "$@"')

    made = Worktree.make(project)

    assert made.directory.is_dir()
    assert "PATH=" in seen.read_text()
    assert "secret-of-the-house" not in seen.read_text()


def test_what_it_started_ends_with_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "LIMIT_S", 1.0)
    stand_in(project, f"sleep {MARK} & sleep {MARK}")

    with pytest.raises(InvalidInputError, match="took more than 1 s"):
        Worktree.make(project)

    assert remaining(f"sleep\0{MARK}") == []
