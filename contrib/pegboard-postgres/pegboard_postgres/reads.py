# ruff: noqa: S608 - columns and conditions are our own words
"""The storage's queries, as plain functions of a database connection."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pegboard.errors import NotFoundError
from pegboard.schema.event import (
    Custom,
    Event,
    MessageUpdated,
    PartUpdated,
    ProjectUpdated,
    Properties,
    SessionCreated,
    SessionUpdated,
    TodoUpdated,
)
from pegboard.schema.message import Turn
from pegboard.schema.part import TextPart
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.schema.wire import encode
from pegboard.storage import (
    LastIds,
    SearchHit,
    SessionFilters,
    SessionRow,
    SessionSize,
    TurnRows,
    damage_of,
    join_sessions,
    read_approval,
    read_json,
    read_message,
    read_part,
    read_properties,
    read_session,
    read_todos,
)
from pegboard_postgres.connections import Connection
from pegboard_postgres.transactions import SESSION
from pegboard_postgres.workers import ALIVE

_SESSION = f"SELECT {SESSION} FROM session"
_APPROVAL = "SELECT ordinal, key, permission, pattern, action, agent, at FROM approval"
_OWNER = f"SELECT owner, EXISTS({ALIVE}) FROM session WHERE id = %s"
_ABANDONED = f"""
SELECT id FROM session WHERE owner IS NOT NULL AND NOT EXISTS({ALIVE})
UNION SELECT id FROM session WHERE owner IS NULL AND id IN (
    SELECT session_id FROM part WHERE state IS NOT NULL
    UNION SELECT session_id FROM message WHERE unfinished)
"""
_MESSAGES = (
    "SELECT id, role, data FROM message WHERE session_id = %s AND (%s::text IS NULL OR ordinal < "
    "(SELECT ordinal FROM message WHERE session_id = %s AND id = %s::text)) "
    "ORDER BY ordinal DESC LIMIT %s"
)
_PARTS = (
    "SELECT message_id, id, data FROM part WHERE session_id = %s "
    "AND (%s::text[] IS NULL OR message_id = ANY(%s::text[])) ORDER BY ordinal"
)
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_TEXTS = (
    "SELECT part_id, string_agg(piece, ''::bytea ORDER BY ordinal) FROM part_text "
    "WHERE session_id = %s GROUP BY part_id"
)
_IN_MESSAGES = (
    f"SELECT {', '.join(f's.{each}' for each in SESSION.split(', '))}, p.message_id, p.id, "
    "p.data FROM part AS p JOIN session AS s ON s.id = p.session_id WHERE s.project_id = %s "
    'AND position(\'"type":"text"\'::bytea IN p.data) > 0 '
    "AND convert_from(p.data, 'UTF8') ILIKE %s ORDER BY s.updated DESC, s.ordinal DESC, p.ordinal"
)
# A number is given out only when no transaction with a smaller one goes on: what a reader has
# passed stays complete.
_EVENTS = """
SELECT e.seq, e.type, e.session_id, e.id, e.data, extract(epoch FROM e.at)::float8,
    s.data, s.project_id, s.directory, s.updated, m.data, m.role, p.data, p.message_id, j.data,
    t.data
FROM event AS e
LEFT JOIN session AS s ON e.type IN ('session.created', 'session.updated') AND s.id = e.session_id
LEFT JOIN message AS m ON e.type = 'message.updated' AND m.session_id = e.session_id
    AND m.id = e.id
LEFT JOIN part AS p ON e.type = 'message.part.updated' AND p.session_id = e.session_id
    AND p.id = e.id
LEFT JOIN project AS j ON e.type = 'project.updated' AND j.id = e.id AND j.tenant = e.tenant
LEFT JOIN todos AS t ON e.type = 'todo.updated' AND t.session_id = e.session_id
WHERE e.seq > %s
    AND e.seq < (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + %s) << 16
ORDER BY e.seq LIMIT %s
"""
_SIZES = """
SELECT id, project_id, title, directory, (length(data)
    + coalesce((SELECT sum(length(data)) FROM message WHERE session_id = session.id), 0)
    + coalesce((SELECT sum(length(data)) FROM part WHERE session_id = session.id), 0)
    + coalesce((SELECT sum(length(piece)) FROM part_text WHERE session_id = session.id), 0)
    + coalesce((SELECT sum(length(data)) FROM state WHERE session_id = session.id), 0))::bigint
FROM session ORDER BY 5 DESC
"""
_PROBLEMS_LISTED = 100


async def fetch(db: Connection, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a query, and return the rows of the result."""
    cursor = await db.execute(query.encode(), values, binary=True)
    return await cursor.fetchall()


async def session(db: Connection, session_id: str) -> Session:
    """Return the session with this id.

    :raises NotFoundError: when no session has this id.
    """
    for row in await fetch(db, f"{_SESSION} WHERE id = %s", session_id):
        return read_session(*row)
    raise NotFoundError("session", session_id)


async def owner(db: Connection, session_id: str) -> tuple[str | None, bool]:
    """Return the id of the session's owner, or None, and whether the owner is alive."""
    for holder, alive in await fetch(db, _OWNER, session_id):
        return holder, alive
    return None, False


async def abandoned_sessions(db: Connection) -> list[str]:
    """Return the ids of sessions with unfinished work that no living process runs."""
    return [id_ for (id_,) in await fetch(db, _ABANDONED)]


async def _session_rows(
    db: Connection, project_id: str | None, filters: SessionFilters
) -> list[SessionRow]:
    """Return the rows of the sessions that match `filters`, the most recently updated first."""
    search = filters.get("search")
    conditions: dict[str, object] = {
        "project_id = %s": project_id,
        "updated >= %s": filters.get("since"),
        "directory = %s": filters.get("directory"),
        "title ILIKE %s": f"%{_escape(search)}%" if search else None,
    }
    used = {text: value for text, value in conditions.items() if value is not None}
    clauses = [*used, *(["parent_id IS NULL"] if filters.get("roots") else [])]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    query = f"{_SESSION}{where} ORDER BY updated DESC, ordinal DESC LIMIT %s"
    found = await fetch(db, query, *used.values(), filters.get("limit"))
    return [(a, b, c, d, e) for a, b, c, d, e in found]


async def sessions(
    db: Connection, project_id: str | None, filters: SessionFilters
) -> tuple[Session, ...]:
    """Return the sessions of a project, or of all projects, that match the filters."""
    return tuple(read_session(*row) for row in await _session_rows(db, project_id, filters))


async def sessions_json(db: Connection, project_id: str | None, filters: SessionFilters) -> bytes:
    """Return the sessions that match `filters` as a JSON array, built without decoding rows."""
    return join_sessions(await _session_rows(db, project_id, filters))


async def children(db: Connection, session_id: str) -> tuple[Session, ...]:
    """Return the child sessions of a session, in the order of creation."""
    found = await fetch(db, f"{_SESSION} WHERE parent_id = %s ORDER BY ordinal", session_id)
    return tuple(read_session(*row) for row in found)


async def projects(db: Connection) -> tuple[Project, ...]:
    """Return all readable projects, in the order of creation."""
    found = await fetch(db, "SELECT data FROM project ORDER BY ordinal")
    return tuple(project for (data,) in found if (project := read_json(data, Project)))


async def turns(
    db: Connection, session_id: str, *, limit: int | None = None, before: str | None = None
) -> TurnRows:
    """Return the last `limit` messages, or the last before message `before`, with their parts."""
    async with db.transaction():
        await db.execute(_ONE_MOMENT)
        key = (session_id, before, session_id, before, limit)
        messages = await fetch(db, _MESSAGES, *key)
        some = None if limit is None and before is None else [id_ for id_, *_ in messages]
        return await _with_parts(db, session_id, messages[::-1], some)


async def turn(db: Connection, session_id: str, message_id: str) -> Turn:
    """Return a message with its parts.

    :raises NotFoundError: when the session has no such message.
    """
    async with db.transaction():
        await db.execute(_ONE_MOMENT)
        query = "SELECT id, role, data FROM message WHERE session_id = %s AND id = %s"
        messages = await fetch(db, query, session_id, message_id)
        found = await _with_parts(db, session_id, messages, [message_id])
    if not messages:
        raise NotFoundError("message", message_id)
    return found.values()[0]


async def _with_parts(
    db: Connection, session_id: str, messages: list[tuple[Any, ...]], some: list[str] | None
) -> TurnRows:
    """Return messages with their parts; `some` limits the parts to these message ids."""
    found = await fetch(db, _PARTS, session_id, some, some)
    added = dict(await fetch(db, _TEXTS, session_id))
    parts: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for message_id, id_, data in found:
        parts[message_id].append((id_, data))
        if id_ in added:
            part = read_part(data, session_id, message_id, id_, added=added[id_])
            parts[message_id][-1] = (id_, encode(part))
    return TurnRows(session_id, [(a, b, c) for a, b, c in messages], parts)


async def todos(db: Connection, session_id: str) -> tuple[Todo, ...]:
    """Return the todo list of the session."""
    for (data,) in await fetch(db, "SELECT data FROM todos WHERE session_id = %s", session_id):
        return read_todos(data)
    return ()


async def state(db: Connection, session_id: str, key: str) -> object:
    """Return the state that a tool stored under `key`, or None if it has stored none."""
    query = "SELECT data FROM state WHERE session_id = %s AND key = %s"
    for (data,) in await fetch(db, query, session_id, key):
        return read_json(data, object)
    return None


async def approvals(db: Connection, keys: Sequence[str]) -> tuple[Approval, ...]:
    """Return the user's approvals with these keys, in the order of approval."""
    found = await fetch(db, f"{_APPROVAL} WHERE key = ANY(%s) ORDER BY ordinal", list(keys))
    return tuple(map(read_approval, found))


async def session_approvals(db: Connection, project_id: str) -> tuple[Approval, ...]:
    """Return the user's approvals that apply to single sessions of the project."""
    own = "(SELECT id FROM session WHERE project_id = %s)"
    found = await fetch(db, f"{_APPROVAL} WHERE key IN {own} ORDER BY ordinal", project_id)
    return tuple(map(read_approval, found))


async def events(db: Connection, after: int, limit: int, base: int) -> tuple[Event, ...]:
    """Return stored events with a number greater than `after`, in order.

    `base` is the result of `migrate`.
    """
    found = await fetch(db, _EVENTS, after, base, limit)
    return tuple(
        Event(properties=properties, seq=seq)
        for seq, *row in found
        if (properties := _properties(*row)) is not None
    )


def _properties(
    name: str,
    session_id: str,
    id_: str,
    data: bytes | None,
    at: float,
    *row: Any,  # noqa: ANN401
) -> Properties | None:
    """Decode the properties of a stored event; None if the row that the event reports is gone."""
    session, project_id, directory, updated, message, role, part, message_id, *others = row
    project, listed = others
    match name:
        case "session.created" | "session.updated" if session is not None:
            info = read_session(session, session_id, project_id, directory, updated)
            kind = SessionCreated if name == "session.created" else SessionUpdated
            return kind(session_id=session_id, info=info)
        case "message.updated" if message is not None:
            answer = read_message(message, session_id, id_, role)
            return MessageUpdated(session_id=session_id, info=answer)
        case "message.part.updated" if part is not None:
            value = read_part(part, session_id, message_id, id_)
            return PartUpdated(session_id=session_id, part=value, time=round(at * 1000))
        case "project.updated" if project is not None:
            known = read_json(project, Project)
            return Custom(name=name, data={}) if known is None else ProjectUpdated(info=known)
        case "todo.updated" if listed is not None:
            return TodoUpdated(session_id=session_id, todos=read_todos(listed))
        case _:
            return None if data is None else read_properties(name, data)


async def forget_events(db: Connection) -> None:
    """Delete events that are older than a day."""
    await db.execute("DELETE FROM event WHERE at < clock_timestamp() - interval '1 day'")


async def last_ids(db: Connection, session_id: str) -> LastIds:
    """Return the greatest message id and the greatest part id of the session."""
    query = (
        "SELECT (SELECT max(id) FROM message WHERE session_id = %s), "
        "(SELECT max(id) FROM part WHERE session_id = %s)"
    )
    ((message, part),) = await fetch(db, query, session_id, session_id)
    return LastIds(message=message, part=part)


async def sizes(db: Connection) -> tuple[SessionSize, ...]:
    """Return all sessions of all projects with the sizes of the sessions, the largest first."""
    return tuple(SessionSize(*row) for row in await fetch(db, _SIZES))


async def search(db: Connection, project_id: str, text: str, limit: int) -> tuple[SearchHit, ...]:
    """Return the project's sessions that contain `text`, matches in titles first.

    The query searches the JSON data for the JSON form of `text`. Each row is then decoded, and only
    a match in the message's text counts.
    """
    written = _escape(encode(text).decode()[1:-1])
    titled = await sessions(db, project_id, {"search": text, "limit": limit})
    hits = {each.id: SearchHit(session=each) for each in titled}
    for *columns, message_id, part_id, data in await fetch(
        db, _IN_MESSAGES, project_id, f"%{written}%"
    ):
        if len(hits) >= limit:
            break
        found = read_session(*columns)
        part = read_part(data, found.id, message_id, part_id)
        spoken = part.text if isinstance(part, TextPart) and not part.synthetic else ""
        if found.id not in hits and text.lower() in spoken.lower():
            hits[found.id] = SearchHit.in_message(found, message_id, spoken, text)
    return tuple(hits.values())


def _escape(text: str) -> str:
    """Escape the text for use in a LIKE pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


async def problems(db: Connection) -> tuple[str, ...]:
    """Return a sentence about each row that cannot be read, up to a limit."""
    found = [
        damage_of(kind, id_, data)
        for kind in ("session", "message", "part")
        for id_, data in await fetch(db, f"SELECT id, data FROM {kind} ORDER BY ordinal")
    ]
    return tuple(filter(None, found))[:_PROBLEMS_LISTED]
