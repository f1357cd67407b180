"""The lines of the audit log, each of which has the digest of the one before it."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

FIRST_DIGEST = "0" * 64
"""Stands for the line before the first."""
ZERO = b"\0"
"""No line has one; a power cut may leave some in the place of a line that was not on the disk."""


class Link(msgspec.Struct, frozen=True):
    """A line that others follow: its number, from 1, and its digest."""

    seq: int = 0
    digest: str = FIRST_DIGEST


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line as it was read: its own link, and what is wrong with it, if anything is.

    `note` is what a line says that was written because something was found damaged.
    """

    link: Link
    fault: str = ""
    note: str = ""


def line_after(before: Link, kind: str, facts: Mapping[str, Any]) -> tuple[bytes, Link]:
    """The next line, with its end, and its link."""
    entry = {
        "seq": before.seq + 1,
        "at": time.time_ns() // 1_000_000,
        "kind": kind,
        **facts,
        "prev": before.digest,
    }
    digest = _digest(entry)
    return msgspec.json.encode({**entry, "hash": digest}) + b"\n", Link(before.seq + 1, digest)


def read_line(line: bytes, before: Link) -> Line:
    """The line that should follow `before`."""
    try:
        entry = msgspec.json.decode(line)
        digest = entry.pop("hash")
    except (msgspec.DecodeError, KeyError, AttributeError, TypeError):
        return Line(link=before, fault="it is not a line of this log")
    if entry.get("seq") != before.seq + 1 or entry.get("prev") != before.digest:
        return Line(link=before, fault="it does not follow the line before it")
    if digest != _digest(entry):
        return Line(link=before, fault="it was changed")
    note = str(entry.get("found", "")) if entry.get("kind") == "repaired" else ""
    return Line(link=Link(before.seq + 1, digest), note=note)


def last_link(tail: bytes) -> Link:
    """The link of the last line of a text, whatever came before it.

    A last line that is none gets the number 0, so that what follows is seen not to follow it.
    """
    text = tail.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        entry = msgspec.json.decode(text)
        return Link(int(entry["seq"]), str(entry["hash"]))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return Link(0, hashlib.sha256(text).hexdigest())


def first_link(line: bytes) -> Link:
    """What the line says that it follows.

    :raises ValueError: when it is not a line of the log.
    """
    try:
        entry = msgspec.json.decode(line)
        return Link(int(entry["seq"]) - 1, str(entry["prev"]))
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a line of the log: {line[:80]!r}") from error


def full_file(log: Path, last: int) -> Path:
    """The name of a full file of the log whose last line has this number."""
    return log.with_name(f"{log.stem}-{last}{log.suffix}")


def full_files(log: Path) -> list[tuple[int, Path]]:
    """The full files with the numbers of their last lines, oldest first."""
    return sorted(_numbered(log))


def _numbered(log: Path) -> Iterator[tuple[int, Path]]:
    for path in log.parent.glob(f"{log.stem}-*{log.suffix}"):
        number = path.stem.removeprefix(f"{log.stem}-")
        if number.isdecimal():
            yield int(number), path


def _digest(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(entry, order="sorted")).hexdigest()
