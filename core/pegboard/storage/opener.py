"""The database of an App: SQLite, or what a plugin opens."""

from collections.abc import Awaitable
from pathlib import Path

from pegboard.contract import hookspecs
from pegboard.contract.storage import OnCommit, Storage
from pegboard.errors import ConfigError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource
from pegboard.storage import open_storage


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
