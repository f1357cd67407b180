"""What a database has stored that nothing but a test asks for."""

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from pegboard.schema.session import PermissionRequest
from pegboard.storage import read_json
from pegboard_plugins.sqlite.opentexts import OPEN

_T = TypeVar("_T")


async def _read(storage: Any, read: Callable[[apsw.Connection], _T]) -> _T:
    found: _T = await storage._read(read)
    return found


async def running(storage: Any) -> tuple[str, ...]:
    """The sessions that have a tool call pending or running."""

    def read(db: apsw.Connection) -> tuple[str, ...]:
        rows = db.execute("SELECT DISTINCT session_id FROM part WHERE state <> ?", (OPEN,))
        return tuple(session_id for (session_id,) in rows)

    return await _read(storage, read)


async def last_seq(storage: Any) -> int:
    """The number of the newest event, 0 when there never was one."""

    def read(db: apsw.Connection) -> int:
        rows = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'")
        return max((int(seq) for (seq,) in rows), default=0)

    return await _read(storage, read)


async def permission_requests(storage: Any) -> tuple[PermissionRequest, ...]:
    """Requests without an answer, oldest first, in SQLite or on a server."""
    statement = "SELECT data FROM permission_request ORDER BY ordinal"

    def read(db: Any) -> Any:
        return list(db.execute(statement)) if isinstance(db, apsw.Connection) else fetched(db)

    async def fetched(db: Any) -> list[tuple[bytes]]:
        found: list[tuple[bytes]] = await (await db.execute(statement)).fetchall()
        return found

    rows = await _read(storage, read)
    return tuple(request for (data,) in rows if (request := read_json(data, PermissionRequest)))
