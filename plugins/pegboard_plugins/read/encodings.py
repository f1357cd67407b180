"""The encodings of text files: told by their first bytes, and shown as letters."""

import codecs
from io import TextIOWrapper
from typing import BinaryIO, Protocol

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark begins alike
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UNKNOWN = "\ufffd"


class Source(Protocol):
    """Where lines come from."""

    def readline(self, limit: int, /) -> bytes:
        """The next line with its end, or a piece of it; nothing at the end."""


class Transcoded:
    """A file of another encoding, line by line in UTF-8. It takes over the file."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._text = TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")

    def readline(self, limit: int, /) -> bytes:
        """The next line, of a long one as many letters as `limit`."""
        return self._text.readline(limit).encode(errors="replace")


def marked_encoding(start: bytes) -> str:
    """The encoding that a byte order mark names, as Python calls it; empty without one."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")


def line_text(raw: bytes, limit: int) -> tuple[str, str]:
    """The letters of a line, one more than `limit` of a long one, and as what they were read.

    That is empty for UTF-8, `cp1252` for a line with letters of Windows-1252 (which holds
    Latin-1's) and none of UTF-8, and `bytes` for one with bytes that are neither.
    """
    text = raw.decode(errors="replace")[: limit + 1]
    if UNKNOWN not in text[:limit] or UNKNOWN.encode() in raw:
        return text, ""
    if text.replace(UNKNOWN, "").isascii():
        western = raw[: limit + 1].decode("cp1252", errors="replace")
        if UNKNOWN not in western:
            return western, "cp1252"
    return text, "bytes"
