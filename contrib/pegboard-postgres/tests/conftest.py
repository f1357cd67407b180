"""The plugin is found next to its tests where it is not installed; a server is a fixture."""

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgres_server import PostgresServer

HERE = Path(__file__).parent
for _folder in (HERE, HERE.parent):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

if find_spec("psycopg") is None:
    collect_ignore_glob = ["test_*.py"]  # the driver is not installed


@pytest.fixture(scope="session")
def server() -> "Iterator[PostgresServer]":
    """Start a server on this machine for the tests of a session."""
    from postgres_server import server_for_tests

    yield from server_for_tests()


@pytest.fixture
def new_url(server: "PostgresServer") -> Callable[[], str]:
    """Give the URL of another empty database each time."""
    return server.new_url
