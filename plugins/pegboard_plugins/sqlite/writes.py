"""Changes written as rows and events, inside the caller's transaction."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import apsw
import msgspec

from pegboard.errors import InvalidInputError, NotFoundError, SessionBusyError
from pegboard.schema.event import Event, SessionDeleted, SessionUpdated
from pegboard.schema.wire import encode_checked
from pegboard.storage import (
    AddText,
    Change,
    ChangeSession,
    CreateSession,
    DropApproval,
    DropMessage,
    DropPart,
    DropSession,
    Fence,
    PublishEvent,
    PutApproval,
    PutMessage,
    PutPart,
    PutPermissionRequest,
    PutProject,
    PutState,
    PutTodos,
    SettlePermissionRequest,
    Tell,
    apply_change,
    is_unfinished,
    read_session,
    unfinished_state,
)
from pegboard_plugins.sqlite import opentexts, pieces
from pegboard_plugins.sqlite.eventrows import store, store_update, supersede
from pegboard_plugins.sqlite.opentexts import OPEN

# Sessions nest by subagents; a circular chain of parents must still end.
_DEEPEST = 100
_Column = Literal["session_id", "message_id", "id"]


def apply(db: apsw.Connection, changes: Iterable[Change]) -> tuple[Event, ...]:
    """Write the changes; return their events, each with a number if the event is stored.

    :raises NotFoundError: when a change belongs to a session or message that is not there.
    :raises InvalidInputError: when a value cannot be stored as given.
    """
    return tuple(event for change in changes for event in _WRITERS[type(change)](db, change))


def check_fence(db: apsw.Connection, fence: Fence) -> None:
    """Check that no other process has claimed the session since this fence was given out.

    :raises SessionBusyError: when another process has taken the session over.
    :raises NotFoundError: when the session is gone.
    """
    row = db.execute(
        "SELECT owner, epoch FROM session WHERE id = ?", (fence.session_id,)
    ).fetchone()
    if row is None:
        raise NotFoundError("session", fence.session_id)
    if row != (fence.owner, fence.epoch):
        raise SessionBusyError(fence.session_id, owner=row[0])


def _put_project(db: apsw.Connection, change: PutProject) -> Iterator[Event]:
    project = change.project
    event = store(db, change.properties)
    row = db.execute("SELECT last_event FROM project WHERE id = ?", (project.id,)).fetchone()
    supersede(db, row[0] if row else None)
    db.execute(
        "INSERT INTO project(id, last_event, data) VALUES(?, ?, ?) "
        "ON CONFLICT(id) DO UPDATE SET last_event = excluded.last_event, data = excluded.data",
        (project.id, event.seq, encode_checked(project)),
    )
    yield event


def _create_session(db: apsw.Connection, change: CreateSession) -> Iterator[Event]:
    session = change.session
    if _has_session(db, session.id):
        raise InvalidInputError(f"there is a session {session.id} already")
    if session.parent_id is not None:
        _need_session(db, session.parent_id)
    data = encode_checked(session)
    payload = {"sessionID": session.id, "info": msgspec.Raw(data)}
    db.execute(
        "INSERT INTO session(id, project_id, parent_id, directory, title, updated, data) "
        "VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            session.id,
            session.project_id,
            session.parent_id,
            session.directory,
            session.title,
            session.time.updated,
            data,
        ),
    )
    yield store(db, change.properties, payload)


def _change_session(db: apsw.Connection, change: ChangeSession) -> Iterator[Event]:
    row = db.execute(
        "SELECT last_event, data, id, project_id, directory, updated FROM session WHERE id = ?",
        (change.session_id,),
    ).fetchone()
    if row is None:
        raise NotFoundError("session", change.session_id)
    last_event, *columns = row
    session = apply_change(read_session(*columns), change)
    data = encode_checked(session)
    payload = {"sessionID": session.id, "info": msgspec.Raw(data)}
    event = store(db, SessionUpdated(session_id=session.id, info=session), payload)
    supersede(db, last_event)
    db.execute(
        "UPDATE session SET title = ?, updated = ?, data = ?, last_event = ? WHERE id = ?",
        (session.title, session.time.updated, data, event.seq, session.id),
    )
    yield event


def _has_session(db: apsw.Connection, session_id: str) -> bool:
    row = db.execute("SELECT 1 FROM session WHERE id = ?", (session_id,)).fetchone()
    return row is not None


def _need_session(db: apsw.Connection, session_id: str) -> None:
    """Check that the session exists.

    :raises NotFoundError: when it is gone, or never was.
    """
    if not _has_session(db, session_id):
        raise NotFoundError("session", session_id)


def _drop_session(db: apsw.Connection, change: DropSession) -> Iterator[Event]:
    rows = db.execute(
        "WITH RECURSIVE family(id, depth) AS (VALUES(?, 0) UNION "
        "SELECT session.id, depth + 1 FROM family JOIN session ON session.parent_id = family.id "
        "WHERE depth < ?) "
        "SELECT session.data, id, project_id, directory, updated FROM family "
        "JOIN session USING(id) GROUP BY id ORDER BY max(depth) DESC, ordinal DESC",
        (change.session_id, _DEEPEST),
    )
    for data, session_id, *columns in tuple(rows):
        session = read_session(data, session_id, *columns)
        _end_texts(db, session_id, "session_id", session_id)
        db.execute("DELETE FROM session WHERE id = ?", (session_id,))
        db.execute("DELETE FROM event WHERE session_id = ?", (session_id,))
        db.execute("DELETE FROM approval WHERE key = ?", (session_id,))
        yield store(db, SessionDeleted(session_id=session_id, info=session))


def _put_message(db: apsw.Connection, change: PutMessage) -> Iterator[Event]:
    message = change.message
    key = (message.session_id, message.id)
    data = encode_checked(message)
    payload = {"sessionID": message.session_id, "info": msgspec.Raw(data)}
    event = store(db, change.properties, payload)
    columns = (message.__struct_config__.tag, is_unfinished(message), data)
    row = db.execute(
        "SELECT last_event FROM message WHERE session_id = ? AND id = ?", key
    ).fetchone()
    if row is None:
        _insert(
            db,
            "INSERT INTO message(session_id, id, role, unfinished, data) VALUES(?, ?, ?, ?, ?)",
            (*key, *columns),
            missing=("session", message.session_id),
        )
    else:
        supersede(db, row[0])
        db.execute(
            "UPDATE message SET role = ?, unfinished = ?, data = ?, last_event = ? "
            "WHERE session_id = ? AND id = ?",
            (*columns, event.seq, *key),
        )
    yield event


def _drop_message(db: apsw.Connection, change: DropMessage) -> Iterator[Event]:
    key = (change.session_id, change.message_id)
    _end_texts(db, change.session_id, "message_id", change.message_id)
    db.execute("DELETE FROM message WHERE session_id = ? AND id = ?", key)
    if db.changes():
        yield store(db, change.properties)


def _put_part(db: apsw.Connection, change: PutPart) -> Iterator[Event]:
    part = change.part
    key = (part.session_id, part.id)
    data = encode_checked(part)
    state = unfinished_state(part)
    update = change.properties_at(time.time_ns() // 1_000_000)
    row = db.execute(
        "SELECT ordinal, state, streamed, message_id, last_event FROM part "
        "WHERE session_id = ? AND id = ?",
        key,
    ).fetchone()
    if row is None:
        _insert(
            db,
            "INSERT INTO part(session_id, id, message_id, state, data) VALUES(?, ?, ?, ?, ?)",
            (*key, part.message_id, state, data),
            missing=("message", part.message_id),
        )
        number = db.last_insert_rowid()
        is_open = state == OPEN
        yield pieces.begin(db, update, number) if is_open else store_update(db, update, data)
        return
    number, before, streamed, message_id, seq = row
    if message_id != part.message_id:
        raise InvalidInputError(f"part {part.id} belongs to message {message_id} already")
    state = None if state == OPEN else state  # an update has the whole text, and ends its stream
    is_progress = before is not None and before == state  # of a call: without a stored event
    size, event = None, Event(properties=update)
    if before == OPEN or streamed is not None:
        settled = pieces.settle(db, update, number, data, streamed)
        event, data, size = settled.event, settled.data, settled.streamed
    elif change.publish and not is_progress:
        event = store_update(db, update, data)
    if event.seq:
        supersede(db, seq)
        seq = event.seq
    if event.seq or change.publish:
        yield event
    db.execute(
        "UPDATE part SET state = ?, data = ?, streamed = ?, last_event = ? WHERE ordinal = ?",
        (state, data, size, seq, number),
    )


def _drop_part(db: apsw.Connection, change: DropPart) -> Iterator[Event]:
    key = (change.session_id, change.message_id, change.part_id)
    _end_texts(db, change.session_id, "id", change.part_id)
    db.execute("DELETE FROM part WHERE session_id = ? AND message_id = ? AND id = ?", key)
    if db.changes():
        yield store(db, change.properties)


def _end_texts(db: apsw.Connection, session_id: str, column: _Column, value: str) -> None:
    """Delete the files with the text of unfinished parts that are about to be deleted."""
    rows = db.execute(
        f"SELECT ordinal FROM part WHERE session_id = ? AND state = ? AND {column} = ?",  # noqa: S608 - a name of three
        (session_id, OPEN, value),
    )
    for (place,) in tuple(rows):
        opentexts.end(db, place)


def _put_todos(db: apsw.Connection, change: PutTodos) -> Iterator[Event]:
    session_id = change.session_id
    event = store(db, change.properties)
    row = db.execute("SELECT last_event FROM todos WHERE session_id = ?", (session_id,)).fetchone()
    supersede(db, row[0] if row else None)
    _insert(
        db,
        "INSERT INTO todos(session_id, last_event, data) VALUES(?, ?, ?) "
        "ON CONFLICT(session_id) DO UPDATE SET last_event = excluded.last_event, "
        "data = excluded.data",
        (session_id, event.seq, encode_checked(change.todos)),
        missing=("session", session_id),
    )
    yield event


def _put_state(db: apsw.Connection, change: PutState) -> Iterator[Event]:
    if change.value is None:
        db.execute(
            "DELETE FROM state WHERE session_id = ? AND key = ?", (change.session_id, change.key)
        )
    else:
        _insert(
            db,
            "INSERT INTO state(session_id, key, data) VALUES(?, ?, ?) "
            "ON CONFLICT(session_id, key) DO UPDATE SET data = excluded.data",
            (change.session_id, change.key, encode_checked(change.value)),
            missing=("session", change.session_id),
        )
    yield from ()


def _put_approval(db: apsw.Connection, change: PutApproval) -> Iterator[Event]:
    if change.session_id is not None:
        _need_session(db, change.session_id)
    db.executemany(
        "INSERT INTO approval(key, permission, pattern, action, agent, at) "
        "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(key, permission, pattern, agent) "
        "DO UPDATE SET action = excluded.action, at = excluded.at",
        [
            (change.key, rule.permission, rule.pattern, rule.action, change.agent or "", change.at)
            for rule in change.rules
        ],
    )
    yield from ()


def _drop_approval(db: apsw.Connection, change: DropApproval) -> Iterator[Event]:
    db.executemany("DELETE FROM approval WHERE ordinal = ?", [(each,) for each in change.ids])
    yield from ()


def _put_request(db: apsw.Connection, change: PutPermissionRequest) -> Iterator[Event]:
    request = change.request
    _insert(
        db,
        "INSERT INTO permission_request(session_id, id, data) VALUES(?, ?, ?) "
        "ON CONFLICT(session_id, id) DO UPDATE SET data = excluded.data",
        (request.session_id, request.id, encode_checked(request)),
        missing=("session", request.session_id),
    )
    yield store(db, change.properties)


def _settle_request(db: apsw.Connection, change: SettlePermissionRequest) -> Iterator[Event]:
    db.execute(
        "DELETE FROM permission_request WHERE session_id = ? AND id = ?",
        (change.session_id, change.request_id),
    )
    if db.changes():
        yield store(db, change.properties)


def _emit(db: apsw.Connection, change: PublishEvent) -> Iterator[Event]:
    if change.session_id is not None:
        _need_session(db, change.session_id)
    yield store(db, change.properties)


def _tell(_db: apsw.Connection, change: Tell) -> Iterator[Event]:
    yield Event(properties=change.properties)


def _insert(
    db: apsw.Connection, sql: str, values: tuple[Any, ...], *, missing: tuple[str, str]
) -> None:
    """Insert a row with a new key.

    :raises NotFoundError: when the row's owner is missing; `missing` is the owner's kind and id.
    """
    try:
        db.execute(sql, values)
    except apsw.ConstraintError as error:
        raise NotFoundError(*missing) from error


_WRITERS: dict[type, Callable[[apsw.Connection, Any], Iterator[Event]]] = {
    PutProject: _put_project,
    CreateSession: _create_session,
    ChangeSession: _change_session,
    DropSession: _drop_session,
    PutMessage: _put_message,
    DropMessage: _drop_message,
    PutPart: _put_part,
    AddText: pieces.add_text,
    DropPart: _drop_part,
    PutTodos: _put_todos,
    PutState: _put_state,
    PutApproval: _put_approval,
    DropApproval: _drop_approval,
    PutPermissionRequest: _put_request,
    SettlePermissionRequest: _settle_request,
    PublishEvent: _emit,
    Tell: _tell,
}
