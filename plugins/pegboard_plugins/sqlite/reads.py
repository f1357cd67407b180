"""Rows to values: plain functions of a connection, for any thread."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import msgspec

from pegboard.errors import NotFoundError
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, Rule, Session, Todo
from pegboard.schema.wire import encode
from pegboard.storage import LastIds
from pegboard_plugins.sqlite import pieces, records

_SESSION = "SELECT data, id, project_id, directory, updated FROM session"
_SessionRow = tuple[bytes, str, str, str, int]  # JSON, id, project, directory, updated
_Messages = list[tuple[str, str, bytes]]  # id, role, JSON
_Parts = dict[str, list[tuple[str, bytes]]]  # by message: id, JSON
_NO_JSON = b"!"  # for an empty row, which would not show in a list
_BEGINNING = b'{"id":"'  # of each session, so that a row of other JSON does not pass for one
_EVERYTHING = -1  # SQLite's LIMIT for no limit
_END = (1 << 63) - 1
"""No ordinal is greater (SQLite, `INTEGER`)."""


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions are listed; `None` and `False` leave all in."""

    project_id: str | None = None
    limit: int | None = None
    search: str | None = None
    roots: bool = False
    since: int | None = None
    directory: str | None = None


def session(db: apsw.Connection, session_id: str) -> Session:
    """The session.

    :raises NotFoundError: when nothing has this id.
    """
    for row in db.execute(f"{_SESSION} WHERE id = ?", (session_id,)):
        return records.to_session(*row)
    raise NotFoundError("session", session_id)


def owner(db: apsw.Connection, session_id: str) -> str | None:
    """Who runs the session, or ran it when its process died; None also for an unknown one."""
    row = db.execute("SELECT owner FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else row[0]


def sessions(db: apsw.Connection, wanted: SessionFilter) -> tuple[Session, ...]:
    """The sessions that pass the filter, those updated last first."""
    return tuple(records.to_session(*row) for row in _session_rows(db, wanted))


def sessions_json(db: apsw.Connection, wanted: SessionFilter) -> bytes:
    """What `sessions` gives, as a JSON array joined from the rows."""
    rows = list(_session_rows(db, wanted))
    whole = all(data.startswith(_BEGINNING) for data, *_ in rows)
    listed = b"[%b]" % b",".join([data for data, *_ in rows])
    if whole and records.is_json(listed):
        return listed
    return encode(tuple(records.to_session(*row) for row in rows))


def _session_rows(db: apsw.Connection, wanted: SessionFilter) -> Iterator[_SessionRow]:
    conditions: dict[str, str | int | None] = {
        "project_id = ?": wanted.project_id,
        "updated >= ?": wanted.since,
        "directory = ?": wanted.directory,
        r"title LIKE ? ESCAPE '\'": _containing(wanted.search),
    }
    used = {text: value for text, value in conditions.items() if value is not None}
    clauses = [*used, *(["parent_id IS NULL"] if wanted.roots else [])]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    limit = _EVERYTHING if wanted.limit is None else wanted.limit
    return db.execute(
        f"{_SESSION}{where} ORDER BY updated DESC, ordinal DESC LIMIT ?", (*used.values(), limit)
    )


def children(db: apsw.Connection, session_id: str) -> tuple[Session, ...]:
    """The sessions whose parent this is, in the order of their creation."""
    rows = db.execute(f"{_SESSION} WHERE parent_id = ? ORDER BY ordinal", (session_id,))
    return tuple(records.to_session(*row) for row in rows)


def projects(db: apsw.Connection) -> tuple[Project, ...]:
    """All projects that can be read, in the order of their creation."""
    rows = db.execute("SELECT data FROM project ORDER BY ordinal")
    return tuple(project for (data,) in rows if (project := records.to_project(data)))


def turns(db: apsw.Connection, session_id: str, limit: int | None) -> tuple[Turn, ...]:
    """The messages with their parts, in the order of their creation."""
    return _turns(session_id, *_rows(db, session_id, limit))


def turns_json(
    db: apsw.Connection, session_id: str, limit: int | None, before: str | None
) -> bytes:
    """Return what `turns` gives, or of that what is older than a message, as a JSON array."""
    messages, parts = _rows(db, session_id, limit, before)
    joined = b",".join(
        b'{"info":%b,"parts":[%b]}'
        % (data, b",".join([part or _NO_JSON for _, part in parts[id_]]))
        for id_, _, data in messages
    )
    listed = b"[%b]" % joined
    # One check of the whole costs a sixth of one for each row; damage takes the slow way.
    return listed if records.is_json(listed) else encode(_turns(session_id, messages, parts))


def turn(db: apsw.Connection, session_id: str, message_id: str) -> Turn:
    """One message with its parts.

    :raises NotFoundError: when the session has no such message.
    """
    key = (session_id, message_id)
    for role, data in db.execute(
        "SELECT role, data FROM message WHERE session_id = ? AND id = ?", key
    ):
        rows = db.execute(
            "SELECT id, data, ordinal, state, streamed FROM part "
            "WHERE session_id = ? AND message_id = ? ORDER BY ordinal",
            key,
        )
        parts = tuple(
            records.to_part(pieces.whole(db, *row), *key, part_id) for part_id, *row in rows
        )
        return Turn(info=records.to_message(data, *key, role), parts=parts)
    raise NotFoundError("message", message_id)


def todos(db: apsw.Connection, session_id: str) -> tuple[Todo, ...]:
    """The session's list."""
    for (data,) in db.execute("SELECT data FROM todos WHERE session_id = ?", (session_id,)):
        return records.to_todos(data)
    return ()


def state(db: apsw.Connection, session_id: str, key: str) -> object:
    """What a tool remembered, None when nothing."""
    for (data,) in db.execute(
        "SELECT data FROM state WHERE session_id = ? AND key = ?", (session_id, key)
    ):
        return records.to_value(data)
    return None


def approvals(db: apsw.Connection, keys: Sequence[str]) -> tuple[Approval, ...]:
    """What the user approved for these keys, in the order of approval."""
    rows = db.execute(
        "SELECT ordinal, key, permission, pattern, action, agent, at FROM approval "
        "WHERE key IN (SELECT value FROM json_each(?)) ORDER BY ordinal",
        (msgspec.json.encode(keys).decode(),),
    )
    return tuple(_approval(row) for row in rows)


def session_approvals(db: apsw.Connection, project_id: str) -> tuple[Approval, ...]:
    """What the user approved for single sessions of a project, in the order of approval."""
    rows = db.execute(
        "SELECT ordinal, key, permission, pattern, action, agent, at FROM approval "
        "WHERE key IN (SELECT id FROM session WHERE project_id = ?) ORDER BY ordinal",
        (project_id,),
    )
    return tuple(_approval(row) for row in rows)


def _approval(row: Sequence[Any]) -> Approval:
    number, key, permission, pattern, action, agent, at = row
    rule = Rule(permission=permission, pattern=pattern, action=action)
    return Approval(id=number, key=key, rule=rule, agent=agent or None, at=at)


def events(db: apsw.Connection, after: int, limit: int) -> tuple[Event, ...]:
    """Stored events with a greater number, in order."""
    rows = db.execute(
        "SELECT seq, type, data FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    )
    return tuple(event(db, *row) for row in rows)


def event(db: apsw.Connection, seq: int, name: str, data: bytes) -> Event:
    """The event of a row, with the text that its part has in pieces."""
    if name == pieces.STREAMED and (update := pieces.update(db, data)) is not None:
        return Event(properties=update, seq=seq)
    return records.to_event(seq, name, data)


def last_ids(db: apsw.Connection, session_id: str) -> LastIds:
    """The greatest ids that the session has."""
    rows = db.execute(
        "SELECT (SELECT max(id) FROM message WHERE session_id = ?1), "
        "(SELECT max(id) FROM part WHERE session_id = ?1)",
        (session_id,),
    )
    message, part = next(iter(rows))
    return LastIds(message=message, part=part)


def _turns(session_id: str, messages: _Messages, parts: _Parts) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            info=records.to_message(data, session_id, id_, role),
            parts=tuple(
                records.to_part(part, session_id, id_, part_id) for part_id, part in parts[id_]
            ),
        )
        for id_, role, data in messages
    )


def _rows(
    db: apsw.Connection, session_id: str, limit: int | None, before: str | None = None
) -> tuple[_Messages, _Parts]:
    """Return the last `limit` messages, of those before one if it is given, with their parts."""
    parts: _Parts = defaultdict(list)
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
        for message_id, part_id, *row in db.execute(
            "SELECT message_id, id, data, ordinal, state, streamed FROM part WHERE session_id = ?1 "
            "AND (?2 < 0 OR message_id IN (SELECT id FROM message WHERE session_id = ?1 "
            "AND ordinal < ?3 ORDER BY ordinal DESC LIMIT ?2)) ORDER BY message_id, ordinal",
            last,
        ):
            parts[message_id].append((part_id, pieces.whole(db, *row)))
    return messages[::-1], parts


def _ordinal(db: apsw.Connection, session_id: str, message_id: str) -> int:
    """Return the place of a message in its session; an unknown one has nothing before it."""
    key = (session_id, message_id)
    rows = db.execute("SELECT ordinal FROM message WHERE session_id = ? AND id = ?", key)
    return next((ordinal for (ordinal,) in rows), 0)


def _containing(text: str | None) -> str | None:
    """A LIKE pattern for titles that contain `text`."""
    if not text:
        return None
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
