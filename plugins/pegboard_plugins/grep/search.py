"""The search where ripgrep is not installed: a program with its output and its exit codes.

It is run by its path, as `python search.py FACTS`, the facts being a query in JSON, because the
package around it would take 0.1 s to import.
"""

import codecs
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import regex  # type: ignore[import-untyped]  # it has no types

from pegboard import glob_expression, walk_files

BLOCK_BYTES = 16 << 20
"""A longer file is searched piece by piece, each of whole lines."""
MOST_MATCHES = 5000
"""So many of a file are held back until its end, where it may still turn out to be no text."""
MARKED_BYTES = 64 << 20
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CODE = re.compile(r"\\(?:[xuU]\{([0-9A-Fa-f]{1,8})\}|.)", re.DOTALL)
"""An escape, with the number of a letter as ripgrep's expressions may name it."""
Expression = Any
"""One of `regex`, which knows `\\p{L}` and `[[:alpha:]]` as ripgrep does, and Python's own not."""
_Place = tuple[int, int]
"""A line's number from 1, and where it starts, in bytes."""


def main(facts: dict[str, Any]) -> int:
    """Prints `path NUL number : start :` for each line that matches, or `path NUL count`.

    Answers the exit code.
    """
    pattern = facts["pattern"]
    try:
        expression = regex.compile(_CODE.sub(_spelt, pattern), regex.MULTILINE | regex.VERSION1)
    except (regex.error, OverflowError, RecursionError) as error:
        print(f"{pattern!r} is not a regular expression: {error}")  # noqa: T201 - a program's output
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


def _spelt(escape: "re.Match[str]") -> str:
    return rf"\U{int(escape[1], 16):08x}" if escape[1] else escape[0]


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


def _matches(path: str, expression: Expression) -> list[_Place]:
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


def _found(file: BinaryIO, expression: Expression) -> list[_Place]:
    places: list[_Place] = []
    number, start = 1, 0
    for block in _blocks(file):
        encoding = next((name for mark, name in _MARKS.items() if block.startswith(mark)), "")
        if encoding and start == 0:
            content = (block + file.read(MARKED_BYTES)).decode(encoding, errors="replace").encode()
            return [] if b"\0" in content else [*_lines(content, expression, 1, 0)]
        if b"\0" in block:
            return []
        if len(places) < MOST_MATCHES:
            places += _lines(block, expression, number, start)
        number += block.count(b"\n")
        start += len(block)
    return places


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The content in pieces that end with a line."""
    while block := file.read(BLOCK_BYTES):
        yield block + file.readline() if len(block) == BLOCK_BYTES else block


def _lines(content: bytes, expression: Expression, number: int, start: int) -> Iterator[_Place]:
    # Content without any match is passed over at once, which is what most files are. Not where
    # the expression looks around, and could see another line.
    looks = any(
        sign in expression.pattern for sign in ("(?=", "(?!", "(?<=", "(?<!", r"\A", r"\Z", r"\z")
    )
    if not looks and expression.search(content.decode(errors="replace")) is None:
        return
    for line in content.removesuffix(b"\n").split(b"\n"):
        if expression.search(line.decode(errors="replace")):
            yield number, start
        number += 1
        start += len(line) + 1


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
