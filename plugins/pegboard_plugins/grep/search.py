"""The search where ripgrep is not installed: a program with its output and its exit codes.

It is run by its path, as `python search.py PATTERN PATH INCLUDE`, because the package around
it would take 0.1 s to import.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import BinaryIO

from pegboard import walk_files

PROBE_BYTES = 8192
LONGEST_FILE_BYTES = 64 << 20
LONGEST_LINE_BYTES = 4000


def main(pattern: str, target: str, include: str) -> int:
    """Prints `path NUL number : line` for each line that matches; answers the exit code."""
    try:
        expression = re.compile(pattern.encode(errors="surrogateescape"), re.MULTILINE)
    except re.error as error:
        print(f"{pattern!r} is not a regular expression: {error}")  # noqa: T201 - a program's output
        return 2
    found = False
    for path in _files(target, include):
        for number, line in _matches(path, expression):
            found = True
            sys.stdout.buffer.write(b"%s\0%d:%s\n" % (os.fsencode(path), number, line))
    return 0 if found else 1


def _files(target: str, include: str) -> Iterator[str]:
    if Path(target).is_file():
        yield target
        return
    patterns = _alternatives(include)
    for path in walk_files(Path(target)):
        name = os.path.relpath(path, target) if "/" in include else os.path.basename(path)  # noqa: PTH119
        if not include or any(fnmatch(name, pattern) for pattern in patterns):
            yield path


def _alternatives(pattern: str) -> list[str]:
    """`*.{a,b}` as the patterns that it stands for."""
    pieces = [
        piece[1:-1].split(",") if piece.startswith("{") else [piece]
        for piece in re.split(r"(\{[^{}]*\})", pattern)
    ]
    return ["".join(choice) for choice in product(*pieces)]


def _matches(path: str, expression: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    content = _content(path)
    # A file without any match is passed over at once, which is what most files are.
    anchored = b"\\A" in expression.pattern or b"\\Z" in expression.pattern
    if not anchored and expression.search(content) is None:
        return
    for number, line in enumerate(content.split(b"\n"), start=1):
        if expression.search(line):
            yield number, line[:LONGEST_LINE_BYTES]


def _content(path: str) -> bytes:
    """The text of a regular file; nothing for others, and for binary or very long ones."""
    try:
        with open(path, "rb", opener=_opener) as file:
            return _text(file)
    except OSError:
        return b""


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _text(file: BinaryIO) -> bytes:
    facts = os.fstat(file.fileno())
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LONGEST_FILE_BYTES:
        return b""
    start = file.read(PROBE_BYTES)
    return b"" if b"\0" in start else start + file.read()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
