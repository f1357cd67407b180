"""SQLite, the default storage: one database file that several processes may use."""

from collections.abc import Mapping
from pathlib import Path

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.storage import OnCommit, OpenStorage, Storage

_SCHEME = "sqlite"
_PATH = ""


@hookimpl
async def register_storage() -> Mapping[str, OpenStorage]:
    """Register the storage for `sqlite` URLs and for plain paths."""
    return {_SCHEME: open_sqlite, _PATH: open_sqlite}


async def open_sqlite(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open the database at a path or `sqlite:///path`; see `OpenStorage`.

    :raises StorageError: when it cannot be opened.
    """
    # SQLite is loaded only when a database is opened.
    from pegboard_plugins.sqlite.storage import SqliteStorage

    return await SqliteStorage.open(_path(url), ids=ids, on_commit=on_commit)


def _path(url: str | Path) -> Path:
    return Path(url.removeprefix(f"{_SCHEME}://")) if isinstance(url, str) else url
