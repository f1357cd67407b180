"""A log of every decision and tool call, in which no line can be changed unnoticed."""

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from pegboard.errors import ToolError

LONGEST_LINE_BYTES = 256 << 10
"""So far from the end the last line begins at the most."""
LONGEST_TEXT = 500
"""Letters of a text that are kept; a command line may hold a whole file."""
MOST_TEXTS = 50
_FIRST = "0" * 64


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` found: how many lines are in order, and the first that is not, from 1."""

    lines: int
    broken: int | None = None
    reason: str = ""


class _Link(msgspec.Struct, frozen=True):
    """The end of the chain: where the file ended, and the last line's number and digest."""

    size: int
    seq: int
    digest: str


class Audit:
    """The log in one file, which several processes may write; each line names the one before.

    Who can write the file can also make a whole new one: keep the last digest elsewhere to
    notice that, or that lines are gone from the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._link: _Link | None = None

    async def write(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Append a line; it is with the system when this returns.

        :raises ToolError: when it cannot be written: what leaves no trace shall not run.
        """
        try:
            await asyncio.to_thread(self._append, kind, {key: _short(facts[key]) for key in facts})
        except OSError as error:
            raise ToolError(f"the audit log {self._path} cannot be written: {error}") from error

    def _append(self, kind: str, facts: Mapping[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            last = self._last(file)
            line = _line(kind, facts, last)
            file.write(line + b"\n")
            digest = msgspec.json.decode(line)["hash"]
            self._link = _Link(last.size + len(line) + 1, last.seq + 1, digest)

    def _last(self, file: BinaryIO) -> _Link:
        """The end of the chain; read again when another process has written."""
        size = os.fstat(file.fileno()).st_size
        if self._link is not None and self._link.size == size:
            return self._link
        if not size:
            return _Link(0, 0, _FIRST)
        file.seek(max(0, size - LONGEST_LINE_BYTES))
        tail = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        try:
            entry = msgspec.json.decode(tail)
            return _Link(size, int(entry["seq"]), str(entry["hash"]))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            # A line that was cut by a crash stays as it is; `verify` names it.
            return _Link(size, 0, hashlib.sha256(tail).hexdigest())


def verify(path: Path) -> Audited:
    """Whether each line is as it was written, and follows the one before it."""
    previous, count = _FIRST, 0
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Audited(lines=0)
    with file:
        for number, line in enumerate(file, start=1):
            reason = _fault(line, previous, count + 1)
            if reason:
                return Audited(lines=count, broken=number, reason=reason)
            previous, count = msgspec.json.decode(line)["hash"], number
    return Audited(lines=count)


def _fault(line: bytes, previous: str, seq: int) -> str:
    try:
        entry = msgspec.json.decode(line)
        digest = entry.pop("hash")
    except (msgspec.DecodeError, KeyError, AttributeError):
        return "it is not a line of this log"
    if entry.get("seq") != seq or entry.get("prev") != previous:
        return "it does not follow the line before it"
    return "" if digest == _digest(entry) else "it was changed"


def _line(kind: str, facts: Mapping[str, Any], last: _Link) -> bytes:
    entry = {
        "seq": last.seq + 1,
        "at": time.time_ns() // 1_000_000,
        "kind": kind,
        **facts,
        "prev": last.digest,
    }
    return msgspec.json.encode({**entry, "hash": _digest(entry)})


def _digest(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(entry, order="sorted")).hexdigest()


def _short(value: object) -> object:
    if isinstance(value, str):
        text = value.encode(errors="replace").decode()
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    if isinstance(value, list | tuple):
        return [_short(each) for each in value[:MOST_TEXTS]]
    return value
