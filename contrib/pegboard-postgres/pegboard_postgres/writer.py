"""The connection for writes, on which commits that wait at the same time share a transaction."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, TypeVar

import msgspec
from psycopg import Error

from pegboard.errors import InvalidInputError, PegboardError, StorageError
from pegboard.schema.event import Event
from pegboard.storage import Change, DropSession, Fence, OnCommit
from pegboard_postgres.connections import (
    AGAIN,
    Address,
    Connection,
    refusal_of,
    until_reached,
)
from pegboard_postgres.drafts import MOST_CHANGES, HeldSession, sessions_of
from pegboard_postgres.transactions import Transaction

# Commits of one transaction: enough to share the wait for the disk, few enough to answer soon.
_GROUP_LIMIT = 256
_REACHED_WITHIN_S = 30.0
_RECEIPT = "SELECT number FROM receipt WHERE worker = %s"
_TRIES = 5

_Value = TypeVar("_Value")
Work = Callable[[Transaction, dict[str, HeldSession]], Awaitable[tuple[_Value, tuple[Event, ...]]]]
"""The work of a job in its own transaction, with sessions locked: its answer, its events."""


class _Commit(msgspec.Struct, eq=False):
    """Queued changes that may share a transaction with other commits."""

    changes: Sequence[Change]
    fence: Fence | None
    done: asyncio.Future[tuple[Event, ...]]

    def ids(self) -> Sequence[str]:
        """Return the ids of the sessions that the changes must lock."""
        fenced = [] if self.fence is None else [self.fence.session_id]
        return [*fenced, *sessions_of(self.changes)]


class _QueuedWrite(msgspec.Struct, eq=False):
    """A queued function that reads and then writes, in a transaction of its own."""

    work: Work[Any]
    session_ids: Sequence[str]
    done: asyncio.Future[Any]

    def ids(self) -> Sequence[str]:
        """Return the ids of the sessions that the queued function must lock."""
        return self.session_ids


class _WriteOutcome(msgspec.Struct):
    value: Any = None
    events: tuple[Event, ...] = ()
    error: BaseException | None = None


class PostgresWriter:
    """The connection for writes and the task that uses it; `aclose` ends the task."""

    def __init__(
        self, db: Connection, address: Address, worker: str, base: int, on_commit: OnCommit | None
    ) -> None:
        self._db = db
        self._worker = worker
        self._number = 0
        self._address = address
        self._base = base
        self._on_commit = on_commit
        self._waiting: deque[_Commit | _QueuedWrite] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._task = asyncio.create_task(self._serve(), name="pegboard-postgres-write")

    def commit(
        self, changes: Sequence[Change], fence: Fence | None
    ) -> "asyncio.Future[tuple[Event, ...]]":
        """Queue changes, and return a future of the events of the changes.

        The changes are written even if no task awaits the future.

        :raises StorageError: when the database is closed.
        :raises InvalidInputError: when there are too many changes for one transaction.
        """
        if len(changes) > MOST_CHANGES:
            raise InvalidInputError(
                f"{len(changes)} changes are too many for one commit; write at most {MOST_CHANGES}"
            )
        done: asyncio.Future[tuple[Event, ...]] = asyncio.get_running_loop().create_future()
        self._post(_Commit(changes, fence, done))
        return done

    def run(self, work: Work[_Value], *session_ids: str) -> "asyncio.Future[_Value]":
        """Queue the function `work`, and return a future of the function's result.

        The writer repeats the work if the connection is lost.

        :raises StorageError: when the database is closed.
        """
        done: asyncio.Future[_Value] = asyncio.get_running_loop().create_future()
        self._post(_QueuedWrite(work, session_ids, done))
        return done

    async def aclose(self) -> None:
        """Write all queued jobs, and close the connection."""
        self._closed = True
        self._wake.set()
        await asyncio.wait({self._task})  # each write has a time limit
        await self._db.close()

    def _post(self, job: _Commit | _QueuedWrite) -> None:
        if self._closed:
            raise StorageError(f"the database {self._address.place} is closed")
        self._waiting.append(job)
        self._wake.set()

    async def _serve(self) -> None:
        while self._waiting or not self._closed:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                jobs = self._group()
                try:
                    outcomes = await self._write(jobs)
                except Exception as error:  # noqa: BLE001 - a mistake here must not leave jobs waiting
                    outcomes = [_WriteOutcome(error=error) for _ in jobs]
                self._settle(jobs, outcomes)

    def _group(self) -> list[_Commit | _QueuedWrite]:
        """Remove the jobs for the next transaction from the queue, and return these jobs."""
        jobs = [self._waiting.popleft()]
        size = _size(jobs[0])
        while self._waiting and len(jobs) < _GROUP_LIMIT:
            size += _size(self._waiting[0])
            if size > MOST_CHANGES:
                break
            jobs.append(self._waiting.popleft())
        return jobs

    async def _write(self, jobs: Sequence[_Commit | _QueuedWrite]) -> list[_WriteOutcome]:
        """Write jobs in one transaction, or each alone if that fails; return the jobs' outcomes."""
        try:
            return await self._attempt(jobs)
        except Error as error:
            if len(jobs) > 1:  # one of them is refused, and the others are not
                return [each for job in jobs for each in await self._write([job])]
            failure = refusal_of(error) or self._address.failure(error, "write")
            failure.__cause__ = error
            return [_WriteOutcome(error=failure)]

    async def _attempt(self, jobs: Sequence[_Commit | _QueuedWrite]) -> list[_WriteOutcome]:
        """Write jobs in a single transaction; retry after a lost connection or a conflict.

        :raises psycopg.Error: when the transaction cannot be committed.
        """
        for tries in count(1):
            self._number += 1
            transaction = Transaction(self._db, self._base)
            outcomes: list[_WriteOutcome] = []
            try:
                outcomes = await _outcomes(transaction, jobs)
                await transaction.commit((self._worker, self._number))
            except Error as error:
                again = isinstance(error, AGAIN) or self._db.closed
                if self._db.closed:
                    self._db = await until_reached(
                        self._address.connect, within_s=_REACHED_WITHIN_S
                    )
                    if await self._was_committed():
                        return outcomes
                else:
                    await self._db.execute("ROLLBACK")
                if tries == _TRIES or not again:
                    raise
            except BaseException:
                await self._db.execute("ROLLBACK")
                raise
            else:
                return outcomes
        raise AssertionError("the last try returns or raises")

    async def _was_committed(self) -> bool:
        """Return whether the last transaction was committed before the connection was lost."""
        cursor = await self._db.execute(_RECEIPT, (self._worker,))
        return await cursor.fetchone() == (self._number,)

    def _settle(
        self, jobs: Sequence[_Commit | _QueuedWrite], outcomes: Sequence[_WriteOutcome]
    ) -> None:
        """Publish the events of jobs, then resolve the futures, so that listeners learn first."""
        try:
            if self._on_commit is not None:
                for outcome in outcomes:
                    if outcome.events:
                        self._on_commit(outcome.events)
        finally:
            for job, outcome in zip(jobs, outcomes, strict=True):
                if job.done.done():  # its task was cancelled
                    continue
                if outcome.error is None:
                    job.done.set_result(outcome.value)
                else:
                    job.done.set_exception(outcome.error)


async def _outcomes(
    transaction: Transaction, jobs: Sequence[_Commit | _QueuedWrite]
) -> list[_WriteOutcome]:
    """Begin a transaction and write the jobs; a refused commit does not affect other commits."""
    held = await transaction.begin(id_ for job in jobs for id_ in job.ids())
    if isinstance(jobs[0], _QueuedWrite):
        try:
            value, events = await jobs[0].work(transaction, held)
        except PegboardError as error:
            return [_WriteOutcome(error=error)]
        return [_WriteOutcome(value=value, events=events)]
    commits = [job for job in jobs if isinstance(job, _Commit)]
    draft = await transaction.draft(commits[0].changes, held)
    outcomes, ends = [], []
    for job in commits:
        outcomes.append(_WriteOutcome())
        try:
            draft.add(job.changes, job.fence)
        except PegboardError as error:
            outcomes[-1].error = error
        ends.append(len(draft.written))
    published = await transaction.write(draft.written)
    for outcome, start, end in zip(outcomes, [0, *ends], ends, strict=False):
        outcome.value = outcome.events = tuple(filter(None, published[start:end]))
    return outcomes


def _size(job: _Commit | _QueuedWrite) -> int:
    """Return a job's number of changes; `MOST_CHANGES` if the job needs its own transaction."""
    if isinstance(job, _QueuedWrite) or any(isinstance(each, DropSession) for each in job.changes):
        return MOST_CHANGES
    return len(job.changes)
