"""Files opened step by step, so that no link put in their way after a check leads elsewhere."""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".pegboard~"
"""The end of names of files that are there for an instant; snapshots leave them out."""
STALE_S = 3600.0
"""No write takes so long: a temporary file that was last renamed or written then is nobody's."""
_NAME = re.compile(r"\..+\.[0-9a-f]{12}" + re.escape(TEMPORARY), re.DOTALL)
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def drop_stale(folder: Path) -> None:
    """Remove the temporary files in a folder that a process which was killed has left there."""
    limit_s = time.time() - STALE_S
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(TEMPORARY) and _NAME.fullmatch(entry.name):
                facts = entry.stat(follow_symlinks=False)
                if facts.st_ctime < limit_s and not stat.S_ISDIR(facts.st_mode):
                    Path(entry.path).unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """A new name in the same folder, for a file that is not there yet, or shall not be long."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(6).hex()}{TEMPORARY}")


def open_resolved(path: Path, flags: int, mode: int = 0o666) -> int:
    """A descriptor of the file at a path without links, such as `ask_path` gives.

    :raises OSError: when it cannot be opened, or when a part of the path is a link.
    """
    with folder_of(path) as folder:
        return os.open(path.name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


def resolved_path(path: str | Path) -> str:
    """The absolute path with links resolved, as far as they can be read; never fails.

    What a link leads to that may not be read, as of another user's process in /proc, is not
    known: the path ends with that link. A text that is no path is taken as it stands.
    """
    try:
        return os.path.realpath(path)
    except OSError as error:
        return str(error.filename or path)
    except ValueError:  # with a zero byte, or letters that no name of a file has
        return os.path.abspath(path)  # noqa: PTH100 - it may be no path


@contextmanager
def folder_of(path: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder that an absolute path without links lies in.

    With `make` the folders that are missing are made.

    :raises OSError: when one cannot be opened, or when a part of the path is a link.
    """
    if not path.is_absolute() or ".." in path.parts:
        raise OSError(errno.EINVAL, f"{path} is not an absolute path without `..`")
    folder = os.open("/", _STEP)
    try:
        for name in path.parts[1:-1]:
            folder = _entered(folder, name, make=make)
        yield folder
    finally:
        os.close(folder)


def _entered(folder: int, name: str, *, make: bool) -> int:
    """A folder in the open one, which is closed unless this fails."""
    if make:
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            _make(folder, name)
    try:
        inner = os.open(name, _STEP, dir_fd=folder)
    except NotADirectoryError as error:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            raise OSError(errno.ELOOP, f"{name} is a link by now") from error
        raise
    os.close(folder)
    return inner


def _make(folder: int, name: str) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return  # somebody else was quicker
