"""The command as the distributions of this repository bring it where they are installed."""

import os
from importlib.util import find_spec
from pathlib import Path

from plugins.cli.commands import CommandLine
from support.processes.forks import environment

ROOT = Path(__file__).parents[1]
POSTGRES = ROOT.parent / "pegboard-postgres"
_NEEDED = ("dbos", "psycopg", "sqlalchemy")
_ENTRIES = {
    "pegboard_fleet": (
        "[pegboard.commands]\nbatch = pegboard_fleet.command:batch\n"
        "fleet = pegboard_fleet.fleet.command:fleet\n"
        "[pegboard]\nfleet_servers = pegboard_fleet.serving\n"
    ),
    "pegboard_postgres": "[pegboard]\npostgres = pegboard_postgres\n",
}


def absent() -> list[str]:
    """Return what a fleet needs and is not installed."""
    return [each for each in _NEEDED if find_spec(each) is None]


def command_line(home: Path) -> CommandLine:
    """Return `pegboard` with the commands `batch` and `fleet`, for a user with this home."""
    facts = home / "installed"
    for name, entries in _ENTRIES.items():
        folder = facts / f"{name}-0.1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        (folder / "entry_points.txt").write_text(entries)
    (home / "project").mkdir()
    specs = [find_spec(each) for each in _NEEDED]
    extras = {str(Path(each.origin).parents[1]) for each in specs if each and each.origin}
    old = environment().get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, (str(ROOT), str(POSTGRES), str(facts), *extras, old)))
    return CommandLine(home, home / "project", {"PYTHONPATH": path})
