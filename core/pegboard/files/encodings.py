"""The encoding of a text file, from its byte order mark or its bytes."""

import codecs
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import BinaryIO

BOM = "\ufeff"
DECIDED_BYTES = 50 << 20
"""The start of a longer file, from which its encoding is guessed; edit does not change it."""
START_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_LINE_BYTES = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark begins alike
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def _guess(pieces: Callable[[], Iterable[bytes]], *, whole: bool) -> str:
    if _is_utf_8(pieces(), whole=whole):
        return "utf-8"
    from pegboard.files.charset import (
        detect_encoding,  # 2 ms that only a text in another encoding pays
    )

    return detect_encoding(pieces, whole=whole)


def marked_encoding(start: bytes) -> str:
    """Return Python's name of the encoding of a byte order mark, or "" without such a mark."""
    return next((named for mark, named in _MARKS if start.startswith(mark)), "")


def content_encoding(content: bytes, *, whole: bool = True) -> str:
    """Return Python's name of the encoding of bytes, or "" if the encoding is unknown.

    Without `whole`, the content may end within a character.
    """
    return marked_encoding(content) or _guess(
        partial(_pieces, BytesIO(content), len(content)), whole=whole
    )


def file_encoding(file: BinaryIO) -> str:
    """Return Python's name of an open file's encoding, as `decode_text` would choose it.

    It is "" for mixed or unknown encodings. Of a file longer than `DECIDED_BYTES` only the first
    MiB is read. The file is read in pieces, and its position afterwards is undefined.
    """
    size = os.fstat(file.fileno()).st_size
    whole = size <= DECIDED_BYTES
    pieces = partial(_pieces, file, size if whole else START_BYTES)
    return marked_encoding(next(pieces(), b"")) or _guess(pieces, whole=whole)


def _pieces(file: BinaryIO, limit: int) -> Iterator[bytes]:
    """Yield pieces of the file from its start, which end at line ends except in very long lines."""
    file.seek(0)
    while limit > 0 and (piece := file.read(min(limit, _PIECE_BYTES))):
        piece += file.readline(_LINE_BYTES)
        limit -= len(piece)
        yield piece


def _is_utf_8(pieces: Iterable[bytes], *, whole: bool) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            decoder.decode(piece)
        decoder.decode(b"", final=whole)
    except UnicodeDecodeError:
        return False
    return True
