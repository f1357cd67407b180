"""The warnings that the user has not read today: each appears at most once a day.

A run prints at most two lines: the most serious warning, and where the others are.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec

from pegboard.unstable import temporary_beside

FILE = "warnings.json"
MOST_PROJECTS = 200
"""The maximum number of projects in the file; those with the oldest warnings are dropped."""
LIMIT_BYTES = 1 << 20
LINES = 2
"""The maximum number of lines of warnings at the start of a run."""


class _Day(msgspec.Struct):
    """The digests of the warnings that a project's runs have printed on the date `day`."""

    day: str
    shown: list[str] = []


def unread(texts: Iterable[str], *, project_id: str, state: Path, today: date) -> list[str]:
    """Return the warnings that no run has printed today, and record them; blocks.

    If the record cannot be written, all warnings are returned each time.
    """
    file = state / FILE
    known = _read(file)
    noted = known.pop(project_id, None)
    day = today.isoformat()
    if noted is None or noted.day != day:
        noted = _Day(day)
    named = {hashlib.sha256(text.encode(errors="replace")).hexdigest(): text for text in texts}
    fresh = {name: text for name, text in named.items() if name not in noted.shown}
    if fresh:
        noted.shown += fresh
        known[project_id] = noted
        with suppress(OSError):
            _write(file, dict(list(known.items())[-MOST_PROJECTS:]))
    return list(fresh.values())


def shortened(texts: Sequence[str], *, lines: int = LINES) -> Sequence[str]:
    """Return at most `lines` warnings; the last line then says where to find the others."""
    if len(texts) <= lines:
        return texts
    more = len(texts) - lines + 1
    return (*texts[: lines - 1], f"{more} more: `pegboard plugins doctor` shows them")


def _read(file: Path) -> dict[str, _Day]:
    """Return the printed warnings by project id; empty if the file is missing or damaged."""
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(LIMIT_BYTES), type=dict[str, _Day])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _write(file: Path, known: dict[str, _Day]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = temporary_beside(file)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(msgspec.json.encode(known))
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
