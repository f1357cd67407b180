"""The output of a process, stored within limits."""

import os
from codecs import getincrementaldecoder, utf_8_decode
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

SPILL_LIMIT_BYTES = 64 << 20
"""The longest file of output; what a runaway process writes beyond it is lost."""
ERRORS_LIMIT_BYTES = 64 << 10
"""What is kept of a program's standard error."""
FLOOD_TICK_S = 0.05
"""How often a program is looked at for having printed too much."""


class Output:
    """The start and the end of a process's output, and a file for the whole of a long output."""

    def __init__(
        self, limit_bytes: int, spill_dir: Path | None, on_output: Callable[[str], None] | None
    ) -> None:
        self._half = max(limit_bytes // 2, 1)
        self._limit = self._half * 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        self._spill_dir = spill_dir
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._on_output = on_output
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def write(self, data: bytes) -> None:
        """Add the next bytes of output, and pass the text in these bytes to `on_output`."""
        before, self.total = self.total, self.total + len(data)
        room = max(self._half - len(self._head), 0)
        self._head += data[:room]
        self._tail += data[room:]
        if self.total > self._limit:
            self._spill(data, first=before <= self._limit)
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_output is not None and (text := self._decode(data)):
            self._on_output(text)

    def _spill(self, data: bytes, *, first: bool) -> None:
        """Append to the output file; if the disk is full, only this file is lost."""
        try:
            if first and self._spill_dir is not None:
                self._path, self._file = _new_file(self._spill_dir)
                data = bytes(self._head + self._tail)
            if self._file is not None:
                room = SPILL_LIMIT_BYTES - self._file.tell()
                self._file.write(data[: max(room, 0)])
        except OSError:
            self._lose_the_file()

    def close(self) -> None:
        """Close the output file; if a command has removed the file, forget its path."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
            if self._path is not None:
                self._path.stat()
        except OSError:
            self._lose_the_file()

    def _lose_the_file(self) -> None:
        file, path = self._file, self._path
        self._file = self._path = None
        with suppress(OSError):
            if path is not None:
                path.unlink()
        with suppress(OSError):
            if file is not None:
                file.close()

    @property
    def truncated(self) -> bool:
        """Whether a part of the output is missing in `text`."""
        return self.total > self._limit

    @property
    def path(self) -> Path | None:
        """The file with the whole output, or None if the output is not in a file."""
        return self._path

    @property
    def text(self) -> str:
        """The output, with a note in place of an omitted middle part."""
        return self._cut() if self.truncated else (self._head + self._tail).decode(errors="replace")

    def _cut(self) -> str:
        head, _ = utf_8_decode(self._head, "replace", False)  # noqa: FBT003 - without a half letter
        tail = _from_a_letter(self._tail[-self._half :]).decode(errors="replace")
        missing = self.total - self._limit
        return f"{head}\n\n[{missing:,} bytes of the output are left out here]\n\n{tail}"


def _from_a_letter(text: bytearray) -> bytearray:
    """Drop the remaining bytes of a UTF-8 character that started before the text."""
    rests = (byte & 0xC0 == 0x80 for byte in text[:3])  # noqa: PLR2004 - RFC 3629 3
    return text[sum(takewhile(bool, rests)) :]


def _new_file(folder: Path) -> tuple[Path, BinaryIO]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run_{os.urandom(8).hex()}.txt"
    return path, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


class BoundedOutput:
    """The output of a program, up to a limit of bytes; the rest is lost."""

    tick_s = FLOOD_TICK_S

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self.output = bytearray()
        self.errors = bytearray()
        self.flooded = False

    def hear(self, fd: int, data: bytes) -> None:
        """Add bytes of standard output (1) or standard error (2)."""
        output, limit = (self.output, self._limit) if fd == 1 else (self.errors, ERRORS_LIMIT_BYTES)
        room = limit - len(output)
        output += data[:room]
        self.flooded |= fd == 1 and len(data) > room

    def exceeded(self) -> str:
        """Return "output" if standard output has exceeded the limit, or else ""."""
        return "output" if self.flooded else ""
