"""Worker threads for blocking foreign code, and work that cancellation does not interrupt.

A hung thread delays neither the event loop nor the exit.
"""

import asyncio
import concurrent.futures
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Literal, TypeVar

from pegboard.errors import AbortedError

_T = TypeVar("_T")
_Jobs = SimpleQueue[Callable[[], None] | None]


class _ThreadOutcome(AbstractContextManager["_ThreadOutcome"]):
    """The outcome of a function in a thread: its result, or the error for the caller.

    It replaces `Future.set_exception`, which rejects `StopIteration` and would let `SystemExit` end
    the event loop.
    """

    answer: Any = None
    error: BaseException | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[True]:
        self.error = error
        return True


class Threads:
    """A pool of daemon threads; a call that nobody waits for keeps its thread until it ends.

    When the interpreter exits, it joins the threads of `asyncio.to_thread`, so one hung plugin
    would block the exit for ever. It does not join daemon threads.
    """

    def __init__(self, name: str = "pegboard-plugin") -> None:
        self._name = name
        self._idle: deque[_Jobs] = deque()
        self._closed = False

    async def run(self, function: Callable[[], _T]) -> _T:
        """Run the function in a thread, in a copy of the caller's context variables.

        Foreign code may raise `SystemExit`, which the caller must catch too.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_ThreadOutcome] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: _ThreadOutcome) -> None:
            if not ended.done():
                ended.set_result(outcome)

        def job() -> None:
            with _ThreadOutcome() as outcome:
                outcome.answer = context.run(function)
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, outcome)

        self._worker().put(job)
        outcome = await ended
        if outcome.error is not None:
            raise outcome.error
        answer: _T = outcome.answer
        return answer

    def _worker(self) -> _Jobs:
        if self._idle:
            return self._idle.pop()
        jobs: _Jobs = SimpleQueue()
        threading.Thread(target=self._work, args=(jobs,), name=self._name, daemon=True).start()
        return jobs

    def _work(self, jobs: _Jobs) -> None:
        while (job := jobs.get()) is not None:
            job()
            del job  # an idle thread holds nothing of the last call
            if self._closed:
                return
            self._idle.append(jobs)

    def close(self) -> None:
        """End the idle threads now, and each busy thread after its current call."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)


async def run_in_thread(function: Callable[[], _T], *, name: str) -> _T:
    """Run the function in a new thread; return its result, or raise its error.

    `name` is the name of the thread, for debuggers. Neither a cancellation of the caller nor the
    exit of the process waits for the thread. Therefore the function must leave files and
    connections intact at any point. The thread sees the caller's context variables.
    """
    threads = Threads(name)
    try:
        return await threads.run(function)
    finally:
        threads.close()


class LoopCalls:
    """The calls from worker threads to the event loop in which this object was created."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits: set[concurrent.futures.Future[Any]] = set()
        self._cancelled = False

    def wait(self, work: Awaitable[_T]) -> _T:
        """Run an awaitable in the loop and return its result; the thread waits without a limit.

        :raises RuntimeError: in the loop's own thread.
        :raises AbortedError: when `cancel` was called.
        """
        if self.is_inside:
            if isinstance(work, Coroutine):
                work.close()
            raise RuntimeError("wait() is for plain functions in a thread; `await` it here instead")

        async def working() -> _T:
            return await work

        future = asyncio.run_coroutine_threadsafe(working(), self._loop)
        self._waits.add(future)
        try:
            if self._cancelled:
                future.cancel()
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise AbortedError("the call was stopped") from error
        finally:
            self._waits.discard(future)

    def soon(self, call: Callable[[], None]) -> None:
        """Run `call` in the loop's thread: at once if the caller is in this thread, else soon."""
        if self.is_inside:
            call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    @property
    def is_inside(self) -> bool:
        """Whether the caller is in the loop's own thread."""
        return asyncio._get_running_loop() is self._loop  # noqa: SLF001 - the public one raises

    def cancel(self) -> None:
        """Cancel all current and future calls of `wait`."""
        self._cancelled = True
        for each in tuple(self._waits):
            each.cancel()


async def shield(work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of `work`; a cancellation of the caller is raised after the work ends.

    The work needs its own time limit, because nothing else ends it. If the work also fails, its
    error is the cause of the cancellation.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


@asynccontextmanager
async def closing(source: AsyncIterator[object]) -> AsyncIterator[None]:
    """Close an iterator of other code at the end of the block, if the iterator has `aclose`."""
    try:
        yield
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def starved(thread_id: int) -> float:
    """Return the seconds that a thread has waited for a processor; 0 if unknown."""
    with suppress(OSError):
        return int(Path(f"/proc/self/task/{thread_id}/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0
