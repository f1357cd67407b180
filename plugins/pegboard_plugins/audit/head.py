"""The end of the audit log, kept in a second file, so that lines cannot go from it unnoticed.

That file is the lock of the log, too: it is never renamed. It has room for two records, of
which the older one is overwritten, so that a crash while one is written leaves the other.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pegboard_plugins.audit.chain import Link

WAIT_S = 30.0
"""So long a writer waits for others; each takes a millisecond, ten when the disk is busy."""
_POLL_S = 0.002
_SLOT_BYTES = 512
"""A sector, which a disk writes as a whole."""
_SLOTS = 2


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the log: the last line, and the size of the file that it ends.

    `base` is the line before the oldest that is kept. `turn` counts the records. `lost` is the
    first line that tells of a loss which nobody has acknowledged, 0 if there is none.
    """

    last: Link = Link()
    size: int = 0
    base: Link = Link()
    turn: int = 0
    lost: int = 0


def head_file(log: Path) -> Path:
    """The file beside the log that knows its end."""
    return log.with_suffix(".head")


@contextmanager
def locked(log: Path, *, writing: bool) -> Iterator[int]:
    """The descriptor of the head's file while the log is locked, for oneself or for readers.

    :raises OSError: when it cannot be opened, or others have held it for 30 s.
    """
    flags = os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY
    number = os.open(head_file(log), flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock(number, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
        yield number
    finally:
        os.close(number)


def _lock(number: int, kind: int) -> None:
    end = time.monotonic() + WAIT_S
    while True:
        try:
            return fcntl.flock(number, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(f"another process has locked it for {WAIT_S:g} s") from None
            time.sleep(_POLL_S)


def read_head(number: int) -> Head | None:
    """The newest whole record, None when there is none."""
    found = (_record(os.pread(number, _SLOT_BYTES, at * _SLOT_BYTES)) for at in range(_SLOTS))
    heads = [head for head in found if head is not None]
    return max(heads, key=lambda head: head.turn, default=None)


def write_head(number: int, head: Head) -> None:
    """Put the record in the place of the older one; it is on the disk when this returns."""
    body = msgspec.json.encode(head)
    slot = f"{_sum(body)} ".encode() + body
    content = slot.ljust(_SLOT_BYTES - 1) + b"\n"
    if os.pwrite(number, content, head.turn % _SLOTS * _SLOT_BYTES) < _SLOT_BYTES:
        raise OSError("the disk is full")
    to_disk(number)


def to_disk(number: int) -> None:
    """Have the disk keep what was written to this file."""
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has the slower one alone
    sync(number)


def _record(slot: bytes) -> Head | None:
    total, _, body = slot.rstrip().partition(b" ")
    if total.decode(errors="replace") != _sum(body):
        return None
    try:
        return msgspec.json.decode(body, type=Head)
    except msgspec.DecodeError:
        return None


def _sum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
