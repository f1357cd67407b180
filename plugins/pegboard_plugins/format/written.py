"""A file before a formatter and after it, and whether anything was lost in between."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.kit import open_resolved

LIMIT_BYTES = 5 << 20
"""A longer file is left as it is."""
LEFT_SHARE = 0.5
"""Formatters move blanks, marks and lines; of letters and digits at least so many stay."""
_NO_LETTERS = bytes(byte for byte in range(0x80) if not chr(byte).isalnum())


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a file, and who may do what with it."""

    content: bytes
    mode: int


def written(path: Path) -> Written | None:
    """A regular file that is not too long; None for anything else, and behind links."""
    try:
        number = open_resolved(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LIMIT_BYTES:
        os.close(number)
        return None
    with os.fdopen(number, "rb") as file:
        return Written(content=file.read(), mode=stat.S_IMODE(facts.st_mode))


def lost(before: Written, after: Written) -> str:
    """What a formatter cannot have meant to do to a file; empty if all is well."""
    if before.content.strip() and not after.content.strip():
        return "it left nothing of the file"
    if _letters(after.content) < _letters(before.content) * LEFT_SHARE:
        return "it left less than half of the file"
    return "it left no text in UTF-8" if _is_text(before) and not _is_text(after) else ""


def set_mode(path: Path, mode: int) -> None:
    """Give the file a mode, unless it is gone or a link by now."""
    with suppress(OSError):
        number = open_resolved(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fchmod(number, mode)
        finally:
            os.close(number)


def _letters(content: bytes) -> int:
    return len(content.translate(None, _NO_LETTERS))


def _is_text(file: Written) -> bool:
    """Whether it is UTF-8: of an older encoding too few letters may stay to tell it by."""
    if b"\0" in file.content:
        return False
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return True
