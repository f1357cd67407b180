"""The pages of a damaged file: a new header, and the rows of each page.

SQLite cannot read a file with a damaged header. If the schema or inner pages are lost, a leaf page
can still be read without the b-trees that lead to it (sqlite.org, "fileformat2" 1.6 and 2.1). The
table of a row is determined by its values.
"""

import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MAGIC = b"SQLite format 3\0"
PAGE_BYTES = 4096
"""The page size of our databases: SQLite's default."""
_LAYOUT = ">16sH6B12I20x2I"
_WAL = 2
_FRACTIONS = (64, 32, 32)
_SCHEMA_FORMAT = 4
_UTF8 = 1
_VERSION = 3_050_000
_HEAD_BYTES = 100
_LOG_HEAD_BYTES = 32
_FRAME_HEAD_BYTES = 24
_WITH_ROWS = 0x0D
_LINK_BYTES = 4
_MOST_LOCAL = PAGE_BYTES - 35
_LEAST_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FLOAT = 7
_CONSTANTS: dict[int, int | None] = {0: None, 8: 0, 9: 1}
_FIRST_SIZED = 12
_SEVEN_BITS = 0x7F
_BROKEN = (struct.error, IndexError, UnicodeDecodeError, KeyError, ValueError)

Row = tuple[object, ...]


class Pages:
    """The pages of a database file, each in the newest version in the write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        self._newer: dict[int, bytes] = {}
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            self._take(log.read_bytes())

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the rows of every leaf page in use, each with its row number."""
        free = self._free()
        for number in range(1, len(self._content) // PAGE_BYTES + 1):
            if number not in free:
                yield from self._rows_of(number)

    def page(self, number: int) -> bytes:
        """Return the page with this number, from 1; the last page of a truncated file is short."""
        start = (number - 1) * PAGE_BYTES
        return self._newer.get(number) or self._content[start : start + PAGE_BYTES]

    def _take(self, log: bytes) -> None:
        step = _FRAME_HEAD_BYTES + PAGE_BYTES
        salts = log[16:24]
        for start in range(_LOG_HEAD_BYTES, len(log) - step + 1, step):
            if log[start + 8 : start + 16] == salts:  # a frame of this log, and not of an older
                [number] = struct.unpack(">I", log[start : start + 4])
                self._newer[number] = log[start + _FRAME_HEAD_BYTES : start + step]

    def _free(self) -> set[int]:
        """Return the numbers of the free pages, which contain deleted rows."""
        found: set[int] = set()
        [trunk] = struct.unpack(">I", self.page(1)[32:36])
        while trunk and trunk not in found:
            found.add(trunk)
            page = self.page(trunk)
            if len(page) < PAGE_BYTES:
                break
            following, count = struct.unpack(">II", page[:8])
            count = min(count, PAGE_BYTES // _LINK_BYTES - 2)
            found.update(struct.unpack(f">{count}I", page[8 : 8 + count * _LINK_BYTES]))
            trunk = following
        return found

    def _rows_of(self, number: int) -> Iterator[tuple[int, Row]]:
        page = self.page(number)
        head = _HEAD_BYTES if number == 1 else 0
        if len(page) <= head + 8 or page[head] != _WITH_ROWS:
            return
        count = int.from_bytes(page[head + 3 : head + 5])
        for cell in range(count):
            at = head + 8 + 2 * cell
            try:
                yield self._row(page, int.from_bytes(page[at : at + 2]))
            except _BROKEN:
                continue

    def _row(self, page: bytes, at: int) -> tuple[int, Row]:
        size, at = _varint(page, at)
        number, at = _varint(page, at)
        local = size
        if size > _MOST_LOCAL:
            local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (PAGE_BYTES - _LINK_BYTES)
            local = local if local <= _MOST_LOCAL else _LEAST_LOCAL
        payload = bytearray(page[at : at + local])
        link = int.from_bytes(page[at + local : at + local + _LINK_BYTES])
        while len(payload) < size:
            further = self.page(link)
            if not link or len(further) < PAGE_BYTES:
                raise ValueError("the row goes on where nothing is")
            payload += further[_LINK_BYTES : _LINK_BYTES + size - len(payload)]
            link = int.from_bytes(further[:_LINK_BYTES])
        return number, _values(bytes(payload))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length number at the offset `at`, and the offset after the number."""
    value = 0
    for step in range(8):
        value = (value << 7) | (data[at + step] & _SEVEN_BITS)
        if data[at + step] <= _SEVEN_BITS:
            return value, at + step + 1
    return (value << 8) | data[at + 8], at + 9


def _values(payload: bytes) -> Row:
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    found: list[object] = []
    for kind in kinds:
        if kind in _CONSTANTS:
            found.append(_CONSTANTS[kind])
            continue
        sized = kind >= _FIRST_SIZED
        length = (kind - _FIRST_SIZED) // 2 if sized else _INTEGERS.get(kind, 8)
        content = payload[at : at + length]
        if len(content) < length:
            raise ValueError("the row is shorter than it says")
        at += length
        found.append(_value(kind, content))
    return tuple(found)


def _value(kind: int, content: bytes) -> object:
    if kind >= _FIRST_SIZED:
        return content.decode() if kind % 2 else content
    if kind == _FLOAT:
        [number] = struct.unpack(">d", content)
        return number
    return int.from_bytes(content, signed=True)


@contextmanager
def with_header(damaged: Path) -> Iterator[Path]:
    """Yield the damaged file, or if its header is damaged, a copy with a new header.

    :raises OSError: when there is no room for the copy.
    """
    with damaged.open("rb") as file:
        sound = file.read(len(MAGIC)) == MAGIC
    if sound or damaged.stat().st_size < PAGE_BYTES:
        yield damaged
        return
    with TemporaryDirectory(dir=damaged.parent, prefix="mending-") as folder:
        copy = Path(folder) / damaged.name
        shutil.copyfile(damaged, copy)
        log = damaged.with_name(f"{damaged.name}-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name(log.name))
        with copy.open("r+b") as file:
            file.write(header(copy.stat().st_size // PAGE_BYTES))
        yield copy


def header(pages: int) -> bytes:
    """Return a header for a file of this many pages, all in use (sqlite.org, fileformat2 1.3)."""
    changes = schema = 1
    return struct.pack(
        _LAYOUT,
        *(MAGIC, PAGE_BYTES, _WAL, _WAL, 0, *_FRACTIONS),
        *(changes, pages, 0, 0, schema, _SCHEMA_FORMAT, 0, 0, _UTF8, 0, 0, 0),
        *(changes, _VERSION),
    )
