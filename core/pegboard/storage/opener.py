"""The database of an App: SQLite, or what a plugin opens."""

from collections.abc import Awaitable
from pathlib import Path

from pegboard.contract import hookspecs
from pegboard.contract.storage import OnCommit, Storage
from pegboard.errors import ConfigError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource


async def open_database(
    url: str,
    *,
    default: Path,
    hooks: Awaitable[Hooks],
    ids: IdSource,
    on_commit: OnCommit,
) -> Storage:
    """The database: SQLite at once, of another kind when the plugins are there to open it.

    :raises ConfigError: when no plugin opens such a URL.
    :raises PluginError: when the plugin that does fails at it.
    """
    scheme = url.partition("://")[0]
    if scheme == url:
        return await open_storage(Path(url) if url else default, ids=ids, on_commit=on_commit)
    calls = await hooks
    kinds = await calls.tables(hookspecs.register_storage)
    if scheme not in kinds:
        raise ConfigError(
            f"no plugin opens {scheme}:// databases; known: {', '.join(kinds) or 'none'}",
            key="PEGBOARD_DATABASE",
        )
    with calls.blaming(kinds[scheme], f"the storage {scheme}://"):
        return await kinds[scheme](url, ids=ids, on_commit=on_commit)


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
