"""A temporary database for a run that stores nothing."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from pegboard.app import UserFolders

_ROOM_BYTES = 1 << 16
"""The minimum free space for a new database."""


def with_database(leaving: ExitStack) -> Mapping[str, str] | None:
    """Return an environment with a temporary database if the user's database is not writable."""
    database = UserFolders.of(os.environ).database
    if "PEGBOARD_DATABASE" in os.environ or _is_writable(database):
        return None
    folder = leaving.enter_context(TemporaryDirectory(prefix="pegboard-"))
    return {**os.environ, "PEGBOARD_DATABASE": f"{folder}/pegboard.db"}


def _is_writable(database: Path) -> bool:
    try:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=database.parent) as file:
            file.write(bytes(_ROOM_BYTES))
    except OSError:
        return False
    return not database.exists() or os.access(database, os.W_OK)
