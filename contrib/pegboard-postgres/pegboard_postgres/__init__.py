"""PostgreSQL: sessions in a database that processes of several machines share."""

from collections.abc import Mapping
from pathlib import Path

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.storage import OnCommit, OpenStorage, Storage


@hookimpl
async def register_storage() -> Mapping[str, OpenStorage]:
    """Return what opens the schemes `postgresql` and `postgres`."""
    return {"postgresql": open_postgres, "postgres": open_postgres}


async def open_postgres(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open the database at a connection URI of PostgreSQL; see `OpenStorage`.

    The tables are made, or brought up to date, if the role may do that.

    :raises ConfigError: when the URI has a password.
    :raises StorageError: when it cannot be opened.
    """
    # The driver loads only where such a database is opened.
    from pegboard_postgres.storage import PostgresStorage

    return await PostgresStorage.open(str(url), ids=ids, on_commit=on_commit)
