# ruff: noqa: S608 - names of tables and columns are our own words
"""Salvage: copying the readable rows of a damaged database into a new database.

An unreadable row is restored from the newest event with its value. If the row of a session is lost,
a new session explains the loss, so that its messages can be found.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import FilePart, TextPart
from pegboard.schema.session import Project, Session, SessionTime
from pegboard.storage import read_json, read_message, read_part
from pegboard_plugins.sqlite.migrations import MIGRATIONS
from pegboard_plugins.sqlite.pages import Pages
from pegboard_plugins.sqlite.replay import fill_from_events, free_number, put_session

# Tables with row numbers, in the order of their references, and those of a session by its id.
_NUMBERED = (
    *("project", "session", "message", "part", "part_text", "todos", "approval"),
    *("permission_request", "event"),
)
_BY_SESSION = ("state",)
_OF_SESSION = ("message", "part", "part_text", "todos", "state", "permission_request")
_SESSION_COLUMNS = 11
# A page that cannot be read is one hole; with more of them there is nothing to be found.
_MOST_HOLES = 10_000
_FARTHEST = 62
_UNREADABLE = (apsw.Error, UnicodeDecodeError)
_RECOVERED = "recovered conversation"

_Key = tuple[str, str]


class Salvaged(msgspec.Struct, frozen=True):
    """The numbers of rows in the new database."""

    sessions: int = 0
    messages: int = 0
    parts: int = 0


def version_of(damaged: Path) -> int:
    """Return a file's migration number; if it is unreadable, the number of the newest migration."""
    source = _open_readonly(damaged)
    try:
        rows = source.execute("SELECT value FROM meta WHERE key = 'schema_version'")
        found = [int(str(value)) for (value,) in rows]
    except (*_UNREADABLE, ValueError):
        found = []
    finally:
        source.close()
    return found[0] if found and 0 < found[0] <= len(MIGRATIONS) else len(MIGRATIONS)


def salvage(damaged: Path, db: apsw.Connection) -> Salvaged:
    """Fill the new database `db` with the readable rows of `damaged`, which stays unchanged.

    :raises apsw.Error: when the new database cannot be written.
    """
    source = _open_readonly(damaged)
    try:
        source.pragma("trusted_schema", value=False)
        source.pragma("cell_size_check", value=True)
        with db:
            db.pragma("defer_foreign_keys", value=True)  # until parents have been found again
            known = [table for table in _NUMBERED if _columns(db, table)]
            lost = {table for table in known if not _copy(source, db, table)}
            if lost:
                _copy_from_pages(damaged, db, lost)
            fill_from_events(db)
            _adopt_sessions(db)
            _adopt_parts(db)
            for table in _BY_SESSION:
                _copy_by_session(source, db, table)
            _drop_orphans(db)
            _go_on_counting(source, db)
    finally:
        source.close()
    return Salvaged(*(_count(db, table) for table in ("session", "message", "part")))


def _open_readonly(damaged: Path) -> apsw.Connection:
    """Open a connection that creates no file next to the database."""
    mode = "" if damaged.with_name(f"{damaged.name}-wal").exists() else "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{damaged.absolute().as_uri()}?mode=ro{mode}", flags=flags)


def _copy(source: apsw.Connection, db: apsw.Connection, table: str) -> bool:
    """Copy the rows of a table; return False if some may be out of reach."""
    columns = _shared_columns(source, db, table)
    if not columns:
        return False
    gave_up: list[str] = []
    _insert_all(db, table, columns, _rows(source, table, columns, gave_up))
    return not gave_up


def _copy_from_pages(damaged: Path, db: apsw.Connection, lost: set[str]) -> None:
    """Copy rows of the `lost` tables from all leaf pages, even pages that no b-tree reaches."""
    columns = {table: _columns(db, table) for table in lost}
    for number, row in Pages(damaged).rows():
        table = _table_of(row)
        missing = len(columns[table]) - len(row) if table in lost else -1
        if missing >= 0:  # a column that was added later is not in older rows
            numbered = (number, *row[1:]) if row[0] is None else row
            numbered += (None,) * missing
            _insert_all(db, table, columns[table], iter((numbered,)))


def _table_of(row: tuple[object, ...]) -> str:  # noqa: PLR0911 - a line for each table
    """Return the table of a row with these values, or "" for a row of another program."""
    words = [value[:4] if isinstance(value, str) else value for value in row]
    match words:
        case ["ses_", _, bytes()]:
            return "todos"
        case [None, "ses_", str(), *_] if len(row) == _SESSION_COLUMNS:
            return "session"
        case [None, "ses_", "msg_", "prt_", _, _, bytes(), *_]:
            return "part"
        case [None, "ses_", "prt_", bytes()]:
            return "part_text"
        case [None, "ses_", "msg_", "user" | "assi", int(), _, bytes()]:
            return "message"
        case [None, "ses_", "per_", bytes()]:
            return "permission_request"
        case [None, str() | None, str(), bytes()]:
            return "event"
        case [None, str(), _, bytes()]:
            return "project"
        case [None, str(), str(), str(), "allo" | "deny" | "ask", *_]:
            return "approval"
        case _:
            return ""


def _copy_by_session(source: apsw.Connection, db: apsw.Connection, table: str) -> None:
    columns = _shared_columns(source, db, table)
    if not columns:
        return
    query = f"SELECT {', '.join(columns)} FROM {table} WHERE session_id = ?"
    for (session_id,) in list(db.execute("SELECT id FROM session")):
        try:
            rows = list(source.execute(query, (session_id,)))
        except _UNREADABLE:
            continue
        _insert_all(db, table, columns, iter(rows))


def _shared_columns(source: apsw.Connection, db: apsw.Connection, table: str) -> tuple[str, ...]:
    """Return the columns that both databases have; an earlier version may have fewer."""
    try:
        found = {name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")}
    except _UNREADABLE:
        return ()
    return tuple(name for name in _columns(db, table) if name in found)


def _columns(db: apsw.Connection, table: str) -> tuple[str, ...]:
    return tuple(name for _, name, *_ in db.execute(f"PRAGMA table_info({table})"))


def _insert_all(
    db: apsw.Connection, table: str, columns: tuple[str, ...], rows: Iterator[tuple[object, ...]]
) -> None:
    places = ", ".join("?" * len(columns))
    statement = f"INSERT OR IGNORE INTO {table}({', '.join(columns)}) VALUES({places})"
    for row in rows:
        try:
            db.execute(statement, row)
        except apsw.ConstraintError:
            continue  # a value of the wrong type: the page held something else


def _rows(
    source: apsw.Connection, table: str, columns: tuple[str, ...], gave_up: list[str]
) -> Iterator[tuple[object, ...]]:
    """Yield the readable rows of a table in order; skip unreadable ranges.

    If the end cannot be reached, the table is added to `gave_up`.
    """
    listed = ", ".join(("rowid", *columns))
    query = f"SELECT {listed} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
    start: int | None = -(1 << _FARTHEST)
    for _ in range(_MOST_HOLES):
        if start is None:
            break
        try:
            for number, *row in source.execute(query, (start,)):
                yield tuple(row)
                start = number + 1
        except _UNREADABLE:
            start = _next_readable(source, query, start)
        else:
            return
    gave_up.append(table)


def _next_readable(source: apsw.Connection, query: str, hole: int) -> int | None:
    """Return the first readable row number after an unreadable range, or None.

    The steps double until they pass the range, and then halve to find its end.
    """
    low, high = hole, None
    for exponent in range(_FARTHEST):
        if _can_be_read(source, query, hole + (1 << exponent)):
            high = hole + (1 << exponent)
            break
        low = hole + (1 << exponent)
    if high is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _can_be_read(source, query, middle):
            high = middle
        else:
            low = middle
    return high


def _can_be_read(source: apsw.Connection, query: str, start: int) -> bool:
    try:
        list(source.execute(f"{query} LIMIT 1", (start,)))
    except _UNREADABLE:
        return False
    return True


def _adopt_sessions(db: apsw.Connection) -> None:
    """Create new sessions for messages and parts of lost sessions."""
    lost = (
        "SELECT session_id FROM (SELECT session_id FROM message UNION SELECT session_id FROM part) "
        "WHERE session_id NOT IN (SELECT id FROM session)"
    )
    for (session_id,) in list(db.execute(lost)):
        project_id, directory = _place(db, session_id)
        now = time.time_ns() // 1_000_000
        session = Session(
            id=session_id,
            slug=session_id,
            project_id=project_id,
            directory=directory,
            title=_RECOVERED,
            version="",
            time=SessionTime(created=now, updated=now),
        )
        put_session(db, session)


def _place(db: apsw.Connection, session_id: str) -> tuple[str, str]:
    """Return a session's project id and directory; guess unknown values from the known projects."""
    directory = _directory(db, session_id)
    query = "SELECT project_id FROM session WHERE directory = ?"
    for (project_id,) in db.execute(query, (directory,)):
        return str(project_id), directory
    rows = db.execute("SELECT data FROM project")
    known = [project for (data,) in rows if (project := read_json(data, Project))]
    if directory:
        known = [each for each in known if Path(directory).is_relative_to(each.worktree)]
    if not known or (not directory and len(known) > 1):
        return "", directory
    nearest = max(known, key=lambda each: len(each.worktree))
    return nearest.id, directory or nearest.worktree


def _directory(db: apsw.Connection, session_id: str) -> str:
    """Return a session's directory, as an answer in the session names it, or ""."""
    rows = db.execute(
        "SELECT data, id, role FROM message WHERE session_id = ? AND role = 'assistant'",
        (session_id,),
    )
    for data, id_, role in rows:
        message = read_message(data, session_id, id_, role)
        if isinstance(message, AssistantMessage) and message.path.cwd:
            return message.path.cwd
    return ""


def _adopt_parts(db: apsw.Connection) -> None:
    """Create messages for the parts of lost messages; each says that the message was lost."""
    lost = (
        "SELECT DISTINCT session_id, message_id FROM part WHERE NOT EXISTS (SELECT 1 "
        "FROM message WHERE message.session_id = part.session_id AND id = message_id) "
        "AND session_id IN (SELECT id FROM session)"
    )
    for session_id, message_id in list(db.execute(lost)):
        rows = db.execute(
            "SELECT data, id FROM part WHERE session_id = ? AND message_id = ?",
            (session_id, message_id),
        )
        parts = [read_part(data, session_id, message_id, id_) for data, id_ in rows]
        typed = all(isinstance(part, TextPart | FilePart) for part in parts)
        db.execute(
            "INSERT INTO message(ordinal, session_id, id, role, unfinished, data) "
            "VALUES(?, ?, ?, ?, 0, x'')",
            (
                free_number(db, "message", session_id, message_id),
                session_id,
                message_id,
                "user" if typed else "assistant",
            ),
        )


def _drop_orphans(db: apsw.Connection) -> None:
    """Delete rows whose owner row is lost."""
    for table in _OF_SESSION:
        if _columns(db, table):
            db.execute(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM session)")
    if _columns(db, "part_text"):
        placed = "streamed" in _columns(db, "part")
        db.execute(
            "DELETE FROM part_text WHERE NOT EXISTS (SELECT 1 FROM part "
            "WHERE part.session_id = part_text.session_id AND part.id = part_id "
            f"{'AND part.ordinal = part_text.ordinal >> 24' if placed else ''})"
        )


def _go_on_counting(source: apsw.Connection, db: apsw.Connection) -> None:
    """Make the next event's number greater than all earlier events' numbers, even lost ones."""
    greatest = [0]
    for table in ("project", "session", "message", "part", "todos"):
        greatest += [seq or 0 for (seq,) in db.execute(f"SELECT max(last_event) FROM {table}")]
    greatest += [seq or 0 for (seq,) in db.execute("SELECT max(seq) FROM event")]
    try:
        counted = source.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'event'")
        greatest += [int(str(seq or 0)) for (seq,) in counted]
    except (*_UNREADABLE, ValueError):
        pass
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'event'")
    db.execute("INSERT INTO sqlite_sequence(name, seq) VALUES('event', ?)", (max(greatest),))


def _count(db: apsw.Connection, table: str) -> int:
    return sum(int(str(number)) for (number,) in db.execute(f"SELECT count(*) FROM {table}"))
