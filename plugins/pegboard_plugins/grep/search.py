"""The search where ripgrep is not installed: a program with its output and its exit codes.

It is run by its path, as `python search.py FACTS`, the facts being a query in JSON, because the
package around it would take 0.1 s to import.
"""

import codecs
import json
import os
import stat
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from pegboard import (
    InvalidInputError,
    LineExpression,
    glob_expression,
    line_expression,
    walk_files,
)

BLOCK_BYTES = 16 << 20
"""A longer file is searched piece by piece, each of whole lines."""
MOST_MATCHES = 5000
"""So many of a file are held back until its end, where it may still turn out to be no text."""
MARKED_BYTES = 64 << 20
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_Place = tuple[int, int]
"""A line's number from 1, and where it starts, in bytes."""


def main(facts: dict[str, Any]) -> int:
    """Prints `path NUL number : start :` for each line that matches, or `path NUL count`.

    Answers the exit code.
    """
    try:
        expression = line_expression(facts["pattern"])
    except InvalidInputError as error:
        print(error)  # noqa: T201 - a program's output
        return 2
    found = False
    out = sys.stdout.buffer
    for path in _files(facts["target"], facts["names"], facts["include"]):
        places = _matches(path, expression)
        found = found or bool(places)
        name = os.fsencode(path)
        if facts["counting"]:
            out.write(b"%s\0%d\n" % (name, len(places)) if places else b"")
        else:
            out.writelines(b"%s\0%d:%d:\n" % (name, *place) for place in places)
    return 0 if found else 1


def _files(target: str, names: list[str], include: str) -> Iterator[str]:
    if Path(target).is_file():
        yield target
        return
    kinds = [glob_expression(name) for name in names]
    wanted = glob_expression(include or "**")
    start = len(f"{target.rstrip('/')}/")
    for path in walk_files(Path(target)):
        name = path[start:]
        if wanted.fullmatch(name) and (not kinds or any(kind.fullmatch(name) for kind in kinds)):
            yield path


def _matches(path: str, expression: LineExpression) -> list[_Place]:
    """The lines that match; none in what is no regular file, and in binary ones."""
    try:
        with open(path, "rb", opener=_opener) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return []
            return _found(file, expression)
    except OSError:
        return []


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _found(file: BinaryIO, expression: LineExpression) -> list[_Place]:
    places: list[_Place] = []
    number, start = 1, 0
    for block in _blocks(file):
        encoding = next((name for mark, name in _MARKS.items() if block.startswith(mark)), "")
        if encoding and start == 0:
            return _found(BytesIO(_as_utf8(block + file.read(MARKED_BYTES), encoding)), expression)
        if b"\0" in block:
            return []
        if len(places) < MOST_MATCHES:
            places += [(number + line, start + place) for line, place in expression.lines(block)]
        number += block.count(b"\n")
        start += len(block)
    return places


def _as_utf8(content: bytes, encoding: str) -> bytes:
    if encoding == "utf-8":
        return content.removeprefix(codecs.BOM_UTF8)
    return content.decode(encoding, errors="replace").encode()


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The content in pieces that end with a line."""
    while block := file.read(BLOCK_BYTES):
        yield block + file.readline() if len(block) == BLOCK_BYTES else block


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
