# ruff: noqa: S608 - names of tables are our own words
"""The restoration of lost rows from events, which carry the whole value."""

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
    TodoUpdated,
)
from pegboard.schema.message import Message
from pegboard.schema.part import Part
from pegboard.schema.session import Session, Todo
from pegboard.schema.wire import encode_checked
from pegboard.storage import is_unfinished, read_json, unfinished_state
from pegboard_plugins.sqlite import pieces, reads

_Key = tuple[str, str]


class _LastStates(msgspec.Struct):
    """The last state of each value in the read events; keys are session and message ids."""

    sessions: dict[str, Session] = {}
    messages: dict[_Key, Message] = {}
    parts: dict[_Key, dict[str, Part]] = {}
    places: dict[_Key, int] = {}
    todos: dict[str, tuple[Todo, ...]] = {}

    def take(self, properties: Properties) -> None:
        """Apply one event to these states."""
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
            case TodoUpdated(session_id=session_id, todos=todos):
                self.todos[session_id] = todos
            case _:
                pass


def fill_from_events(db: apsw.Connection) -> None:
    """Insert a row for each value that has events, but no row."""
    states = _LastStates()
    for seq, name, data in db.execute("SELECT seq, type, data FROM event ORDER BY seq"):
        streamed = read_json(data, pieces.Streamed) if name == pieces.STREAMED else None
        if streamed is None or streamed.size is not None:
            states.take(reads.event(db, seq, name, data).properties)
        else:  # its text goes on where it is
            part, time = streamed.part, streamed.time
            states.take(PartUpdated(session_id=part.session_id, part=part, time=time))
        if streamed is not None:
            states.places[streamed.session_id, streamed.part.id] = streamed.place
    for session in states.sessions.values():
        put_session(db, session)
    for message in states.messages.values():
        _put_message(db, message)
    for parts in states.parts.values():
        for part in parts.values():
            _put_part(db, part, states.places.get((part.session_id, part.id), 0))
    for session_id, todos in states.todos.items():
        db.execute(
            "INSERT OR IGNORE INTO todos(session_id, data) VALUES(?, ?)",
            (session_id, encode_checked(todos)),
        )


def put_session(db: apsw.Connection, session: Session) -> None:
    """Insert a session, unless the session is stored already."""
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
            encode_checked(session),
        ),
    )


def _put_message(db: apsw.Connection, message: Message) -> None:
    db.execute(
        "INSERT OR IGNORE INTO message(ordinal, session_id, id, role, unfinished, data) "
        "VALUES(?, ?, ?, ?, ?, ?)",
        (
            free_number(db, "message", message.session_id, message.id),
            message.session_id,
            message.id,
            message.__struct_config__.tag,
            is_unfinished(message),
            encode_checked(message),
        ),
    )


def _put_part(db: apsw.Connection, part: Part, place: int) -> None:
    """Insert a part as row number `place`, because its stored text belongs to this number.

    If `place` is 0 or taken, use a free row number.
    """
    db.execute(
        "INSERT OR IGNORE INTO part(ordinal, session_id, id, message_id, state, data) "
        "VALUES(?, ?, ?, ?, ?, ?)",
        (
            place
            if place and not _is_taken(db, "part", place)
            else free_number(db, "part", part.session_id, part.id),
            part.session_id,
            part.id,
            part.message_id,
            unfinished_state(part),
            encode_checked(part),
        ),
    )


def free_number(db: apsw.Connection, table: str, session_id: str, id_: str) -> int | None:
    """Return the first free row number after the row with the next smaller id in the session."""
    found = db.execute(
        f"SELECT max(ordinal) FROM {table} WHERE session_id = ? AND id < ?", (session_id, id_)
    ).fetchone()
    place = (found[0] if found and found[0] is not None else 0) + 1
    while _is_taken(db, table, place):
        place += 1
    return place


def _is_taken(db: apsw.Connection, table: str, place: int) -> bool:
    row = db.execute(f"SELECT 1 FROM {table} WHERE ordinal = ?", (place,)).fetchone()
    return row is not None
