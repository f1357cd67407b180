"""Session storage in PostgreSQL, shared by processes on several machines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard import Host, hookimpl
from pegboard.app import IdSource
from pegboard.storage import OnCommit, OpenStorage, Storage


@hookimpl
async def register_storage() -> Mapping[str, OpenStorage]:
    """Register this storage for the URL schemes `postgresql` and `postgres`."""
    return {"postgresql": open_postgres, "postgres": open_postgres}


@hookimpl
async def startup(app: Host) -> None:
    """Register the App, whose runs stop when another process takes over their sessions."""
    storage: Any = getattr(app, "storage", None)
    if hasattr(storage, "hosts"):  # the driver is loaded only where it is used
        storage.hosts.add(app)


async def open_postgres(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open the database at a PostgreSQL connection URI; the parameters are those of `OpenStorage`.

    If the role has the rights, this creates the tables or updates them to this version.

    :raises ConfigError: when the URI has a password.
    :raises StorageError: when the database cannot be opened.
    """
    # The driver loads only where such a database is opened.
    from pegboard_postgres.storage import PostgresStorage

    return await PostgresStorage.open(str(url), ids=ids, on_commit=on_commit)
