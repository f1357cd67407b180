"""The tests of the engine on a database server: `pytest --database URL`.

Each App's folder has a schema of its own there, which a later App of the same folder opens again.
Tests that look into SQLite are marked `sqlite`, and are left out.
"""

import hashlib
import os
import sys
from pathlib import Path

import pytest

VARIABLE = "PEGBOARD_TEST_DATABASE"
"""The number of this run and the URL, for the processes that tests start too."""
FOLDER = Path(__file__).parents[3] / "contrib" / "pegboard-postgres"


def ask_for(url: str) -> None:
    """Take this database for the tests."""
    os.environ[VARIABLE] = f"{os.getpid()} {url}"


def is_asked_for() -> bool:
    return VARIABLE in os.environ


def plugin() -> object:
    """The plugin that opens the database."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    import pegboard_postgres

    return pegboard_postgres


def database_of(folder: Path) -> str:
    """The URL of the database of a folder, which is made when it is not there."""
    import psycopg

    run, url = os.environ[VARIABLE].split(" ", 1)
    schema = f"t{run}_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"


def leave_out(items: list[pytest.Item]) -> None:
    """Skip the tests that are about SQLite."""
    for item in items:
        if item.get_closest_marker("sqlite"):
            item.add_marker(pytest.mark.skip(reason="it looks into SQLite"))
