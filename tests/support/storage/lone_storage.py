"""A storage that no two processes share: each has a file of its own at the same URL."""

import os
from pathlib import Path

from pegboard.ids import IdSource
from pegboard.storage import OnCommit, Storage
from pegboard_plugins.sqlite import open_sqlite


async def open_lone(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open SQLite at a path that has the number of this process in it."""
    return await open_sqlite(f"{url}-{os.getpid()}", ids=ids, on_commit=on_commit)
