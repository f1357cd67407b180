"""The texts of matching lines and of the lines around each, read from the file itself.

A search follows file names, so a link created meanwhile could lead it out of the project. This
module therefore opens files without following links, and shows only text that it reads itself.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard.files import line_text, open_resolved

LIMIT_LINE = 2000
"""Letters of a line that are shown."""
_LONGEST_BYTES = 4 * (LIMIT_LINE + 1)
"""As many letters as are shown, and one more, have at most so many bytes."""
_BEFORE_BYTES = 1 << 16
"""How far back the lines before a match are looked for."""
_SKIPPED_BYTES = 1 << 18
_MARKED_BYTES = 8 << 20
_MARK = "\ufeff"
"""Files that begin so are searched as text of another form, which does not start where it says."""
_MARK_BYTES = 4


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A match in a file: `line` counts from 1, and the line starts at byte `start`.

    If the search only counts, there is one place per file, and `count` is its number of matches.
    """

    path: str
    line: int = 0
    start: int = 0
    count: int = 1


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of context lines to show before and after each match."""

    before: int
    after: int


class MatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line to show; `found` is true for a match and false for a context line."""

    number: int
    text: str
    found: bool


def lines_of(path: str, places: Iterable[Place], around: Around) -> list[MatchLine]:
    """Return the matches in a file that still exist, with context lines, in order of lines."""
    try:
        number = open_resolved(Path(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return []
        lines: dict[int, MatchLine] = {}
        for line in _lines(file, places, around):
            if line.found or line.number not in lines:
                lines[line.number] = line
    return [lines[each] for each in sorted(lines)]


def _lines(file: BinaryIO, places: Iterable[Place], around: Around) -> Iterator[MatchLine]:
    from pegboard.files import file_encoding  # not before a file is searched
    from pegboard.unstable import marked_encoding

    encoding = marked_encoding(file.read(_MARK_BYTES))
    if encoding:
        file.seek(0)
        text = file.read(_MARKED_BYTES).decode(encoding, errors="replace")
        yield from _chosen(text.removeprefix(_MARK).split("\n"), places, around)
        return
    found = [(place, *each) for place in places for each in _raw_lines(file, place, around)]
    # The whole file says what it is written in; few have lines that are not UTF-8.
    encoding = "utf-8" if all(_is_utf_8(raw) for _, _, raw in found) else file_encoding(file)
    for place, number, raw in found:
        yield MatchLine(number=number, text=line_text(raw, encoding), found=number == place.line)


def _raw_lines(file: BinaryIO, place: Place, around: Around) -> Iterator[tuple[int, bytes]]:
    before = _before(file, place.start, around.before)
    if before is not None:
        pieces = [*before, *islice(_following(file), 1 + around.after)]
        yield from enumerate(pieces, place.line - len(before))


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _chosen(texts: list[str], places: Iterable[Place], around: Around) -> Iterator[MatchLine]:
    for place in places:
        first = max(place.line - around.before, 1)
        chosen = texts[first - 1 : place.line + around.after]
        for number, text in enumerate(chosen if place.line <= len(texts) else (), first):
            yield MatchLine(number=number, text=text, found=number == place.line)


def _before(file: BinaryIO, start: int, count: int) -> list[bytes] | None:
    """Return up to `count` lines before the byte offset `start`, and move the file to `start`.

    Return None if no line starts there. Return fewer lines if they are very long.
    """
    back = min(start, _BEFORE_BYTES if count else 1)
    file.seek(start - back)
    text = file.read(back)
    if not text:
        return []
    if not text.endswith(b"\n"):
        return None
    lines = text[:-1].split(b"\n")
    whole = lines if back == start else lines[1:]
    return [line[:_LONGEST_BYTES] for line in whole[len(whole) - min(count, len(whole)) :]]


def _following(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line from the file's position on, without its line end; cut a long line."""
    while line := file.readline(_LONGEST_BYTES):
        yield line.removesuffix(b"\n")
        piece = line
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(_SKIPPED_BYTES)
