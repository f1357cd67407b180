"""Placeholders for missing protected paths: empty folders while a sandboxed process runs.

A mount needs an existing path. Git ignores an empty folder, and no program takes it for a
configuration file. A lock file per project lists the created folders. The last process of the
project removes them, including those that killed processes have left.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pegboard_plugins.sandbox.hookspecs import SandboxPolicy


@contextmanager
def placeholders(policy: SandboxPolicy) -> Iterator[None]:
    """Make every protected path exist during the `with` block, at least as an empty folder.

    :raises OSError: when a missing path cannot be created.
    """
    policy.keep.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(bytes(policy.worktree)).hexdigest()[:32]
    lock = os.open(policy.keep / name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)  # its only exclusive holder removes folders, and is gone
        for path in sorted(policy.protected):
            if not path.exists() and os.access(path.parent, os.W_OK):
                os.write(lock, os.fsencode(path) + b"\0")
                path.mkdir(exist_ok=True)
        yield
    finally:
        _remove_made(lock)


def _remove_made(lock: int) -> None:
    """Remove the created folders, unless another process still holds the lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.lseek(lock, 0, os.SEEK_SET)
        made = os.read(lock, os.fstat(lock).st_size).split(b"\0")
        for path in sorted(filter(None, made), reverse=True):
            with suppress(OSError):  # it is no longer there, or somebody has filled it
                Path(os.fsdecode(path)).rmdir()
        os.ftruncate(lock, 0)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
