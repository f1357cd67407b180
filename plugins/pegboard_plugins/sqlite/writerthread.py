"""The thread that writes: jobs that wait at the same time share a transaction (group commit)."""

import asyncio
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw
import msgspec

from pegboard.errors import PegboardError, StorageError
from pegboard.schema.event import Event
from pegboard.storage import OnCommit
from pegboard_plugins.sqlite import opentexts, pieces
from pegboard_plugins.sqlite.databasefile import LockWait, note_damage, reason_of

_Value = TypeVar("_Value")
Work = Callable[[apsw.Connection], tuple[_Value, tuple[Event, ...]]]
"""What a job does inside the transaction: its answer, and the events that it stored."""

# Jobs of one transaction: enough to share the wait for the disk, few enough to answer soon.
_GROUP_LIMIT = 256
_MOST_EVENTS = 10_000
_PRUNE_EVERY = 256
_LOG_PAGES = 1000
_IDLE_S = 2.0
_RETRY_S = 0.05
_ALIVE_S = 1.0
_MOVED = (
    "its file was removed or replaced while it was open; move the file back, or restart Pegboard "
    "to use the file that has its path now"
)


class _Job(msgspec.Struct, eq=False):
    work: Work[Any]
    done: asyncio.Future[Any]


class _Outcome(msgspec.Struct):
    value: object = None
    events: tuple[Event, ...] = ()
    error: BaseException | None = None


class WriterThread:
    """The connection for writes and the thread that uses it, for one event loop."""

    def __init__(
        self,
        db: apsw.Connection,
        path: Path,
        wait: LockWait,
        *,
        loop: asyncio.AbstractEventLoop,
        on_commit: OnCommit | None = None,
    ) -> None:
        self._db = db
        self._path = path
        self._lock_wait = wait
        self._loop = loop
        self._on_commit = on_commit
        self._waiting: deque[_Job] = deque()
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unanswered: set[_Job] = set()
        self._look: asyncio.TimerHandle | None = None
        self._ended: asyncio.Future[None] = loop.create_future()
        self._failure = ""
        self.refused: StorageError | None = None
        self._closed = False
        self._log_pages = 0
        self._pruned_at = 0
        self._written_at = 0.0
        self._idle: asyncio.TimerHandle | None = None
        db.set_wal_hook(self._note_log)

    async def run(self, work: Work[_Value]) -> _Value:
        """Run `work` in the thread; return the result when the changes are durable.

        A job that raises an error is undone, and only that job fails. The wait ends, because the
        wait for another process's lock has a limit.

        :raises StorageError: when the database cannot be written, or is closed.
        """
        value: _Value = await self.post(work)
        return value

    def post(self, work: Work[_Value]) -> "asyncio.Future[_Value]":
        """Start `work` and return a future for its result; cancelling the future does not stop it.

        :raises StorageError: when the database is closed, or cannot be written at all.
        """
        if self.refused is not None:
            raise self.refused
        if self._closed:
            raise StorageError(f"the database {self._path} is closed")
        job = _Job(work, self._loop.create_future())
        self._order(self._write_waiting, job)
        self._unanswered.add(job)
        return job.done

    async def aclose(self) -> None:
        """Write the jobs that wait and close the connection; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._lock_wait.hurry()
        for timer in (self._idle, self._look):
            if timer is not None:
                timer.cancel()
        if self._thread is None or self._failure:
            self._close()
            return
        self._orders.put(self._close)
        self._orders.put(None)
        while not self._ended.done() and self._thread.is_alive():
            # The wait for another process's lock has a limit.
            await asyncio.wait({self._ended}, timeout=_ALIVE_S)

    def _close(self) -> None:
        self._db.set_wal_hook(None)
        self._db.close()

    def _order(self, order: Callable[[], None], *jobs: _Job) -> None:
        """Register jobs, and let the thread call `order`; the first call starts the thread.

        :raises StorageError: when there is no thread, or it has failed.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="pegboard-write", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise self._error_of(f"{error}: memory or processes are used up") from error
            self._thread = thread
        if self._failure:
            raise self._error_of(self._failure)
        self._waiting.extend(jobs)
        self._orders.put(order)
        if self._look is None:
            self._look = self._loop.call_later(_ALIVE_S, self._look_after)

    def _serve(self) -> None:
        """Call the functions that `_order` sends, in the thread, until the end or a failure.

        At the end every waiting job gets a result or an error.
        """
        try:
            while (order := self._orders.get()) is not None:
                order()
        except BaseException as error:  # noqa: BLE001 - the waiting jobs get the error
            self._failure = f"the thread that writes has ended: {error!r}"
        self._call_soon(self._on_end)

    def _call_soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Call a function on the event loop; retry while memory is short."""
        while True:
            try:
                with suppress(RuntimeError):  # the loop was closed: no task waits
                    self._loop.call_soon_threadsafe(call, *arguments)
            except MemoryError:
                time.sleep(_RETRY_S)
            else:
                return

    def _look_after(self) -> None:
        """Detect the thread's death, which the thread cannot report when memory is short."""
        self._look = None
        if not self._unanswered:
            return
        if self._thread is not None and self._thread.is_alive():
            self._look = self._loop.call_later(_ALIVE_S, self._look_after)
        else:
            self._on_end()

    def _on_end(self) -> None:
        self._failure = self._failure or "the thread that writes has ended"
        self._fail(tuple(self._unanswered), self._failure)
        if not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, jobs: Iterable[_Job], why: object) -> None:
        for job in jobs:
            self._answer(job, _Outcome(error=self._error_of(why)))

    def _error_of(self, why: object) -> StorageError:
        return StorageError(f"cannot write the database {self._path}: {why}")

    def _note_log(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _write_waiting(self) -> None:
        jobs: list[_Job] = []
        try:
            while self._waiting and len(jobs) < _GROUP_LIMIT:
                jobs.append(self._waiting.popleft())
            if not jobs:  # they were written together with others
                return
            outcomes = self._write(jobs)
        except BaseException as error:  # a job's own mistake, or no memory
            self._call_soon(self._fail, jobs, f"the writer failed: {error!r}")
            if not isinstance(error, Exception):
                raise
        else:
            self._call_soon(self._settle, jobs, outcomes)
        if self._log_pages >= _LOG_PAGES:
            self._checkpoint()

    def _write(self, jobs: Sequence[_Job]) -> list[_Outcome]:
        """Run the jobs in one transaction; if the commit fails, all jobs fail."""
        if self._has_moved():  # SQLite would write on into a file that no path leads to
            return [_Outcome(error=self._error_of(_MOVED)) for _ in jobs]
        try:
            with opentexts.transaction(self._db):
                outcomes = [self._attempt(job) for job in jobs]
                self._prune(outcomes)
        except (apsw.Error, OSError) as error:
            note_damage(self._path, error)
            failure = self._error_of(reason_of(error))
            failure.__cause__ = error
            return [_Outcome(error=failure) for _ in jobs]
        else:
            return outcomes

    def _has_moved(self) -> bool:
        """Return whether the database's path now leads to another file, or to no file."""
        moved = ctypes.c_int()
        self._db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        return bool(moved.value)

    def _attempt(self, job: _Job) -> _Outcome:
        """Run one job in a savepoint, so that the job can be undone without the others.

        :raises apsw.Error: when SQLite gave up the whole transaction, as for a full disk.
        """
        self._db.execute("SAVEPOINT job")
        try:
            value, events = job.work(self._db)
            outcome = _Outcome(value=value, events=events)
        except PegboardError as error:
            outcome = _Outcome(error=error)
            self._db.execute("ROLLBACK TO job")
        self._db.execute("RELEASE job")
        return outcome

    def _prune(self, outcomes: Sequence[_Outcome]) -> None:
        """Delete old events from time to time."""
        newest = max((event.seq for outcome in outcomes for event in outcome.events), default=0)
        if newest < self._pruned_at + _PRUNE_EVERY:
            return
        self._pruned_at = newest
        pieces.forget_events(self._db, _MOST_EVENTS)

    def _settle(self, jobs: Sequence[_Job], outcomes: Sequence[_Outcome]) -> None:
        """Publish the events in order, then set the results of the jobs; on the event loop."""
        try:
            if self._on_commit is not None:
                for outcome in outcomes:
                    if outcome.events:
                        self._on_commit(outcome.events)
        finally:
            for job, outcome in zip(jobs, outcomes, strict=True):
                self._answer(job, outcome)
        self._written_at = self._loop.time()
        self._watch_idle(_IDLE_S)

    def _watch_idle(self, delay_s: float) -> None:
        if self._idle is None and not self._closed:
            self._idle = self._loop.call_later(delay_s, self._on_idle)

    def _on_idle(self) -> None:
        """Move the log into the database if there were no writes for a while."""
        self._idle = None
        quiet_s = self._loop.time() - self._written_at
        if quiet_s < _IDLE_S:
            self._watch_idle(_IDLE_S - quiet_s)
        elif not self._closed and not self._failure:
            self._orders.put(self._checkpoint)

    def _checkpoint(self) -> None:
        """Checkpoint the write-ahead log; ignore a failure, since the next commit reports it."""
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            note_damage(self._path, error)

    def _answer(self, job: _Job, outcome: _Outcome) -> None:
        self._unanswered.discard(job)
        if job.done.done():  # its task was cancelled
            return
        if outcome.error is None:
            job.done.set_result(outcome.value)
        else:
            job.done.set_exception(outcome.error)
