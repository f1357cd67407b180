"""File names as JSON strings, although the bytes of a name need not be UTF-8.

A byte that is not UTF-8 is written as U+FFFD and two hexadecimal digits. U+FFFD itself is written
as its three bytes, so that each name has only one form.
"""

import os
import re

_MARK = "\ufffd"
_BYTES = re.compile(f"{_MARK}([0-9A-F]{{2}})")
_UNSTORABLE = re.compile(f"[\udc80-\udcff{_MARK}]")


def stored_name(name: str) -> str:
    """Return the form of a file name or path for storage and display."""
    if name.isascii():
        return name
    return _UNSTORABLE.sub(
        lambda found: "".join(f"{_MARK}{byte:02X}" for byte in os.fsencode(found[0])), name
    )


def name_of(stored: str) -> str:
    """Decode a stored file name or path to the string that functions of `os` need."""
    if stored.isascii():
        return stored
    return os.fsdecode(
        b"".join(
            bytes.fromhex(piece) if number % 2 else os.fsencode(piece)
            for number, piece in enumerate(_BYTES.split(stored))
        )
    )
