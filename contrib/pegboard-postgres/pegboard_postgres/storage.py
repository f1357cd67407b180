"""The PostgreSQL storage: connections for writes and for the process's lease, a pool for reads."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack
from weakref import WeakSet

from psycopg import Error

from pegboard import Host
from pegboard.app import IdSource
from pegboard.errors import StorageError
from pegboard.processes import add_start_condition
from pegboard.schema.event import Event
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, Session, Todo
from pegboard.storage import (
    Change,
    Fence,
    LastIds,
    OnCommit,
    SearchHit,
    SessionFilters,
    SessionSize,
)
from pegboard_postgres import reads, workers
from pegboard_postgres.connections import Address, Connection, Readers, until_reached
from pegboard_postgres.drafts import HeldSession, SessionTakenError
from pegboard_postgres.migrations import migrate
from pegboard_postgres.transactions import Transaction
from pegboard_postgres.workers import Lease
from pegboard_postgres.writer import PostgresWriter

ABORT_LIMIT_S = 1.0
"""How long the end of runs whose sessions are lost may keep the others waiting."""
RELEASE_AGAIN_S = 1.0
"""How long a release that could not be written waits for its next try."""
_REACHED_WITHIN_S = 30.0
_PRUNE_S = 600.0

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


class PostgresStorage:
    """A `Storage` in a PostgreSQL database that many processes may share; bound to one event loop.

    `own` is the id of this process in the database. `hosts` are the open Apps: if another process
    takes over a session, the App that runs it stops the run.
    """

    warnings: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def __init__(
        self, address: Address, *, ids: IdSource, lease: Lease, writer: PostgresWriter, base: int
    ) -> None:
        self.ids = ids
        self.own = lease.own
        self._address = address
        self._lease = lease
        self._writer = writer
        self._base = base
        self._readers = Readers(address)
        self._unreleased: dict[str, Fence] = {}
        self._claimed: dict[str, Fence] = {}
        self.hosts = WeakSet[Host]()
        self._tasks: set[asyncio.Task[Any]] = {
            asyncio.create_task(self._prune(), name="pegboard-postgres-prune"),
            asyncio.create_task(self._watch(), name="pegboard-postgres-watch"),
        }
        self._closed = False
        self._remove_condition = add_start_condition(self.lasts)

    @classmethod
    async def open(cls, url: str, *, ids: IdSource, on_commit: OnCommit | None = None) -> Self:
        """Open the database at a URI; see `OpenStorage`.

        :raises ConfigError: when the URI is not valid, or contains a password.
        :raises StorageError: when the database cannot be opened.
        """
        address = Address(url)
        lease, db = Lease(address), None
        try:
            db = await address.connect()
            base = await migrate(db)
            await lease.begin()
        except BaseException as error:
            if db is not None:
                await db.close()
            if isinstance(error, Error):
                raise address.failure(error, "open") from error
            raise
        writer = PostgresWriter(db, address, lease.own, base, on_commit)
        storage = cls(address, ids=ids, lease=lease, writer=writer, base=base)
        try:
            for session_id in await storage._read(reads.abandoned_sessions):
                await storage._bury(session_id)
        except BaseException:
            await storage.aclose()
            raise
        return storage

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """See `Storage.commit`.

        A commit with a fence returns only when the lease of this process is confirmed. If the
        process was suspended, another process may have taken over the session. The caller must not
        start a tool that the other process has already reported as interrupted.
        """
        events = await self._writer.commit(changes, fence)
        if fence is not None:
            await self.lasting()
            if self._claimed.get(fence.session_id) != fence:
                raise SessionTakenError(fence.session_id)
        return events

    async def claim(self, session_id: str) -> Fence:
        """See `Storage.claim`; a cancelled claim is released again."""
        if (unreleased := self._unreleased.get(session_id)) is not None:
            await self._release(unreleased)

        async def work(
            transaction: Transaction, held: dict[str, HeldSession]
        ) -> tuple[Fence, tuple[Event, ...]]:
            found = await workers.claim(transaction, held, session_id, self._lease.own)
            self._claimed[session_id] = found[0]
            return found

        claiming = asyncio.ensure_future(self._writer.run(work, session_id))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            claiming.add_done_callback(self._give_back)
            raise

    def _give_back(self, claiming: "asyncio.Future[Fence]") -> None:
        if not claiming.cancelled() and claiming.exception() is None:
            self._later(self.release(claiming.result()))

    async def is_claimed_elsewhere(self, session_id: str) -> bool:
        """See `Storage.is_claimed_elsewhere`."""
        owner, alive = await self._read(reads.owner, session_id)
        return alive and owner != self._lease.own

    async def release(self, fence: Fence) -> None:
        """See `Storage.release`."""
        try:
            await self._release(fence)
        except StorageError:
            if self._closed:
                raise  # the closing gives all rights back
            if not self._unreleased:
                self._later(self._release_later())
            self._unreleased[fence.session_id] = fence

    async def _release(self, fence: Fence) -> None:
        await self._writer.run(partial(workers.release, fence=fence), fence.session_id)
        self._unreleased.pop(fence.session_id, None)
        self._drop(fence)

    def _drop(self, fence: Fence) -> None:
        if self._claimed.get(fence.session_id) == fence:
            del self._claimed[fence.session_id]

    async def _release_later(self) -> None:
        while True:  # until the database can be written, or is closed
            await asyncio.sleep(RELEASE_AGAIN_S)
            for fence in tuple(self._unreleased.values()):
                with suppress(StorageError):
                    await self._release(fence)
            if not self._unreleased:
                return

    async def _prune(self) -> None:
        """Delete old events at regular intervals."""
        while True:  # until it is cancelled
            await asyncio.sleep(_PRUNE_S)
            with suppress(StorageError):
                await self._read(reads.forget_events)

    def lasts(self) -> bool:
        """Return whether the process's lease is confirmed, so that tools may start processes."""
        return self._lease.is_sure

    async def lasting(self) -> None:
        """Wait until the lease is confirmed and sessions that were taken over are known."""
        while not self._lease.is_sure:  # noqa: ASYNC110 - a thread confirms it
            await asyncio.sleep(workers.LOOK_S)

    async def _watch(self) -> None:
        """Stop the runs of sessions that other processes took over while the lease was expired."""
        while True:  # until it is cancelled
            await asyncio.sleep(workers.LOOK_S)
            if (lapses := self._lease.lapses) == self._lease.looked:
                continue
            look = partial(workers.lost, fences=tuple(self._claimed.values()))
            try:
                lost = await self._writer.run(look, *self._claimed)
            except StorageError:
                continue  # until the database can be written, no commit returns
            for fence in lost:
                self._drop(fence)
            aborts = [
                self._later(host.abort(fence.session_id)) for fence in lost for host in self.hosts
            ]
            if aborts:  # before their tools may start processes again
                await asyncio.wait(aborts, timeout=ABORT_LIMIT_S)
            self._lease.looked = lapses

    def _later(self, work: Coroutine[Any, Any, object]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def session(self, session_id: str) -> Session:
        """See `Storage.session`."""
        return await self._read(reads.session, session_id)

    async def sessions(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> tuple[Session, ...]:
        """See `Storage.sessions`."""
        return await self._read(reads.sessions, project_id, filters)

    async def sessions_json(
        self, project_id: str | None = None, **filters: Unpack[SessionFilters]
    ) -> bytes:
        """See `Storage.sessions_json`."""
        return await self._read(reads.sessions_json, project_id, filters)

    async def search(self, project_id: str, text: str, *, limit: int = 50) -> tuple[SearchHit, ...]:
        """See `Storage.search`."""
        return await self._read(reads.search, project_id, text, limit)

    async def children(self, session_id: str) -> tuple[Session, ...]:
        """See `Storage.children`."""
        return await self._read(reads.children, session_id)

    async def projects(self) -> tuple[Project, ...]:
        """See `Storage.projects`."""
        return await self._read(reads.projects)

    async def turns(self, session_id: str, *, limit: int | None = None) -> tuple[Turn, ...]:
        """See `Storage.turns`."""
        await self._bury_dead(session_id)
        return (await self._read(reads.turns, session_id, limit=limit)).values()

    async def turns_json(
        self, session_id: str, *, limit: int | None = None, before: str | None = None
    ) -> bytes:
        """See `Storage.turns_json`."""
        await self._bury_dead(session_id)
        return (await self._read(reads.turns, session_id, limit=limit, before=before)).json()

    async def turn(self, session_id: str, message_id: str) -> Turn:
        """See `Storage.turn`."""
        return await self._read(reads.turn, session_id, message_id)

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """See `Storage.todos`."""
        return await self._read(reads.todos, session_id)

    async def state(self, session_id: str, key: str) -> object:
        """See `Storage.state`."""
        return await self._read(reads.state, session_id, key)

    async def approvals(self, *keys: str) -> tuple[Approval, ...]:
        """See `Storage.approvals`."""
        return await self._read(reads.approvals, keys)

    async def session_approvals(self, project_id: str) -> tuple[Approval, ...]:
        """See `Storage.session_approvals`."""
        return await self._read(reads.session_approvals, project_id)

    async def events(self, after: int, *, limit: int = 1000) -> tuple[Event, ...]:
        """See `Storage.events`; an event becomes visible when no older transaction is open."""
        return await self._read(reads.events, after, limit, self._base)

    async def last_ids(self, session_id: str) -> LastIds:
        """See `Storage.last_ids`."""
        return await self._read(reads.last_ids, session_id)

    async def sizes(self) -> tuple[SessionSize, ...]:
        """See `Storage.sizes`."""
        return await self._read(reads.sizes)

    async def problems(self) -> tuple[str, ...]:
        """See `Storage.problems`."""
        return await self._read(reads.problems)

    async def vacuum(self) -> int:
        """Do nothing and return 0, since the server reclaims space by itself."""
        return 0

    async def aclose(self) -> None:
        """See `Storage.aclose`; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._remove_condition()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        try:
            await self._writer.run(partial(workers.release_all, owner=self._lease.own))
        finally:
            await self._writer.aclose()
            await self._readers.aclose()
            await self._lease.aclose()

    async def _bury_dead(self, session_id: str) -> None:
        """Mark the session's work as interrupted if the process that ran the session has died."""
        owner, alive = await self._read(reads.owner, session_id)
        if owner is not None and not alive:
            await self._bury(session_id)

    async def _bury(self, session_id: str) -> None:
        await self._writer.run(partial(workers.bury, session_id=session_id), session_id)

    async def _read(
        self,
        function: Callable[Concatenate[Connection, _Arguments], Awaitable[_Value]],
        *arguments: _Arguments.args,
        **names: _Arguments.kwargs,
    ) -> _Value:
        """Run a query, and return the result; repeat the query while the server restarts."""
        if self._closed:
            raise StorageError(f"the database {self._address.place} is closed")

        async def read() -> _Value:
            async with self._readers.one() as db:
                return await function(db, *arguments, **names)

        try:
            return await until_reached(read, within_s=_REACHED_WITHIN_S)
        except Error as error:
            raise self._address.failure(error, "read") from error
