"""A new header for a database file whose own is damaged: SQLite reads nothing without one."""

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


@contextmanager
def with_header(damaged: Path) -> Iterator[Path]:
    """The file, or a temporary copy of it with a new header.

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
    """The header of a file of this many pages, none free (sqlite.org, "fileformat2" 1.3)."""
    changes = schema = 1
    return struct.pack(
        _LAYOUT,
        *(MAGIC, PAGE_BYTES, _WAL, _WAL, 0, *_FRACTIONS),
        *(changes, pages, 0, 0, schema, _SCHEMA_FORMAT, 0, 0, _UTF8, 0, 0, 0),
        *(changes, _VERSION),
    )
