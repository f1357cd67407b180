"""The text of unfinished parts, each in a file next to the database.

SQLite writes whole pages, so the pieces of a slow answer would cost many times their bytes. The
file of an unfinished part is named by the part's row number and only grows. At the end of the part,
the text is moved into the database, and the file is removed.

A transaction collects its changes of files in a temporary table, which a rollback empties. They are
written just before the commit, while no other process can write to the database. Files are not
synced: a killed process loses no text, but a power cut may take all of it.

A file without the row of an unfinished part is ignored, and is removed at the next opening.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import apsw
import msgspec

OPEN = "open"
"""The state of a part whose text goes on in its file."""
ENDING = ".texts"
"""What the name of the files' folder has after the database's."""

_TABLE = (
    "CREATE TEMP TABLE IF NOT EXISTS open_text"
    "(number INTEGER PRIMARY KEY, place INTEGER NOT NULL, piece BLOB)"
)


class _FileChange(msgspec.Struct):
    """A change of one file: append `text`, or if `is_new`, replace the file's content with it.

    A `text` of None removes the file.
    """

    is_new: bool = False
    text: bytes | None = b""


def prepare(db: apsw.Connection) -> None:
    """Create the connection's temporary table for changes of files."""
    db.execute(_TABLE)


def begin(db: apsw.Connection, place: int) -> None:
    """Create an empty text for an unfinished part; `place` is the part's row number."""
    end(db, place)
    add(db, place, b"")


def add(db: apsw.Connection, place: int, text: bytes) -> None:
    """Append to the text of an unfinished part."""
    db.execute("INSERT INTO temp.open_text(place, piece) VALUES(?, ?)", (place, text))


def end(db: apsw.Connection, place: int) -> None:
    """Delete the file with the text of a part that is finished or deleted."""
    db.execute("INSERT INTO temp.open_text(place, piece) VALUES(?, NULL)", (place,))


def read(db: apsw.Connection, place: int) -> bytes | None:
    """Return the content of a part's file, or None if the part has no file."""
    try:
        return _file(db, place).read_bytes()
    except FileNotFoundError:
        return None


def sweep(db: apsw.Connection) -> None:
    """Remove the files that belong to no unfinished part."""
    folder = _folder(db)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    with transaction(db):
        rows = db.execute("SELECT ordinal FROM part WHERE state = ?", (OPEN,))
        open_parts = {str(place) for (place,) in rows}
        for file in folder.iterdir():
            if file.name not in open_parts:
                file.unlink(missing_ok=True)


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Commit the block's transaction and its changes of files together; undo both on failure.

    :raises OSError: when a file cannot be written.
    """
    with ExitStack() as undoing:
        undoing.callback(_roll_back, db)
        db.execute("BEGIN IMMEDIATE")
        yield
        changes = _file_changes(db)
        for place, change in changes.items():
            _write(_file(db, place), change, undoing)
        db.execute("COMMIT")
        undoing.pop_all()
    for place, change in changes.items():
        if change.text is None:
            with suppress(OSError):  # it means nothing any more
                _file(db, place).unlink(missing_ok=True)


def _file_changes(db: apsw.Connection) -> dict[int, _FileChange]:
    found: dict[int, _FileChange] = {}
    for place, piece in db.execute("SELECT place, piece FROM temp.open_text ORDER BY number"):
        if piece is None:
            found[place] = _FileChange(is_new=True, text=None)
        else:
            change = found.setdefault(place, _FileChange())
            change.text = (change.text or b"") + piece
    if found:
        db.execute("DELETE FROM temp.open_text")
    return found


def _write(path: Path, change: _FileChange, undoing: ExitStack) -> None:
    if change.text is None:
        return
    if change.is_new:
        path.unlink(missing_ok=True)
    if change.text:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            undoing.callback(os.truncate, path, os.fstat(file).st_size)
            _write_all(file, change.text)
        finally:
            os.close(file)


def _write_all(file: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.write(file, left) :]


def _roll_back(db: apsw.Connection) -> None:
    if db.in_transaction:
        db.execute("ROLLBACK")


def _folder(db: apsw.Connection) -> Path:
    return Path(f"{db.filename}{ENDING}")


def _file(db: apsw.Connection, place: int) -> Path:
    return _folder(db) / str(place)
