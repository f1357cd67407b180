"""A copy of a read-only database, since even reading needs files next to the database."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import apsw
from msgspec.structs import replace

from pegboard.errors import StorageError
from pegboard_plugins.sqlite import opentexts
from pegboard_plugins.sqlite.databasefile import LockWait, OpenDatabase, open_database

_COPIED = ("", "-wal", "-journal")
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


def is_unwritable(error: BaseException | None) -> bool:
    """Return whether the database could not be opened because its folder is read-only."""
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.FullError):
        return True
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def open_copy(path: Path, wait: LockWait, error: StorageError) -> OpenDatabase:
    """Return an open copy of a database that could not be opened because of this error.

    :raises StorageError: when the error has another reason, or there is no room for a copy.
    """
    reason = error.__cause__
    if not is_unwritable(reason):
        raise error
    refused = StorageError(f"{error}; PEGBOARD_DATA_DIR names another folder for it")
    try:
        folder = Path(mkdtemp(prefix="pegboard-"))
    except OSError:
        raise refused from reason
    try:
        _copy(path, folder)
        opened = open_database(folder / path.name, wait)
    except (OSError, StorageError):
        shutil.rmtree(folder, ignore_errors=True)
        raise refused from reason
    warnings = (str(refused), *opened.warnings)
    return replace(opened, copy=folder, refused=refused, warnings=warnings)


def _copy(path: Path, folder: Path) -> None:
    """Copy the database to a folder; do nothing if there is no database."""
    for ending in _COPIED:
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.copyfile(f"{path}{ending}", folder / f"{path.name}{ending}")
    texts = f"{path.name}{opentexts.ENDING}"
    with suppress(FileNotFoundError, NotADirectoryError):
        shutil.copytree(path.with_name(texts), folder / texts)
