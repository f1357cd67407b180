# ruff: noqa: S608 - columns and conditions are our own words
"""The processes that use a database: their leases, and how the work of dead processes ends."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from psycopg import Error

from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.event import Event
from pegboard.storage import Fence, end_unfinished, read_message, read_part
from pegboard_postgres.connections import Address
from pegboard_postgres.drafts import HeldSession, is_held
from pegboard_postgres.transactions import Transaction

LEASE_S = 3.0
"""How long a process counts as living after its last beat."""
STUCK_S = 15.0
"""How long the event loop of a process may stand still before its lease ends."""
LOOK_S = 0.25
"""How often a process checks whether its lease had expired."""
SURE_S = LEASE_S - 1.0
"""How long after a beat the process is sure of its lease; the rest is for what it begins then."""
_BEAT_S = LEASE_S / 5
_CLOSE_S = 2.0
_FORGOTTEN_S = 3600.0
# A server that has just started has had no beat yet.
ALIVE = (
    "SELECT 1 FROM worker WHERE id = owner AND clock_timestamp() "
    f"< greatest(lease_until, pg_postmaster_start_time() + interval '{LEASE_S} s')"
)
"""The condition that the worker named by a column `owner` lives, by the server's clock."""
# It returns whether the renewal is so late that another process may have seen an expired lease.
_BEAT = (
    "WITH old AS (SELECT FROM worker WHERE id = %(own)s "
    "AND lease_until > clock_timestamp() + interval '1 s') "
    "INSERT INTO worker(id, host, pid, lease_until) "
    "VALUES(%(own)s, %(host)s, %(pid)s, clock_timestamp() + %(lease)s * interval '1 s') "
    "ON CONFLICT(id) DO UPDATE SET lease_until = excluded.lease_until "
    "RETURNING NOT EXISTS(SELECT FROM old)"
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


def uptime() -> float:
    """Return the seconds since the machine's start, including time in which this process paused."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The lease of this process: a row that shows that the process is alive.

    A thread renews the row on its own connection, even while the event loop is busy. If the event
    loop is stuck for longer than `stuck_s`, the thread pauses. The lease then expires, and other
    processes may take over the sessions. `lapses` counts renewals that came so late that sessions
    may have been lost. The storage then looks for lost sessions, and sets `looked` to the count.
    """

    def __init__(self, address: Address, *, stuck_s: float = STUCK_S) -> None:
        self.own = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(6).hex()}"
        self._address = address
        self._stuck_s = stuck_s
        self.lapses = self.looked = 0
        self._turned_at, self._seen_at = time.monotonic(), uptime()
        self._turning: asyncio.Task[None] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._beats, name="pegboard-postgres-lease", daemon=True
        )

    async def begin(self) -> None:
        """Register this process, and start to renew the lease of this process.

        :raises psycopg.Error: when the database cannot be reached.
        """
        await asyncio.to_thread(self._register)
        self._thread.start()
        self._turning = asyncio.create_task(self._turns(), name="pegboard-postgres-turns")

    @property
    def is_sure(self) -> bool:
        """Whether the lease is confirmed and all lost sessions are known; True after `aclose`."""
        return uptime() - self._seen_at < SURE_S or self._closed.is_set()

    async def aclose(self) -> None:
        """Delete the lease; if the server is unreachable, the lease expires by itself."""
        if self._turning is not None:
            self._turning.cancel()
            await asyncio.wait({self._turning})
        self._closed.set()
        await asyncio.to_thread(self._thread.join, _CLOSE_S)

    async def _turns(self) -> None:
        while True:  # until it is cancelled
            self._turned_at = time.monotonic()
            await asyncio.sleep(_BEAT_S)

    def _register(self) -> None:
        self._db = self._address.connect_blocking()
        try:
            self._beat()
            self.looked = self.lapses  # the process has no session yet
            self._forget("")
        except BaseException:
            self._db.close()
            raise

    def _beats(self) -> None:
        while not self._closed.wait(_BEAT_S):
            if time.monotonic() - self._turned_at > self._stuck_s:
                continue
            try:
                self._beat()
            except Error:
                self._db.close()
                with suppress(Error):  # the next beat tries again
                    self._db = self._address.connect_blocking()
                    self._beat()
        with suppress(Error):  # the lease ends by itself
            self._forget(self.own)
        self._db.close()

    def _beat(self) -> None:
        began_at, host = uptime(), socket.gethostname()
        facts = {"own": self.own, "host": host, "pid": os.getpid(), "lease": LEASE_S}
        ((is_late,),) = self._db.execute(_BEAT, facts).fetchall()
        self.lapses += bool(is_late)
        if self.lapses == self.looked:
            self._seen_at = began_at

    def _forget(self, own: str) -> None:
        self._db.execute(_FORGET, (own, _FORGOTTEN_S))


async def claim(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str, own: str
) -> tuple[Fence, tuple[Event, ...]]:
    """Claim a session for the process `own`.

    Return the fence, and the events that end the work of a dead previous owner.

    :raises SessionBusyError: while another living process owns the session.
    :raises NotFoundError: when no session has this id.
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


async def lost(
    _: Transaction, held: dict[str, HeldSession], fences: Sequence[Fence]
) -> tuple[tuple[Fence, ...], tuple[Event, ...]]:
    """Return the fences of sessions that were taken over or deleted, and no events."""
    return tuple(each for each in fences if not is_held(held, each)), ()


async def bury(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str
) -> tuple[None, tuple[Event, ...]]:
    """Interrupt the unfinished work of a session without a living process; return the events."""
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
    """Release a session; mark work that a failed write left unfinished as interrupted.

    Nothing happens if the session has another owner by now.
    """
    session_id = fence.session_id
    if not is_held(held, fence):
        return None, ()
    if await _is_unfinished(transaction, session_id):
        return None, await interrupt(transaction, held, session_id, died=False)
    await transaction.run("UPDATE session SET owner = NULL WHERE id = %s", session_id)
    return None, ()


async def release_all(
    transaction: Transaction, _: dict[str, HeldSession], owner: str
) -> tuple[None, tuple[Event, ...]]:
    """Release all sessions that the process `owner` has claimed."""
    await transaction.run("UPDATE session SET owner = NULL WHERE owner = %s", owner)
    return None, ()


async def interrupt(
    transaction: Transaction, held: dict[str, HeldSession], session_id: str, *, died: bool = True
) -> tuple[Event, ...]:
    """End all unfinished work of a session, and release the session.

    `died` is false if the process lives but could not write the end of its work.
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
