"""Sources of lines in UTF-8 from text files, and notes on encodings for the model."""

from io import TextIOWrapper
from typing import BinaryIO, Protocol

_NAMES = {
    "cp1252": "Windows-1252",
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "gb18030": "GB18030",
    "cp950": "Big5",
    "big5hkscs": "Big5-HKSCS",
    "cp949": "EUC-KR",
    "cp1251": "Windows-1251",
    "mac_cyrillic": "Mac Cyrillic",
    "koi8_r": "KOI8-R",
    "koi8_u": "KOI8-U",
    "cp866": "IBM866",
    "cp1253": "Windows-1253",
    "iso8859_7": "ISO 8859-7",
    "cp1250": "Windows-1250",
    "iso8859_2": "ISO 8859-2",
    "cp1254": "Windows-1254",
    "cp1255": "Windows-1255",
    "cp1256": "Windows-1256",
    "cp874": "Windows-874",
}


class LineSource(Protocol):
    """An object from which the read tool reads lines."""

    def readline(self, limit: int, /) -> bytes:
        """Return at most `limit` bytes of the next line, with its line end, or b"" at the end."""


class Transcoded:
    """A file with a byte order mark, read as lines in UTF-8; nothing else may use the file."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._text = TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")
        self._text.read(1)

    def readline(self, limit: int, /) -> bytes:
        """Return at most `limit` characters of the next line, as UTF-8."""
        return self._text.readline(limit).encode(errors="replace")


def encoding_note(encoding: str) -> str:
    """Return a note on the encoding of a file without a byte order mark, or "" for UTF-8."""
    if not encoding:
        return (
            "the file is in several encodings or an unknown one: lines that are not UTF-8 are shown"
            " as Windows-1252, or their bytes as \ufffd"
        )
    return "" if encoding == "utf-8" else f"the file is in {_NAMES.get(encoding, encoding)}"
