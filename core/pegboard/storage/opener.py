"""The door to the database that is there without a plugin: SQLite, loaded when it is opened."""

from pathlib import Path

from pegboard.contract.storage import OnCommit, Storage
from pegboard.ids import IdSource


async def open_storage(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """The SQLite database at a path or `sqlite:///path`, recovered from earlier crashes.

    `on_commit` hears every commit, as `OnCommit` says.

    :raises StorageError: when it cannot be opened.
    """
    # Only who opens a database pays for loading SQLite.
    from pegboard.storage.sqlite import SqliteStorage

    return await SqliteStorage.open(_path(url), ids=ids, on_commit=on_commit)


def _path(url: str | Path) -> Path:
    return Path(url.removeprefix("sqlite://")) if isinstance(url, str) else url
