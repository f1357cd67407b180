"""The copy of a database that cannot be written: reading needs files next to the database, too."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import apsw
from msgspec.structs import replace

from pegboard.errors import StorageError
from pegboard_plugins.sqlite import opentexts
from pegboard_plugins.sqlite.databasefile import Opened, open_database
from pegboard_plugins.sqlite.lockwait import LockWait

_COPIED = ("", "-wal", "-journal")
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


def is_unwritable(error: BaseException | None) -> bool:
    """Return whether the database could not be opened because nothing can be written there."""
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.FullError):
        return True
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def open_or_copy(path: Path, wait: LockWait) -> Opened:
    """Return the open database, or an open copy of one that cannot be written.

    :raises StorageError: when neither can be opened.
    """
    try:
        return open_database(path, wait)
    except StorageError as error:
        reason = error.__cause__
        if not is_unwritable(reason):
            raise
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
        return replace(
            opened, copy=folder, refused=refused, warnings=(str(refused), *opened.warnings)
        )


def _copy(path: Path, folder: Path) -> None:
    """Copy the database, if there is one."""
    for ending in _COPIED:
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.copyfile(f"{path}{ending}", folder / f"{path.name}{ending}")
    texts = f"{path.name}{opentexts.ENDING}"
    with suppress(FileNotFoundError, NotADirectoryError):
        shutil.copytree(path.with_name(texts), folder / texts)
