"""Files opened, written, moved and removed folder by folder, so that no link is followed."""

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
"""The age after which an unchanged temporary file is left over: no write takes so long."""
_NAME = re.compile(r"\..+\.[0-9a-f]{12}" + re.escape(TEMPORARY), re.DOTALL)
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def drop_stale(folder: Path) -> None:
    """Remove the temporary files that a killed process has left in the folder."""
    limit_s = time.time() - STALE_S
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(TEMPORARY) and _NAME.fullmatch(entry.name):
                facts = entry.stat(follow_symlinks=False)
                if facts.st_ctime < limit_s and not stat.S_ISDIR(facts.st_mode):
                    Path(entry.path).unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """Return a new name for a temporary file in the same folder."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(6).hex()}{TEMPORARY}")


def open_resolved(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open the file at a path without links, such as a path that `require_path` returned.

    :raises OSError: when it cannot be opened, or when a part of the path is a link.
    """
    with folder_of(path) as folder:
        return os.open(path.name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


@contextmanager
def folder_of(path: Path, *, make: bool = False) -> Iterator[int]:
    """Open the folder that contains an absolute path without links, and yield its descriptor.

    With `make`, missing folders are created.

    :raises OSError: when a folder cannot be opened, or when a part of the path is a link.
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
    """Open the subfolder `name` of an open folder, and close the outer folder on success."""
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


def is_resolved(path: Path) -> bool:
    """Return whether the absolute path exists and no part of it is a link."""
    try:
        with folder_of(path) as folder:
            facts = os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return not stat.S_ISLNK(facts.st_mode)


def move_resolved(path: Path, target: Path) -> None:
    """Rename a file, or a link itself; missing folders of `target` are created.

    :raises OSError: when it cannot be renamed, or when a folder of either path is a link.
    """
    with folder_of(path) as source, folder_of(target, make=True) as folder:
        os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=folder)


def remove_resolved(path: Path) -> None:
    """Remove a file, an empty folder, or a link itself.

    :raises OSError: when it cannot be removed, or when a folder of the path is a link.
    """
    with folder_of(path) as folder:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            os.rmdir(path.name, dir_fd=folder)
        else:
            os.unlink(path.name, dir_fd=folder)


def replace_resolved(path: Path, content: bytes) -> int:
    """Replace a file's content atomically, and return the number of its other hard links.

    These keep the old content. Mode, owner and extended attributes are kept if the system allows
    it. Missing folders are created.

    :raises OSError: when the file cannot be written; the old file is then unchanged.
    """
    with folder_of(path, make=True) as folder:
        links = _links(path, folder)
        temporary = temporary_beside(path).name
        try:
            _write_new(temporary, content, folder=folder, old=path.name if links else None)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return max(links - 1, 0)


def _links(path: Path, folder: int) -> int:
    """Return the number of hard links of a writable regular file, or 0 if it does not exist.

    :raises OSError: for a directory, a link, a device, a pipe, or a write-protected file.
    """
    try:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if stat.S_ISDIR(facts.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(f"{path} is not a regular file")
    if not os.access(path.name, os.W_OK, dir_fd=folder):
        raise PermissionError(f"{path} is write-protected")
    return facts.st_nlink


def _write_new(name: str, content: bytes, *, folder: int, old: str | None) -> None:
    """Write the content to a new file, with the mode and owner of the file `old`, and sync it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb") as file:
        if old is not None:
            copy_traits(old, file.fileno(), folder=folder)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def copy_traits(old: str, file: int, *, folder: int | None = None) -> None:
    """Copy owner, permissions and attributes of a file to an open file, if possible."""
    facts = os.stat(old, dir_fd=folder, follow_symlinks=False)
    if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(file, facts.st_uid, facts.st_gid)
    os.fchmod(file, stat.S_IMODE(facts.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            _copy_attributes(old, folder, file)


def _copy_attributes(old: str, folder: int | None, file: int) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    source = os.open(old, flags, dir_fd=folder)
    try:
        for name in os.listxattr(source):
            os.setxattr(file, name, os.getxattr(source, name))
    finally:
        os.close(source)
