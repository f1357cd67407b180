# ruff: noqa: S608 - names of tables and columns are our own words
"""What can still be read of a damaged database, copied row by row into a sound one.

A row that cannot be read is taken from the newest event that tells of it; a conversation whose
own row is lost for good gets one that says so, so that what was said in it is found.
"""

from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from pegboard.schema.event import (
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    Properties,
    SessionCreated,
    SessionDeleted,
    SessionUpdated,
)
from pegboard.schema.message import AssistantMessage, Message
from pegboard.schema.part import FilePart, Part, TextPart
from pegboard.schema.session import Session, SessionTime
from pegboard.storage import records
from pegboard.storage.migrations import MIGRATIONS
from pegboard.storage.writes import now_ms

# Tables with row numbers, in the order of their references, and those of a session by its id.
_NUMBERED = (
    *("project", "session", "message", "part", "todos", "approval", "permission_request"),
    "event",
)
_BY_SESSION = ("state",)
_OF_SESSION = ("message", "part", "todos", "state", "permission_request")
# A page that cannot be read is one hole; with more of them there is nothing to be found.
_MOST_HOLES = 10_000
_FARTHEST = 62
_UNREADABLE = (apsw.Error, UnicodeDecodeError)
_RECOVERED = "recovered conversation"

_Key = tuple[str, str]


class Salvaged(msgspec.Struct, frozen=True):
    """How many there are in the new database."""

    sessions: int = 0
    messages: int = 0
    parts: int = 0


class _Told(msgspec.Struct):
    """What events tell of, each as it was last; messages and parts by session and message."""

    sessions: dict[str, Session] = {}
    messages: dict[_Key, Message] = {}
    parts: dict[_Key, dict[str, Part]] = {}

    def take(self, properties: Properties) -> None:
        """Go on by one event."""
        match properties:
            case SessionCreated(info=session) | SessionUpdated(info=session):
                self.sessions[session.id] = session
            case SessionDeleted(session_id=session_id):
                self.sessions.pop(session_id, None)
            case MessageUpdated(info=message):
                self.messages[message.session_id, message.id] = message
            case MessageRemoved(session_id=session_id, message_id=message_id):
                self.messages.pop((session_id, message_id), None)
                self.parts.pop((session_id, message_id), None)
            case PartUpdated(part=part):
                self.parts.setdefault((part.session_id, part.message_id), {})[part.id] = part
            case PartRemoved(session_id=session_id, message_id=message_id, part_id=part_id):
                self.parts.get((session_id, message_id), {}).pop(part_id, None)
            case _:
                pass


def version_of(damaged: Path) -> int:
    """The number of the last step of migration that a file has seen; the newest if unknown."""
    source = _opened(damaged)
    try:
        rows = source.execute("SELECT value FROM meta WHERE key = 'schema_version'")
        found = [int(str(value)) for (value,) in rows]
    except (*_UNREADABLE, ValueError):
        found = []
    finally:
        source.close()
    return found[0] if found and 0 < found[0] <= len(MIGRATIONS) else len(MIGRATIONS)


def salvage(damaged: Path, db: apsw.Connection) -> Salvaged:
    """Fills a new database with what another file still has; the file is only read.

    :raises apsw.Error: when the new database cannot be written.
    """
    source = _opened(damaged)
    try:
        source.pragma("trusted_schema", value=False)
        source.pragma("cell_size_check", value=True)
        with db:
            db.pragma("defer_foreign_keys", value=True)  # until parents have been found again
            for table in _NUMBERED:
                _copy(source, db, table)
            _fill_from_events(db)
            _adopt_sessions(db)
            _adopt_parts(db)
            for table in _BY_SESSION:
                _copy_by_session(source, db, table)
            _drop_orphans(db)
            _go_on_counting(source, db)
    finally:
        source.close()
    return Salvaged(*(_count(db, table) for table in ("session", "message", "part")))


def _opened(damaged: Path) -> apsw.Connection:
    """A connection that leaves nothing beside the file that is not there already."""
    mode = "" if damaged.with_name(f"{damaged.name}-wal").exists() else "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{damaged.absolute().as_uri()}?mode=ro{mode}", flags=flags)


def _copy(source: apsw.Connection, db: apsw.Connection, table: str) -> None:
    columns = _shared_columns(source, db, table)
    if columns:
        _insert_all(db, table, columns, _rows(source, table, columns))


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
    """The columns that both have: an earlier version may have had fewer."""
    try:
        found = {name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")}
    except _UNREADABLE:
        return ()
    return tuple(name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if name in found)


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
    source: apsw.Connection, table: str, columns: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """The rows that can be read, in their order; what lies between is jumped over."""
    listed = ", ".join(("rowid", *columns))
    query = f"SELECT {listed} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
    start: int | None = -(1 << _FARTHEST)
    for _ in range(_MOST_HOLES):
        if start is None:
            return
        try:
            for number, *row in source.execute(query, (start,)):
                yield tuple(row)
                start = number + 1
        except _UNREADABLE:
            start = _behind_the_hole(source, query, start)
        else:
            return


def _behind_the_hole(source: apsw.Connection, query: str, hole: int) -> int | None:
    """The first number from which on a row can be read again, None when there is none.

    Steps that double lead over the hole, and halving leads back to its edge.
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


def _fill_from_events(db: apsw.Connection) -> None:
    """Puts in what has no row and of which an event tells: each carries the whole thing."""
    told = _Told()
    for row in db.execute("SELECT seq, type, data FROM event ORDER BY seq"):
        told.take(records.to_event(*row).properties)
    for session in told.sessions.values():
        _put_session(db, session)
    for message in told.messages.values():
        _put_message(db, message)
    for parts in told.parts.values():
        for part in parts.values():
            _put_part(db, part)


def _put_session(db: apsw.Connection, session: Session) -> None:
    db.execute(
        "INSERT OR IGNORE INTO session(id, project_id, parent_id, directory, title, updated, data) "
        "VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            session.id,
            session.project_id,
            session.parent_id,
            session.directory,
            session.title,
            session.time.updated,
            records.to_row(session),
        ),
    )


def _put_message(db: apsw.Connection, message: Message) -> None:
    db.execute(
        "INSERT OR IGNORE INTO message(ordinal, session_id, id, role, unfinished, data) "
        "VALUES(?, ?, ?, ?, ?, ?)",
        (
            _free_place(db, "message", message.session_id, message.id),
            message.session_id,
            message.id,
            message.__struct_config__.tag,
            records.is_unfinished(message),
            records.to_row(message),
        ),
    )


def _put_part(db: apsw.Connection, part: Part) -> None:
    db.execute(
        "INSERT OR IGNORE INTO part(ordinal, session_id, id, message_id, state, data) "
        "VALUES(?, ?, ?, ?, ?, ?)",
        (
            _free_place(db, "part", part.session_id, part.id),
            part.session_id,
            part.id,
            part.message_id,
            records.running_state(part),
            records.to_row(part),
        ),
    )


def _free_place(db: apsw.Connection, table: str, session_id: str, id_: str) -> int | None:
    """The first free number behind the row before it: its own was there, and is free."""
    found = db.execute(
        f"SELECT max(ordinal) FROM {table} WHERE session_id = ? AND id < ?", (session_id, id_)
    ).fetchone()
    place = (found[0] if found and found[0] is not None else 0) + 1
    while db.execute(f"SELECT 1 FROM {table} WHERE ordinal = ?", (place,)).fetchone():
        place += 1
    return place


def _adopt_sessions(db: apsw.Connection) -> None:
    """Gives messages and parts whose session is lost a session, where they can be read."""
    lost = (
        "SELECT session_id FROM (SELECT session_id FROM message UNION SELECT session_id FROM part) "
        "WHERE session_id NOT IN (SELECT id FROM session)"
    )
    for (session_id,) in list(db.execute(lost)):
        directory = _directory(db, session_id)
        project = db.execute(
            "SELECT project_id FROM session WHERE directory = ? LIMIT 1", (directory,)
        ).fetchone()
        now = now_ms()
        session = Session(
            id=session_id,
            slug=session_id,
            project_id=project[0] if project else "",
            directory=directory,
            title=_RECOVERED,
            version="",
            time=SessionTime(created=now, updated=now),
        )
        _put_session(db, session)


def _directory(db: apsw.Connection, session_id: str) -> str:
    """Where a session ran, as its answers know; "" when none is left."""
    rows = db.execute(
        "SELECT data, id, role FROM message WHERE session_id = ? AND role = 'assistant'",
        (session_id,),
    )
    for data, id_, role in rows:
        message = records.to_message(data, session_id, id_, role)
        if isinstance(message, AssistantMessage) and message.path.cwd:
            return message.path.cwd
    return ""


def _adopt_parts(db: apsw.Connection) -> None:
    """Gives parts whose message is lost one that says that it is damaged."""
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
        parts = [records.to_part(data, session_id, message_id, id_) for data, id_ in rows]
        typed = all(isinstance(part, TextPart | FilePart) for part in parts)
        db.execute(
            "INSERT INTO message(ordinal, session_id, id, role, unfinished, data) "
            "VALUES(?, ?, ?, ?, 0, x'')",
            (
                _free_place(db, "message", session_id, message_id),
                session_id,
                message_id,
                "user" if typed else "assistant",
            ),
        )


def _drop_orphans(db: apsw.Connection) -> None:
    """Drops what belongs to nothing that is left."""
    for table in _OF_SESSION:
        db.execute(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM session)")


def _go_on_counting(source: apsw.Connection, db: apsw.Connection) -> None:
    """The next event gets a number that none has had, lost ones included."""
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
