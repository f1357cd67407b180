"""The command is found next to its tests where it is not installed."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plugins.cli.commands import CommandLine
from support.tools.worktrees import git

if TYPE_CHECKING:
    from fleet_servers import Servers
    from fleets import Fleet
    from postgres_server import PostgresServer

ROOT = Path(__file__).parents[1]
POSTGRES = ROOT.parent / "pegboard-postgres"
for folder in (ROOT, ROOT / "tests", POSTGRES, POSTGRES / "tests"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import installed  # noqa: E402 - found by the path above

if installed.absent():
    collect_ignore = [
        "test_fleet.py",
        "test_job_sessions.py",
        "test_serving.py",
        "test_stopping.py",
        "test_takeover.py",
    ]  # an extra is not installed


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """`pegboard` with the commands `batch` and `fleet`, as installed distributions bring them."""
    return installed.command_line(tmp_path)


@pytest.fixture(scope="session")
def server() -> "Iterator[PostgresServer]":
    """Start a server on this machine."""
    from postgres_server import server_for_tests

    yield from server_for_tests()


@pytest.fixture
async def fleet(line: CommandLine, server: "PostgresServer") -> "AsyncIterator[Fleet]":
    """Prepare a fleet with a database of its own."""
    from fleets import fleet_of

    async with fleet_of(line, server.new_url()) as found:
        yield found


@pytest.fixture
async def servers(fleet: "Fleet", tmp_path: Path) -> "AsyncIterator[Servers]":
    """Prepare servers for the fleet, none of which has started."""
    from fleet_servers import servers_of

    async with servers_of(fleet, tmp_path) as found:
        yield found


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
