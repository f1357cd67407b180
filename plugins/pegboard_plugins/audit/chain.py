"""The lines of the audit log, each with the digest of the line before it.

A line begins with `{"v":2,` and ends with `,"hash":"..."}`. The digest covers the bytes before this
end, so that a blank, an escape or a repeated key is a change. Lines without a version have a digest
of their values, sorted by key; their bytes must equal the encoding of the values.

A second file records the end of the log, so that a removal of lines is detected. It is also the
log's lock, and is never renamed. It has two records. Only the older one is overwritten, so a crash
during the write leaves the other.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

FIRST_DIGEST = "0" * 64
"""Stands for the line before the first."""
LONGEST_LINE_BYTES = 256 << 10
"""So far from the end of a file its last line begins at the most."""
_VERSION = 2
_BEGINNING = b'{"v":2,'
_CUT = "a line that was cut"
"""The beginning of the note about a line that a crash, and not an edit, has left half-written."""
ZERO = b"\0"
"""No line has one; a power cut may leave some in the place of a line that was not on the disk."""


class ChainLink(msgspec.Struct, frozen=True):
    """The position of a line in the chain: its number, from 1, and its digest."""

    seq: int = 0
    digest: str = FIRST_DIGEST


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed line of the log: its position in the chain, and its fault, if any.

    A line of the kind `repaired` describes the log itself. Its text is the `note` if a crash had
    cut a line, or the `loss` if data were lost. Both are "" for other lines.
    """

    link: ChainLink
    fault: str = ""
    note: str = ""
    loss: str = ""


def line_after(before: ChainLink, kind: str, facts: Mapping[str, Any]) -> tuple[bytes, ChainLink]:
    """Return the line with the values `facts` that follows `before`, and its place in the chain."""
    entry = {
        "v": _VERSION,
        "seq": before.seq + 1,
        "at": time.time_ns() // 1_000_000,
        "kind": kind,
        **facts,
        "prev": before.digest,
    }
    body = msgspec.json.encode(entry)[:-1]
    digest = hashlib.sha256(body).hexdigest()
    return body + _ending(digest) + b"\n", ChainLink(before.seq + 1, digest)


def cut_note(count: int) -> str:
    """Return the note about a line of which a crash has left only `count` bytes."""
    return f"{_CUT} after {count} bytes was taken out"


def read_line(line: bytes, before: ChainLink) -> LogLine:
    """Parse the line that should follow `before`, with or without its line end."""
    text = line.removesuffix(b"\n")
    try:
        entry = msgspec.json.decode(text)
        digest = str(entry.pop("hash"))
    except (msgspec.DecodeError, KeyError, AttributeError, TypeError):
        return LogLine(link=before, fault="it is not a line of this log")
    if entry.get("seq") != before.seq + 1 or entry.get("prev") != before.digest:
        return LogLine(link=before, fault="it does not follow the line before it")
    if not _is_as_written(text, entry, digest):
        return LogLine(link=before, fault="it was changed")
    link, found = ChainLink(before.seq + 1, digest), str(entry.get("found", ""))
    if entry.get("kind") != "repaired":
        return LogLine(link=link)
    return (
        LogLine(link=link, note=found) if found.startswith(_CUT) else LogLine(link=link, loss=found)
    )


def last_link(tail: bytes) -> ChainLink:
    """Return the position of the last line in the bytes of a log file.

    An invalid last line gets the number 0, so that the next line does not follow it.
    """
    text = tail.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        entry = msgspec.json.decode(text)
        return ChainLink(int(entry["seq"]), str(entry["hash"]))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return ChainLink(0, hashlib.sha256(text).hexdigest())


def first_link(line: bytes) -> ChainLink:
    """Return the position of the line that this line claims to follow.

    :raises ValueError: when it is not a line of the log.
    """
    try:
        entry = msgspec.json.decode(line)
        return ChainLink(int(entry["seq"]) - 1, str(entry["prev"]))
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a line of the log: {line[:80]!r}") from error


def full_file(log: Path, last: int) -> Path:
    """Return the path of a full (closed) log file, from the number of its last line."""
    return log.with_name(f"{log.stem}-{last}{log.suffix}")


def full_files(log: Path) -> list[tuple[int, Path]]:
    """Return the full (closed) log files with their last lines' numbers, oldest first."""
    return sorted(_numbered(log))


def _numbered(log: Path) -> Iterator[tuple[int, Path]]:
    for path in log.parent.glob(f"{log.stem}-*{log.suffix}"):
        number = path.stem.removeprefix(f"{log.stem}-")
        if number.isdecimal():
            yield int(number), path


def newest_link(log: Path) -> ChainLink:
    """Return the number and digest of the audit log's last line; `ChainLink()` if it has none.

    If the log is empty or missing, that line is in the newest full file.
    """
    full = full_files(log)
    path = log if not full or (log.exists() and log.stat().st_size) else full[-1][1]
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LONGEST_LINE_BYTES))
            return last_link(file.read())
    except FileNotFoundError:
        return ChainLink()


def _ending(digest: str) -> bytes:
    return f',"hash":"{digest}"}}'.encode()


def _is_as_written(text: bytes, entry: Mapping[str, Any], digest: str) -> bool:
    """Return whether a line's bytes match its digest; `entry` has the line's other values."""
    if text.startswith(_BEGINNING):
        body = text.removesuffix(_ending(digest))
        return body != text and digest == hashlib.sha256(body).hexdigest()
    values = hashlib.sha256(msgspec.json.encode(entry, order="sorted")).hexdigest()
    return digest == values and text == msgspec.json.encode({**entry, "hash": digest})


WAIT_S = 30.0
"""So long a writer waits for others; each takes a millisecond, ten when the disk is busy."""
_POLL_S = 0.002
_SLOT_BYTES = 512
"""A sector, which a disk writes as a whole."""
_SLOTS = 2


class LogHead(msgspec.Struct, frozen=True, kw_only=True):
    """The record of the log's end: its last line, and the size of the file that ends with it.

    `base` is the line before the oldest stored line. `turn` is the record's own number. `lost` is
    the number of the first line that reports lost data and that no user has acknowledged, or 0.
    """

    last: ChainLink = ChainLink()
    size: int = 0
    base: ChainLink = ChainLink()
    turn: int = 0
    lost: int = 0


def head_file(log: Path) -> Path:
    """Return the file next to the log that records its end."""
    return log.with_suffix(".head")


@contextmanager
def locked(log: Path, *, writing: bool, wait_s: float = WAIT_S) -> Iterator[int]:
    """Lock the log for writing or reading; yield the descriptor of the file that records its end.

    :raises OSError: when the file cannot be opened, or stays locked by others for `wait_s`.
    """
    flags = os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY
    number = os.open(head_file(log), flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock(number, fcntl.LOCK_EX if writing else fcntl.LOCK_SH, wait_s)
        yield number
    finally:
        os.close(number)


def _lock(number: int, kind: int, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            return fcntl.flock(number, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise TimeoutError(f"another process has locked it for {wait_s:g} s") from None
            time.sleep(_POLL_S)


def read_head(number: int) -> LogHead | None:
    """Return the newest complete record of the log's end; `number` is the file's descriptor."""
    found = (_record(os.pread(number, _SLOT_BYTES, at * _SLOT_BYTES)) for at in range(_SLOTS))
    heads = [head for head in found if head is not None]
    return max(heads, key=lambda head: head.turn, default=None)


def write_head(number: int, head: LogHead) -> None:
    """Overwrite the older of the head file's two records, and flush the file to the disk."""
    body = msgspec.json.encode(head)
    slot = f"{_sum(body)} ".encode() + body
    content = slot.ljust(_SLOT_BYTES - 1) + b"\n"
    if os.pwrite(number, content, head.turn % _SLOTS * _SLOT_BYTES) < _SLOT_BYTES:
        raise OSError("the disk is full")
    to_disk(number)


def to_disk(number: int) -> None:
    """Flush the data of the file with this descriptor to the disk."""
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has the slower one alone
    sync(number)


def _record(slot: bytes) -> LogHead | None:
    total, _, body = slot.rstrip().partition(b" ")
    if total.decode(errors="replace") != _sum(body):
        return None
    try:
        return msgspec.json.decode(body, type=LogHead)
    except msgspec.DecodeError:
        return None


def _sum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
