"""Repositories for tests of snapshots, and what is done in them."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.worktree import GitSnapshots

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@localhost")
OWNER = ("ses_1",)


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def small_repository(folder: Path) -> Path:
    """A repository with a file of each kind."""
    (folder / "src/deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "src/deep/b.txt").write_text("two\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


@asynccontextmanager
async def taking(
    project: Path, env: dict[str, str] | None = None, *, directory: Path | None = None
) -> AsyncIterator[GitSnapshots]:
    """The snapshots of a project, kept beside it."""
    folder = project.parent / "data"
    env = {"PATH": os.environ["PATH"], "HOME": str(project.parent / "home"), **(env or {})}
    snapshots = GitSnapshots(open_workspace(directory or project), folder=folder, env=env)
    yield snapshots
    await snapshots.aclose()


@contextmanager
def writing(snapshots: GitSnapshots, *told: Path) -> Iterator[None]:
    """What a tool does in this block is its session's."""
    with snapshots.writing(OWNER, tells=bool(told)) as call:
        yield
        for path in told:
            call.tell(path)


def tree_by_git(project: Path) -> str:
    """The tree that git makes of all files."""
    git(project, "add", "-A")
    return git(project, "write-tree")


def counted_git(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which each process of git leaves a line in a file."""
    folder, log = tmp_path / "bin", tmp_path / "processes"
    folder.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    (folder / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real.strip()} "$@"\n')
    (folder / "git").chmod(0o755)
    log.touch()
    return {"PATH": f"{folder}:{os.environ['PATH']}"}, log


def lines(log: Path) -> int:
    """How many processes there were since the last question."""
    found = len(log.read_text().splitlines())
    log.write_text("")
    return found
