# ruff: noqa: S608 - columns and conditions are our own words
"""A write transaction, which locks sessions and assigns numbers to events."""

from collections.abc import Iterable, Sequence

from psycopg.rows import TupleRow

from pegboard.schema.event import Event
from pegboard.schema.session import Session
from pegboard.storage import Change, DropSession, Tell, read_session
from pegboard_postgres.connections import Connection
from pegboard_postgres.drafts import HeldSession, RowDraft, Written

SESSION = "data, id, project_id, directory, updated"
"""The columns of a session that `read_session` reads."""
# Each transaction locks the sessions that it writes, in one order, so that none waits for another
# that waits for it; and a claim cannot come between the check of a fence and the write. The first
# locks need no number of a transaction: it is given once they are held, so that the numbers of a
# session's events are in the order in which they were written.
_ORDERED = "SELECT pg_advisory_xact_lock(hashtextextended(id, 0)) FROM unnest(%s::text[]) AS id"
_LOCKED = (
    f"SELECT owner, epoch, {SESSION} FROM session WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
)
_FAMILY = (
    'WITH RECURSIVE family(id, depth) AS (SELECT %s::text COLLATE "C", 0 UNION '
    "SELECT session.id, depth + 1 FROM family JOIN session ON session.parent_id = family.id "
    f"WHERE depth < 100) SELECT {SESSION} FROM session "
    "JOIN (SELECT id, max(depth) AS depth FROM family GROUP BY id) AS f USING(id) "
    "ORDER BY depth DESC, ordinal DESC"
)
_WRITE = (
    "SELECT write_changes(%s::bigint, %s::text[], %s::text[], %s::text[], %s::text[], "
    "%s::text[], %s::text[], %s::bigint[], %b::bytea[], %s::text[])"
)
_RECEIVED = (
    "INSERT INTO receipt(worker, number) VALUES(%s, %s) "
    "ON CONFLICT(worker) DO UPDATE SET number = excluded.number"
)
_NUMBER_BITS = 16


class Transaction:
    """An open transaction of a connection; `number` is PostgreSQL's transaction id."""

    def __init__(self, db: Connection, base: int) -> None:
        self._db = db
        self._base = base
        self.number = 0

    async def begin(self, session_ids: Iterable[str]) -> dict[str, HeldSession]:
        """Begin the transaction, lock the sessions, and return the sessions that exist."""
        ids = sorted(set(session_ids))
        async with self._db.pipeline():
            await self._db.execute("BEGIN")
            await self._db.execute(_ORDERED, (ids,), binary=True)
            numbered = await self._db.execute("SELECT pg_current_xact_id()::text::bigint")
            locked = await self._db.execute(_LOCKED, (ids,), binary=True)
        ((self.number,),) = await numbered.fetchall()
        return {
            id_: HeldSession(read_session(data, id_, *columns), owner, epoch)
            for owner, epoch, data, id_, *columns in await locked.fetchall()
        }

    async def draft(self, changes: Sequence[Change], held: dict[str, HeldSession]) -> RowDraft:
        """Return an empty draft with the descendants of the sessions that will be deleted."""
        families: dict[str, tuple[Session, ...]] = {}
        for each in changes:
            if isinstance(each, DropSession):
                cursor = await self._db.execute(_FAMILY, (each.session_id,), binary=True)
                found = await cursor.fetchall()
                families[each.session_id] = tuple(read_session(*row) for row in found)
        return RowDraft(held, families)

    async def write(self, written: Sequence[Written | Tell]) -> list[Event | None]:
        """Write the rows of a draft; return for each row its event, or None if it has none."""
        stored = [each for each in written if isinstance(each, Written)]
        numbers: list[int | None] = []
        if stored:
            first = (self.number + self._base) << _NUMBER_BITS
            columns = zip(*(each.columns() for each in stored), strict=True)
            arguments = (first, *map(list, columns))
            cursor = await self._db.execute(_WRITE, arguments, binary=True)
            ((numbers,),) = await cursor.fetchall()
        found = iter(numbers)
        events: list[Event | None] = []
        for each in written:
            seq = 0 if isinstance(each, Tell) else next(found)
            properties = each.properties if seq is not None else None
            event = None if properties is None else Event(properties=properties, seq=seq or 0)
            events.append(event)
        return events

    async def apply(
        self, changes: Sequence[Change], held: dict[str, HeldSession]
    ) -> tuple[Event, ...]:
        """Write changes without checking a fence; return the events of the changes."""
        draft = await self.draft(changes, held)
        draft.add(changes, None)
        return tuple(filter(None, await self.write(draft.written)))

    async def commit(self, receipt: tuple[str, int]) -> None:
        """Commit, and store `receipt`, which later shows whether the transaction was committed.

        The receipt is a worker id and a number. PostgreSQL's transaction id is not enough: after a
        crash, another transaction may have the same id.
        """
        async with self._db.pipeline():
            await self._db.execute(_RECEIVED, receipt)
            await self._db.execute("COMMIT")

    async def run(self, statement: str, *values: object) -> list[TupleRow]:
        """Run a statement, and return the rows of the result."""
        cursor = await self._db.execute(statement.encode(), values, binary=True)
        return await cursor.fetchall() if cursor.description else []
