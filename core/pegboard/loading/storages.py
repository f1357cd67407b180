"""The database of an App, opened by the plugin that knows its kind."""

from collections.abc import Iterable
from pathlib import Path

from pegboard.contract import hookspecs
from pegboard.contract.storage import OnCommit, Storage
from pegboard.errors import ConfigError, StorageError
from pegboard.ids import IdSource
from pegboard.loading.register import Register

_VARIABLE = "PEGBOARD_DATABASE"
_PATH = ""
"""The scheme of a database that is named by its path."""


async def open_database(
    url: str | Path, *, register: Register, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """The database at a URL or a path; of two plugins for one scheme the newer one opens it.

    :raises ConfigError: when no plugin opens databases of this kind.
    :raises StorageError: when it cannot be opened.
    :raises PluginError: when the plugin fails otherwise.
    """
    scheme = _scheme(url)
    kinds = await register.hooks.tables(hookspecs.register_storage)
    if scheme not in kinds:
        raise ConfigError(_missing(url, kinds, register), key=_VARIABLE)
    what = f"the storage {scheme}://" if scheme else "the storage"
    with register.hooks.blaming(kinds[scheme], what, passing=(StorageError,)):
        place = url if scheme else Path(url)
        return await kinds[scheme](place, ids=ids, on_commit=on_commit)


def _scheme(url: str | Path) -> str:
    scheme, mark, _ = str(url).partition("://")
    return scheme if mark else _PATH


def _missing(url: str | Path, kinds: Iterable[str], register: Register) -> str:
    scheme = _scheme(url)
    wanted = f"{scheme}:// databases" if scheme else f"a database at a path, as {url}"
    absent = register.absent(hookspecs.register_storage)
    off = "".join(f"; {name} is not loaded: {error}" for name, error in absent.items())
    known = ", ".join(sorted(f"{each}://" if each else "a path" for each in kinds))
    way = f"name one that plugins here open: {known}" if known else "load a plugin that opens it"
    return f"no plugin opens {wanted}{off}; {way}"
