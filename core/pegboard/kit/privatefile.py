"""Files that several processes of one user change: by one at a time, and never by halves."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USERS_ALONE = 0o600


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """A block in which no other process changes the file; its folder is made.

    It waits without a limit: nobody holds the lock for longer than a small file takes.

    :raises OSError: when the lock beside the file cannot be had.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(f"{path}.lock", flags, USERS_ALONE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_whole(path: Path, content: bytes, *, mode: int = USERS_ALONE) -> None:
    """Put the content in the place of the file at once, on the disk before anybody sees it.

    :raises OSError: when it cannot be written; the old file is then whole.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def set_aside(path: Path) -> Path:
    """Where a damaged file is kept from now on, for whoever wants to know what was in it.

    :raises OSError: when it cannot be renamed.
    """
    return path.replace(path.with_name(f"{path.name}.damaged-{time.time_ns()}"))
