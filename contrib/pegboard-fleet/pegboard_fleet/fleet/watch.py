# ruff: noqa: S608 - conditions are our own words
"""The monitor of a pool's workers, which queues the jobs of dead workers again."""

import asyncio
import os
import socket

from pegboard_postgres.workers import ALIVE, LEASE_S, uptime
from psycopg import Error
from psycopg.conninfo import make_conninfo

from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.queue import Queue
from pegboard_fleet.fleet.storage import SharedStorage

_NAME_CHARACTERS = 63  # of an application of PostgreSQL
_SWEEP_S = 10.0
"""How often the queue is searched for jobs of dead workers although none has died since."""
_ALIVE = ("working", "draining")
_LIVING = "pool = %s AND state IN ('working', 'draining')"
_REGISTER = (
    "INSERT INTO fleet_worker(owner, pool, host, pid, concurrency) VALUES(%s, %s, %s, %s, %s) "
    "ON CONFLICT(owner) DO NOTHING"
)
_FORGET = (
    "DELETE FROM fleet_worker WHERE state IN ('lost', 'ended') "
    "AND started < now() - interval '1 day'"
)
# A process that was killed has closed its connections, and has missed a beat of its lease. After a
# restart of the server all connections are gone, and do not count until workers are back.
_IS_GONE = (
    "NOT EXISTS(SELECT 1 FROM pg_stat_activity WHERE application_name = right(owner, 63)) "
    "AND pg_postmaster_start_time() < clock_timestamp() - interval '10 s' "
    "AND EXISTS(SELECT 1 FROM worker WHERE id = owner AND "
    f"lease_until < clock_timestamp() + interval '{LEASE_S - 1.0} s')"
)
_LOSE = (
    f"WITH lost AS (UPDATE fleet_worker SET state = 'lost' WHERE {_LIVING} "
    f"AND (NOT EXISTS({ALIVE}) OR {_IS_GONE}) "
    "RETURNING owner) DELETE FROM worker USING lost WHERE worker.id = lost.owner"
)
_STATES = f"SELECT owner, state FROM fleet_worker WHERE {_LIVING} OR owner = %s"
_DRAIN = (
    "UPDATE fleet_worker SET state = 'draining' WHERE owner = %s "
    "AND state IN ('working', 'draining') RETURNING 1"
)
_LEAVE = "UPDATE fleet_worker SET state = 'ended' WHERE owner = %s AND state <> 'lost'"


class FleetWatch:
    """A worker's monitor of its pool, which finds dead workers and queues their jobs again.

    The worker's id is the name of its database connection. If the connection is gone, other workers
    know that the worker is dead.
    """

    def __init__(self, url: str, queue: Queue, storage: SharedStorage, pool: str) -> None:
        name = storage.own[-_NAME_CHARACTERS:]
        self._database = FleetDatabase(make_conninfo(url, application_name=name))
        self._queue = queue
        self._storage = storage
        self._own = storage.own
        self._pool = pool
        self._seen = frozenset[str]()
        self._swept_at = float("-inf")

    async def register(self, concurrency: int) -> None:
        """Store the worker in the database as working."""
        await self._database.run(_FORGET)
        facts = (self._own, self._pool, socket.gethostname(), os.getpid(), concurrency)
        await self._database.run(_REGISTER, *facts)

    async def look(self) -> str:
        """Queue the jobs of dead workers again, and return this worker's own state.

        A worker is dead if its process is gone, or if its lease has expired by the server's clock.
        """
        began_at = uptime()  # this process may be stopped before it reads the answer
        await self._database.run(_LOSE, self._pool)
        rows = await self._database.run(_STATES, self._pool, self._own)
        states = {str(own): str(state) for own, state in rows}
        living = frozenset(own for own, state in states.items() if state in _ALIVE)
        now = asyncio.get_running_loop().time()
        if self._own not in living:
            return states.get(self._own, "lost")
        self._storage.seen_at = began_at
        if self._seen - living or now > self._swept_at + _SWEEP_S:
            if not await self._sweep():
                return states[self._own]  # another worker sweeps: this one looks again
            self._swept_at = now
        self._seen = living
        return states[self._own]

    async def _sweep(self) -> bool:
        """Queue the jobs of dead workers again; return False if another worker does so.

        Only the worker with the sweep lock queues jobs. Otherwise two workers could queue a job
        twice, and the second copy would occupy a worker that another job needs.
        """
        try:
            async with self._database.alone(self._pool) as lock:
                if lock is None:
                    return False
                # Who has a job is read before who lives: a worker registers before it takes one.
                pending = await self._queue.pending(self._pool)
                rows = await self._database.run(_STATES, self._pool, self._own)
                living = {own for own, state in rows if state in _ALIVE}
                for key, executor in pending:
                    if executor not in living:
                        await lock.renew()
                        await self._queue.put_back(self._pool, key)
        except Error:
            return False  # the server is away, or this process was too slow
        return True

    async def leave(self) -> None:
        """Store that this worker has ended, and close the database connection.

        :raises StorageError: when the database is unreachable.
        """
        async with self._database:
            await self._database.run(_LEAVE, self._own)


async def drain_worker(database: FleetDatabase, worker: str) -> bool:
    """Let a worker take no more jobs; return False if no living worker has this id."""
    return bool(await database.run(_DRAIN, worker))
