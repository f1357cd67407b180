"""Functions that read from the database; any thread may call them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import apsw
import msgspec

from pegboard.errors import NotFoundError
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.storage import (
    LastIds,
    SessionFilters,
    SessionRow,
    TurnRows,
    join_sessions,
    read_approval,
    read_json,
    read_properties,
    read_session,
    read_todos,
)
from pegboard_plugins.sqlite import pieces

_SESSION = "SELECT data, id, project_id, directory, updated FROM session"
_OF_LAST = (
    "AND message_id IN (SELECT id FROM message WHERE session_id = ?1 AND ordinal < ?3 "
    "ORDER BY ordinal DESC LIMIT ?2)"
)
"""The condition that a part is of the last ?2 messages before the row ?3."""
_EVERYTHING = -1  # SQLite's LIMIT for no limit
_END = (1 << 63) - 1
"""No ordinal is greater (SQLite, `INTEGER`)."""


def session(db: apsw.Connection, session_id: str) -> Session:
    """Return a session.

    :raises NotFoundError: when no session has this id.
    """
    for row in db.execute(f"{_SESSION} WHERE id = ?", (session_id,)):
        return read_session(*row)
    raise NotFoundError("session", session_id)


def owner(db: apsw.Connection, session_id: str) -> str | None:
    """Return the process that owns the session, alive or dead; None without an owner."""
    row = db.execute("SELECT owner FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else row[0]


def sessions(
    db: apsw.Connection, project_id: str | None, filters: SessionFilters
) -> tuple[Session, ...]:
    """Return the sessions that pass the filters, the most recently updated first."""
    return tuple(read_session(*row) for row in _session_rows(db, project_id, filters))


def sessions_json(db: apsw.Connection, project_id: str | None, filters: SessionFilters) -> bytes:
    """Return sessions as a JSON array, made from the JSON in their rows."""
    return join_sessions(list(_session_rows(db, project_id, filters)))


def _session_rows(
    db: apsw.Connection, project_id: str | None, filters: SessionFilters
) -> Iterator[SessionRow]:
    search, limit = filters.get("search"), filters.get("limit")
    conditions: dict[str, str | int | None] = {
        "project_id = ?": project_id,
        "updated >= ?": filters.get("since"),
        "directory = ?": filters.get("directory"),
        r"title LIKE ? ESCAPE '\'": like(search) if search else None,
    }
    used = {text: value for text, value in conditions.items() if value is not None}
    clauses = [*used, *(["parent_id IS NULL"] if filters.get("roots") else [])]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return db.execute(
        f"{_SESSION}{where} ORDER BY updated DESC, ordinal DESC LIMIT ?",
        (*used.values(), _EVERYTHING if limit is None else limit),
    )


def children(db: apsw.Connection, session_id: str) -> tuple[Session, ...]:
    """Return the children of a session, in order of creation."""
    rows = db.execute(f"{_SESSION} WHERE parent_id = ? ORDER BY ordinal", (session_id,))
    return tuple(read_session(*row) for row in rows)


def projects(db: apsw.Connection) -> tuple[Project, ...]:
    """Return all projects with readable rows, in order of creation."""
    rows = db.execute("SELECT data FROM project ORDER BY ordinal")
    return tuple(project for (data,) in rows if (project := read_json(data, Project)))


def turns(
    db: apsw.Connection, session_id: str, *, limit: int | None, before: str | None = None
) -> TurnRows:
    """Return the last `limit` messages with their parts; with `before`, only messages before it."""
    parts: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    with db:  # all reads see the same moment
        end = _END if before is None else _ordinal(db, session_id, before)
        last = (session_id, _EVERYTHING if limit is None else limit, end)
        messages = list(
            db.execute(
                "SELECT id, role, data FROM message WHERE session_id = ?1 AND ordinal < ?3 "
                "ORDER BY ordinal DESC LIMIT ?2",
                last,
            )
        )
        where, values = ("", last[:1]) if limit is None else (_OF_LAST, last)
        for message_id, part_id, *row in db.execute(
            "SELECT message_id, id, data, ordinal, state, streamed FROM part "  # noqa: S608 - ours
            f"WHERE session_id = ?1 {where} ORDER BY message_id, ordinal",
            values,
        ):
            parts[message_id].append((part_id, pieces.whole(db, *row)))
    return TurnRows(session_id, messages[::-1], parts)


def _ordinal(db: apsw.Connection, session_id: str, message_id: str) -> int:
    """Return the row number of a message; 0 if the message is unknown."""
    key = (session_id, message_id)
    rows = db.execute("SELECT ordinal FROM message WHERE session_id = ? AND id = ?", key)
    return next((ordinal for (ordinal,) in rows), 0)


def turn(db: apsw.Connection, session_id: str, message_id: str) -> Turn:
    """Return one message with the message's parts.

    :raises NotFoundError: when the session has no such message.
    """
    key = (session_id, message_id)
    for message in db.execute(
        "SELECT id, role, data FROM message WHERE session_id = ? AND id = ?", key
    ):
        rows = db.execute(
            "SELECT id, data, ordinal, state, streamed FROM part "
            "WHERE session_id = ? AND message_id = ? ORDER BY ordinal",
            key,
        )
        parts = [(part_id, pieces.whole(db, *row)) for part_id, *row in rows]
        return TurnRows(session_id, [message], {message_id: parts}).values()[0]
    raise NotFoundError("message", message_id)


def todos(db: apsw.Connection, session_id: str) -> tuple[Todo, ...]:
    """Return the todo list of the session."""
    for (data,) in db.execute("SELECT data FROM todos WHERE session_id = ?", (session_id,)):
        return read_todos(data)
    return ()


def state(db: apsw.Connection, session_id: str, key: str) -> object:
    """Return the value that a tool has stored under the key, or None."""
    for (data,) in db.execute(
        "SELECT data FROM state WHERE session_id = ? AND key = ?", (session_id, key)
    ):
        return read_json(data, object)
    return None


def approvals(db: apsw.Connection, keys: Sequence[str]) -> tuple[Approval, ...]:
    """Return the approvals with these keys, in the order of approval."""
    rows = db.execute(
        "SELECT ordinal, key, permission, pattern, action, agent, at FROM approval "
        "WHERE key IN (SELECT value FROM json_each(?)) ORDER BY ordinal",
        (msgspec.json.encode(keys).decode(),),
    )
    return tuple(read_approval(row) for row in rows)


def session_approvals(db: apsw.Connection, project_id: str) -> tuple[Approval, ...]:
    """Return a project's approvals for single sessions, in the order of approval."""
    rows = db.execute(
        "SELECT ordinal, key, permission, pattern, action, agent, at FROM approval "
        "WHERE key IN (SELECT id FROM session WHERE project_id = ?) ORDER BY ordinal",
        (project_id,),
    )
    return tuple(read_approval(row) for row in rows)


def events(db: apsw.Connection, after: int, limit: int) -> tuple[Event, ...]:
    """Return the stored events whose numbers are greater than `after`, in order."""
    rows = db.execute(
        "SELECT seq, type, data FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    )
    return tuple(event(db, *row) for row in rows)


def event(db: apsw.Connection, seq: int, name: str, data: bytes) -> Event:
    """Return the event of a row; for a part's event, add the text that is stored in pieces."""
    if name == pieces.STREAMED and (update := pieces.update(db, data)) is not None:
        return Event(properties=update, seq=seq)
    return Event(properties=read_properties(name, data), seq=seq)


def last_ids(db: apsw.Connection, session_id: str) -> LastIds:
    """Return the greatest ids in the session."""
    rows = db.execute(
        "SELECT (SELECT max(id) FROM message WHERE session_id = ?1), "
        "(SELECT max(id) FROM part WHERE session_id = ?1)",
        (session_id,),
    )
    message, part = next(iter(rows))
    return LastIds(message=message, part=part)


def like(text: str) -> str:
    """Return the LIKE pattern of strings that contain `text`, with a backslash as its escape."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
