# ruff: noqa: S608 - columns and conditions are our own words
"""The processes that use a database: their leases, and how the work of a dead one ends."""

import asyncio
import os
import socket
from contextlib import suppress

from psycopg import Error

from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.event import Event
from pegboard.storage import Fence, end_unfinished, read_message, read_part
from pegboard_postgres.connections import Address, Connection, until_reached
from pegboard_postgres.drafts import HeldSession
from pegboard_postgres.transactions import Transaction

LEASE_S = 3.0
"""How long a process counts as living after its last beat."""
_BEAT_S = LEASE_S / 5
_FORGOTTEN_S = 3600.0
# A server that has just started has had no beat yet.
ALIVE = (
    "SELECT 1 FROM worker WHERE id = owner AND clock_timestamp() "
    f"< greatest(lease_until, pg_postmaster_start_time() + interval '{LEASE_S} s')"
)
"""The condition that the worker named by a column `owner` lives, by the server's clock."""
_BEAT = (
    "INSERT INTO worker(id, host, pid, lease_until) "
    "VALUES(%s, %s, %s, clock_timestamp() + %s * interval '1 s') "
    "ON CONFLICT(id) DO UPDATE SET lease_until = excluded.lease_until"
)
_FORGET = (
    "WITH gone AS (DELETE FROM worker WHERE id = %s OR lease_until < clock_timestamp() - %s * "
    "interval '1 s' RETURNING id) DELETE FROM receipt USING gone WHERE worker = gone.id"
)
_IS_DEAD = f"SELECT NOT EXISTS({ALIVE}) FROM (VALUES(%s)) AS v(owner)"
_UNFINISHED = (
    "SELECT EXISTS(SELECT 1 FROM part WHERE session_id = %s AND state IS NOT NULL) "
    "OR EXISTS(SELECT 1 FROM message WHERE session_id = %s AND unfinished)"
)
_PARTS = (
    "SELECT part.data, message_id, id, (SELECT string_agg(piece, ''::bytea ORDER BY t.ordinal) "
    "FROM part_text AS t WHERE t.session_id = part.session_id AND t.part_id = part.id) "
    "FROM part WHERE session_id = %s AND state IS NOT NULL ORDER BY ordinal"
)
_MESSAGES = (
    "SELECT data, id, role FROM message WHERE session_id = %s AND unfinished ORDER BY ordinal"
)
_REQUESTS = "SELECT id FROM permission_request WHERE session_id = %s ORDER BY ordinal"


class Lease:
    """The sign of life of this process: a row that it renews on a connection of its own."""

    def __init__(self, db: Connection, address: Address) -> None:
        self.own = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(6).hex()}"
        self._db = db
        self._address = address
        self._beating: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Register this process, and renew its lease from now on."""
        await self._beat()
        await self._db.execute(_FORGET, ("", _FORGOTTEN_S))
        self._beating = asyncio.create_task(self._beats(), name="pegboard-postgres-lease")

    async def aclose(self) -> None:
        """Take the sign of life back."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        with suppress(Error):  # the lease ends by itself
            await self._db.execute(_FORGET, (self.own, _FORGOTTEN_S))
        await self._db.close()

    async def _beats(self) -> None:
        while True:  # until it is cancelled
            await asyncio.sleep(_BEAT_S)
            try:
                await self._beat()
            except Error:
                await self._db.close()
                with suppress(Error):  # the next beat tries again
                    self._db = await until_reached(self._address.connect, within_s=_BEAT_S)
                    await self._beat()

    async def _beat(self) -> None:
        arguments = (self.own, socket.gethostname(), os.getpid(), LEASE_S)
        await self._db.execute(_BEAT, arguments)


async def claim(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str, own: str
) -> tuple[Fence, tuple[Event, ...]]:
    """Return the session's fence for `own`, and the events of a take-over.

    :raises SessionBusyError: while a living owner has it.
    :raises NotFoundError: when nothing has this id.
    """
    if session_id not in held:
        raise NotFoundError("session", session_id)
    found = held[session_id]
    events: tuple[Event, ...] = ()
    if found.owner is not None:
        if found.owner == own or not await _is_dead(transaction, found.owner):
            raise SessionBusyError(session_id, owner=found.owner)
        events = await interrupt(transaction, held, session_id)
    fence = Fence(session_id=session_id, owner=own, epoch=found.epoch + 1)
    await transaction.run(
        "UPDATE session SET owner = %s, epoch = %s WHERE id = %s", own, fence.epoch, session_id
    )
    return fence, events


async def bury(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str
) -> tuple[None, tuple[Event, ...]]:
    """End what is unfinished in a session that no living process runs."""
    if session_id not in held:
        return None, ()
    owner = held[session_id].owner
    if owner is not None and not await _is_dead(transaction, owner):
        return None, ()
    if owner is None and not await _is_unfinished(transaction, session_id):
        return None, ()
    return None, await interrupt(transaction, held, session_id)


async def release(
    transaction: Transaction, held: dict[str, HeldSession], fence: Fence
) -> tuple[None, tuple[Event, ...]]:
    """Give a session back, and end what a failed write has left unfinished.

    Nothing happens when another owner has the session.
    """
    session_id, found = fence.session_id, held.get(fence.session_id)
    if found is None or (found.owner, found.epoch) != (fence.owner, fence.epoch):
        return None, ()
    if await _is_unfinished(transaction, session_id):
        return None, await interrupt(transaction, held, session_id, died=False)
    await transaction.run("UPDATE session SET owner = NULL WHERE id = %s", session_id)
    return None, ()


async def release_all(
    transaction: Transaction, _: dict[str, HeldSession], owner: str
) -> tuple[None, tuple[Event, ...]]:
    """Give all sessions of an owner back."""
    await transaction.run("UPDATE session SET owner = NULL WHERE owner = %s", owner)
    return None, ()


async def interrupt(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str, *, died: bool = True
) -> tuple[Event, ...]:
    """End everything unfinished in a session, and take it from its owner.

    `died` is as in `end_unfinished`.
    """
    parts = await transaction.run(_PARTS, session_id)
    messages = await transaction.run(_MESSAGES, session_id)
    requests = await transaction.run(_REQUESTS, session_id)
    changes = end_unfinished(
        session_id,
        parts=[
            read_part(data, session_id, message_id, id_, added=added or b"")
            for data, message_id, id_, added in parts
        ],
        messages=[read_message(data, session_id, *columns) for data, *columns in messages],
        requests=[id_ for (id_,) in requests],
        died=died,
    )
    events = await transaction.apply(tuple(changes), held)
    # A damaged row has no state to end.
    await transaction.run("UPDATE part SET state = NULL WHERE session_id = %s", session_id)
    await transaction.run("UPDATE message SET unfinished = false WHERE session_id = %s", session_id)
    await transaction.run("UPDATE session SET owner = NULL WHERE id = %s", session_id)
    return events


async def _is_dead(transaction: Transaction, owner: str) -> bool:
    ((dead,),) = await transaction.run(_IS_DEAD, owner)
    return bool(dead)


async def _is_unfinished(transaction: Transaction, session_id: str) -> bool:
    ((found,),) = await transaction.run(_UNFINISHED, session_id, session_id)
    return bool(found)
