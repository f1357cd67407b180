"""A program that searches files where ripgrep is not installed, with ripgrep's exit codes.

It runs as `python search.py QUERY`, with the query as JSON. It runs by its path and not as a
module, because the import of the package around it would take 0.1 s.
"""

import codecs
import json
import os
import stat
import sys
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from pegboard import InvalidInputError
from pegboard.files import glob_expression, walk_files
from pegboard_plugins.grep.expressions import LineExpression, line_expression

BLOCK_BYTES = 16 << 20
"""A longer file is searched piece by piece, each of whole lines."""
MOST_MATCHES = 5000
"""So many of a file are held back until its end, where it may still turn out to be no text."""
MARKED_BYTES = 64 << 20
FOUND, NOTHING, PARTLY = 0, 1, 2
"""How it ends, as ripgrep does."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_Place = tuple[int, int]
"""A line's number from 1, and where it starts, in bytes."""


def main(facts: dict[str, Any]) -> int:
    """Print `path NUL number : start :` for each match, or `path NUL count` for each file.

    Return the exit code. `facts` is the query.
    """
    try:
        expression = line_expression(facts["pattern"])
    except InvalidInputError as error:
        print(error)  # noqa: T201 - a program's output
        return PARTLY
    search = _Search(expression, counting=facts["counting"])
    out = sys.stdout.buffer
    for path in _files(facts["target"], facts["names"], facts["include"], search.missed):
        places, count = search.file(path)
        name = os.fsencode(path)
        if facts["counting"]:
            out.write(b"%s\0%d\n" % (name, count) if count else b"")
        else:
            out.writelines(b"%s\0%d:%d:\n" % (name, *place) for place in places)
    return PARTLY if search.missed else FOUND if search.found else NOTHING


def _files(target: str, names: list[str], include: str, missed: list[str]) -> Iterator[str]:
    if Path(target).is_file():
        yield target
        return
    kinds = [glob_expression(name) for name in names]
    wanted = glob_expression(include or "**")
    start = len(f"{target.rstrip('/')}/")
    for path in walk_files(Path(target), missed=missed.append):
        name = path[start:]
        if wanted.fullmatch(name) and (not kinds or any(kind.fullmatch(name) for kind in kinds)):
            yield path


class _Search:
    """A search of files; `found` says whether any line matched, `missed` lists unreadable files."""

    def __init__(self, expression: LineExpression, *, counting: bool) -> None:
        self.found = False
        self.missed: list[str] = []
        self._expression = expression
        self._counting = counting

    def file(self, path: str) -> tuple[list[_Place], int]:
        """Return the places of up to 5,000 matching lines in a file, and the number of matches.

        Special and binary files have none. The number is exact only if the search counts.
        """
        try:
            with open(path, "rb", opener=_opener) as file:
                regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                places, count = self._lines(_decoded(file)) if regular else ([], 0)
        except OSError:
            self.missed.append(path)
            return [], 0
        self.found = self.found or count > 0
        return places, count

    def _lines(self, file: BinaryIO) -> tuple[list[_Place], int]:
        places: list[_Place] = []
        number, start, more = 1, 0, 0
        for block in _blocks(file):
            if b"\0" in block:
                return [], 0
            room = MOST_MATCHES - len(places)
            if room or self._counting:
                lines = self._expression.lines(block)
                places += [(number + line, start + place) for line, place in islice(lines, room)]
                more += sum(1 for _ in lines) if self._counting else 0
            number += block.count(b"\n")
            start += len(block)
        return places, len(places) + more


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _decoded(file: BinaryIO) -> BinaryIO:
    """Return the file, or its decoded content as UTF-8 if it begins with a byte order mark."""
    start = file.read(max(map(len, _MARKS)))
    file.seek(0)
    encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")
    if not encoding:
        return file
    content = file.read(MARKED_BYTES)
    if encoding == "utf-8":
        return BytesIO(content.removeprefix(codecs.BOM_UTF8))
    return BytesIO(content.decode(encoding, errors="replace").encode())


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content in blocks of whole lines, about 16 MiB each."""
    while block := file.read(BLOCK_BYTES):
        yield block + file.readline() if len(block) == BLOCK_BYTES else block


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
