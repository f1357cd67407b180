"""Files that several processes of one user change: locked, and replaced atomically."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USERS_ALONE = 0o600


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file in a block, against other threads and processes.

    The lock is an empty file next to it, `<path>.lock`. The folder is created with mode 0700. The
    wait has no limit and blocks the thread. Therefore read or write only one small file in the
    block, and run it outside of the event loop: `await asyncio.to_thread(...)`. The lock is not
    reentrant, and does not affect programs that do not take it.

    :raises OSError: when the folder or the lock file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(f"{path}.lock", flags, USERS_ALONE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_file(path: Path, content: bytes, *, mode: int = USERS_ALONE) -> None:
    """Replace the content of the file atomically; readers see the old content or the new.

    The content is on the disk when this returns. `mode` is the mode of the new file, by default
    only for the user. A symbolic link at `path` is replaced by a file. This blocks the thread.

    :raises OSError: when the file cannot be written; the old file is then unchanged.
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
    """Rename a damaged file, so that its content is not lost, and return its new path.

    :raises OSError: when it cannot be renamed.
    """
    return path.replace(path.with_name(f"{path.name}.damaged-{time.time_ns()}"))
