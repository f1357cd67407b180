"""The command is found next to its tests where it is not installed."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forks import environment
from plugins.cli.commands import CommandLine
from worktrees import git

ROOT = Path(__file__).parents[1]
for folder in (ROOT, ROOT / "tests"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """`pegboard` with the command `batch`, as an installed distribution brings it."""
    facts = tmp_path / "installed" / "pegboard_fleet-0.1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pegboard-fleet\nVersion: 0.1.0\n")
    entry = "[pegboard.commands]\nbatch = pegboard_fleet.command:batch\n"
    (facts / "entry_points.txt").write_text(entry)
    (tmp_path / "project").mkdir()
    old = environment().get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, (str(ROOT), str(facts.parent), old)))
    return CommandLine(tmp_path, tmp_path / "project", {"PYTHONPATH": path})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with one commit of two files."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.txt").write_text("pear\n")
    (folder / "b.txt").write_text("plum\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")
    return folder


@pytest.fixture
def jobs(tmp_path: Path) -> Callable[..., str]:
    """Write a file of jobs, and return its name."""

    def written(*rows: dict[str, Any]) -> str:
        import msgspec

        file = tmp_path / "jobs.jsonl"
        file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        return str(file)

    return written
