"""Worker threads for blocking code of others, work that ends whole, and the loop of a program.

A hung thread delays neither the loop nor the exit.
"""

import asyncio
import contextvars
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")
_Jobs = SimpleQueue[Callable[[], None] | None]


class Threads:
    """Daemon threads that are used again; a call that is given up keeps its thread until it ends.

    The interpreter joins the threads of `asyncio.to_thread` when it exits, so one hung plugin
    would hold the process for ever; daemon threads are left behind.
    """

    def __init__(self, name: str = "pegboard-plugin") -> None:
        self._name = name
        self._idle: deque[_Jobs] = deque()
        self._closed = False

    async def run(self, function: Callable[[], _T]) -> _T:
        """What the function returns, in a copy of the caller's context variables.

        The function must not raise: who calls it here gives its failure as a value.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: _T) -> None:
            if not answer.done():
                answer.set_result(result)

        def job() -> None:
            result = context.run(function)
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result)

        self._worker().put(job)
        return await answer

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
        """End the idle threads; one that works ends when its call does."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)


_Value = TypeVar("_Value")


async def shielded(work: Coroutine[Any, Any, _Value]) -> _Value:
    """What `work` returns; a cancellation of the caller is raised once the work has ended.

    The work needs a time limit of its own: nothing else ends it. Where both happen, the failure
    of the work is the cause of the cancellation.
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
    """A block at whose end an iterator of others is closed, if it can be closed."""
    try:
        yield
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def run_async(main: Coroutine[Any, Any, _T]) -> _T:
    """What `asyncio.run` gives, on a loop that starts no thread for each process.

    Python 3.12 watches processes by file descriptors by itself; 3.11 starts a thread for each,
    which costs 0.7 ms a tool call.
    """
    if sys.version_info < (3, 12) and sys.platform == "linux":
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    return asyncio.run(main)
