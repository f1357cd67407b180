# ruff: noqa: S608 - columns and conditions are our own words
"""Queries: plain functions of a connection."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

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
from pegboard.schema.message import Message, Turn
from pegboard.schema.part import Part, TextPart
from pegboard.schema.session import Approval, Project, Rule, Session, Todo
from pegboard.schema.wire import encode
from pegboard.storage import LastIds, SearchHit, SessionSize
from pegboard_postgres import rows
from pegboard_postgres.connections import Connection
from pegboard_postgres.workers import ALIVE

_SESSION = f"SELECT {rows.SESSION} FROM session"
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
_TEXTS = (
    "SELECT part_id, string_agg(piece, ''::bytea ORDER BY ordinal) FROM part_text "
    "WHERE session_id = %s GROUP BY part_id"
)
_SAID = (
    f"SELECT {', '.join(f's.{each}' for each in rows.SESSION.split(', '))}, p.message_id, p.id, "
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
_BEGINNING = b'{"id":"'  # of each session, so that a row of other JSON does not pass for one
_NO_JSON = b"!"  # for an empty row, which would not show in a list
_SNIPPET_LENGTH = 160
_PROBLEMS_LISTED = 100


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions that are listed; `None` and `False` leave all in."""

    project_id: str | None = None
    limit: int | None = None
    search: str | None = None
    roots: bool = False
    since: int | None = None
    directory: str | None = None


async def fetch(db: Connection, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    cursor = await db.execute(query.encode(), values, binary=True)
    return await cursor.fetchall()


async def session(db: Connection, session_id: str) -> Session:
    """Return the session.

    :raises NotFoundError: when nothing has this id.
    """
    for row in await fetch(db, f"{_SESSION} WHERE id = %s", session_id):
        return rows.to_session(*row)
    raise NotFoundError("session", session_id)


async def owner(db: Connection, session_id: str) -> tuple[str | None, bool]:
    """Return who has the session, None also for an unknown one, and whether that one lives."""
    for holder, alive in await fetch(db, _OWNER, session_id):
        return holder, alive
    return None, False


async def abandoned(db: Connection) -> list[str]:
    """Return the sessions with unfinished work that no living process does."""
    return [id_ for (id_,) in await fetch(db, _ABANDONED)]


async def session_rows(db: Connection, wanted: SessionFilter) -> list[tuple[Any, ...]]:
    """Return the rows of the sessions that pass the filter, those updated last first."""
    conditions: dict[str, object] = {
        "project_id = %s": wanted.project_id,
        "updated >= %s": wanted.since,
        "directory = %s": wanted.directory,
        "title ILIKE %s": f"%{_escaped(wanted.search)}%" if wanted.search else None,
    }
    used = {text: value for text, value in conditions.items() if value is not None}
    clauses = [*used, *(["parent_id IS NULL"] if wanted.roots else [])]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    query = f"{_SESSION}{where} ORDER BY updated DESC, ordinal DESC LIMIT %s"
    return await fetch(db, query, *used.values(), wanted.limit)


async def sessions(db: Connection, wanted: SessionFilter) -> tuple[Session, ...]:
    """Return the sessions that pass the filter."""
    return tuple(rows.to_session(*row) for row in await session_rows(db, wanted))


async def sessions_json(db: Connection, wanted: SessionFilter) -> bytes:
    """Return what `sessions` does as a JSON array, joined from the rows."""
    found = await session_rows(db, wanted)
    listed = b"[%b]" % b",".join([data for data, *_ in found])
    if all(data.startswith(_BEGINNING) for data, *_ in found) and rows.is_json(listed):
        return listed
    return encode(tuple(rows.to_session(*row) for row in found))


async def children(db: Connection, session_id: str) -> tuple[Session, ...]:
    """Return the sessions whose parent this is, in the order of their creation."""
    found = await fetch(db, f"{_SESSION} WHERE parent_id = %s ORDER BY ordinal", session_id)
    return tuple(rows.to_session(*row) for row in found)


async def projects(db: Connection) -> tuple[Project, ...]:
    """Return all projects that can be read, in the order of their creation."""
    found = await fetch(db, "SELECT data FROM project ORDER BY ordinal")
    return tuple(project for (data,) in found if (project := rows.to_project(data)))


class Turns(msgspec.Struct, frozen=True):
    """The rows of messages and parts at one moment; text that was added by the id of its part."""

    session_id: str
    messages: list[tuple[str, str, bytes]]
    parts: dict[str, list[tuple[str, bytes]]]
    added: dict[str, bytes]

    def values(self) -> tuple[Turn, ...]:
        """Return the messages with their parts."""
        return tuple(
            Turn(
                info=rows.to_message(data, self.session_id, id_, role),
                parts=tuple(self._part(id_, *row) for row in self.parts[id_]),
            )
            for id_, role, data in self.messages
        )

    def json(self) -> bytes:
        """Return the same as a JSON array."""
        joined = b",".join(
            b'{"info":%b,"parts":[%b]}'
            % (data, b",".join([self._row(id_, *row) for row in self.parts[id_]]))
            for id_, _, data in self.messages
        )
        listed = b"[%b]" % joined
        return listed if rows.is_json(listed) else encode(self.values())

    def _part(self, message_id: str, id_: str, data: bytes) -> Part:
        return rows.to_part(data, self.session_id, message_id, id_, self.added.get(id_))

    def _row(self, message_id: str, id_: str, data: bytes) -> bytes:
        return encode(self._part(message_id, id_, data)) if id_ in self.added else data or _NO_JSON


async def turns(
    db: Connection, session_id: str, *, limit: int | None = None, before: str | None = None
) -> Turns:
    """Return the last messages, of those before one if it is given, with their parts."""
    parts: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    async with db.transaction():
        await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        key = (session_id, before, session_id, before, limit)
        messages = await fetch(db, _MESSAGES, *key)
        some = None if limit is None and before is None else [id_ for id_, *_ in messages]
        for message_id, *row in await fetch(db, _PARTS, session_id, some, some):
            parts[message_id].append((row[0], row[1]))
        added = await fetch(db, _TEXTS, session_id)
    return Turns(session_id, [(a, b, c) for a, b, c in reversed(messages)], parts, dict(added))


async def turn(db: Connection, session_id: str, message_id: str) -> Turn:
    """Return one message with its parts.

    :raises NotFoundError: when the session has no such message.
    """
    async with db.transaction():
        await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        query = "SELECT id, role, data FROM message WHERE session_id = %s AND id = %s"
        messages = await fetch(db, query, session_id, message_id)
        found = await fetch(db, _PARTS, session_id, [message_id], [message_id])
        added = await fetch(db, _TEXTS, session_id)
    if not messages:
        raise NotFoundError("message", message_id)
    parts = {message_id: [(id_, data) for _, id_, data in found]}
    (value,) = Turns(session_id, [(a, b, c) for a, b, c in messages], parts, dict(added)).values()
    return value


async def todos(db: Connection, session_id: str) -> tuple[Todo, ...]:
    """Return the session's list."""
    for (data,) in await fetch(db, "SELECT data FROM todos WHERE session_id = %s", session_id):
        return rows.to_todos(data)
    return ()


async def state(db: Connection, session_id: str, key: str) -> object:
    """Return what a tool has stored, None when there is nothing."""
    query = "SELECT data FROM state WHERE session_id = %s AND key = %s"
    for (data,) in await fetch(db, query, session_id, key):
        return rows.to_value(data)
    return None


async def approvals(db: Connection, keys: Sequence[str]) -> tuple[Approval, ...]:
    """Return what the user approved for these keys, in the order of approval."""
    found = await fetch(db, f"{_APPROVAL} WHERE key = ANY(%s) ORDER BY ordinal", list(keys))
    return tuple(map(_approval, found))


async def session_approvals(db: Connection, project_id: str) -> tuple[Approval, ...]:
    """Return what the user approved for single sessions of a project."""
    own = "(SELECT id FROM session WHERE project_id = %s)"
    found = await fetch(db, f"{_APPROVAL} WHERE key IN {own} ORDER BY ordinal", project_id)
    return tuple(map(_approval, found))


def _approval(row: Sequence[Any]) -> Approval:
    number, key, permission, pattern, action, agent, at = row
    rule = Rule(permission=permission, pattern=pattern, action=action)
    return Approval(id=number, key=key, rule=rule, agent=agent or None, at=at)


async def events(db: Connection, after: int, limit: int, base: int) -> tuple[Event, ...]:
    """Return stored events with a greater number, in order."""
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
    """Return the properties of an event; None for the update of a row that is gone."""
    session, project_id, directory, updated, message, role, part, message_id, *others = row
    project, listed = others
    match name:
        case "session.created" | "session.updated" if session is not None:
            info = rows.to_session(session, session_id, project_id, directory, updated)
            kind = SessionCreated if name == "session.created" else SessionUpdated
            return kind(session_id=session_id, info=info)
        case "message.updated" if message is not None:
            told: Message = rows.to_message(message, session_id, id_, role)
            return MessageUpdated(session_id=session_id, info=told)
        case "message.part.updated" if part is not None:
            value = rows.to_part(part, session_id, message_id, id_)
            return PartUpdated(session_id=session_id, part=value, time=round(at * 1000))
        case "project.updated" if project is not None:
            known = rows.to_project(project)
            return Custom(name=name, data={}) if known is None else ProjectUpdated(info=known)
        case "todo.updated" if listed is not None:
            return TodoUpdated(session_id=session_id, todos=rows.to_todos(listed))
        case _:
            return None if data is None else rows.to_properties(name, data)


async def forget_events(db: Connection) -> None:
    """Delete the events that are older than a day."""
    await db.execute("DELETE FROM event WHERE at < clock_timestamp() - interval '1 day'")


async def last_ids(db: Connection, session_id: str) -> LastIds:
    """Return the greatest ids that the session has."""
    query = (
        "SELECT (SELECT max(id) FROM message WHERE session_id = %s), "
        "(SELECT max(id) FROM part WHERE session_id = %s)"
    )
    ((message, part),) = await fetch(db, query, session_id, session_id)
    return LastIds(message=message, part=part)


async def sizes(db: Connection) -> tuple[SessionSize, ...]:
    """Return the sessions of all projects with their sizes, the largest first."""
    return tuple(SessionSize(*row) for row in await fetch(db, _SIZES))


async def search(db: Connection, project_id: str, text: str, limit: int) -> tuple[SearchHit, ...]:
    """Return the project's sessions that contain the text, matches in titles first.

    The rows have text as JSON, so the query looks for the text as JSON has it; a hit is what has
    the text itself.
    """
    written = _escaped(encode(text).decode()[1:-1])
    wanted = SessionFilter(project_id=project_id, search=text, limit=limit)
    hits = {each.id: SearchHit(session=each) for each in await sessions(db, wanted)}
    for *columns, message_id, part_id, data in await fetch(db, _SAID, project_id, f"%{written}%"):
        if len(hits) >= limit:
            break
        found = rows.to_session(*columns)
        part = rows.to_part(data, found.id, message_id, part_id)
        said = part.text if isinstance(part, TextPart) and not part.synthetic else ""
        if found.id not in hits and text.lower() in said.lower():
            excerpt = _around(said, text)
            hits[found.id] = SearchHit(session=found, message_id=message_id, excerpt=excerpt)
    return tuple(hits.values())


def _around(said: str, text: str) -> str:
    """Return the line of `said` that has the text, cut to what fits on a screen."""
    place = max(said.lower().find(text.lower()), 0)
    start = said.rfind("\n", 0, place) + 1
    line = said[max(start, place - _SNIPPET_LENGTH // 2) :].split("\n", 1)[0]
    return line[:_SNIPPET_LENGTH].strip()


def _escaped(text: str) -> str:
    """Return the text as a part of a LIKE pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


async def problems(db: Connection) -> tuple[str, ...]:
    """Return the rows that cannot be read, in sentences."""
    found: list[str] = []
    kinds = {"session": Session, "message": Message, "part": Part}
    for table, kind in kinds.items():
        decoder = msgspec.json.Decoder(kind)
        for id_, data in await fetch(db, f"SELECT id, data FROM {table} ORDER BY ordinal"):
            try:
                decoder.decode(data)
            except rows.DAMAGE as error:
                found.append(f"{table} {id_} cannot be read: {error}")
    return tuple(found[:_PROBLEMS_LISTED])
