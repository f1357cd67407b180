"""Clocks for time limits that stop while a user is asked.

Work that may ask a user is timed by a `Clock`: a tool call, a hook, a subagent or a budget. While a
user is asked, the clock of this work stops, and so do the clocks of all work that waits for it. All
clocks belong to one event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from typing import Any

_CURRENT: ContextVar["Clock | None"] = ContextVar("pegboard_clock", default=None)


class Clock:
    """The time that a piece of work takes, in seconds, without the waits for a user."""

    def __init__(self) -> None:
        self._waiting: list[Clock] = []
        self._stops = 0
        self._stopped_at = self._stood_s = 0.0
        self._limits: dict[asyncio.Timeout, float] = {}
        self._went_on: asyncio.Future[None] | None = None

    @classmethod
    def current(cls) -> "Clock":
        """Return the clock of the current tool call, hook or subagent, or else a new clock.

        The clock stops while the user is asked. Thus `async with Clock.current().limit(30)` limits
        the work and not the user.
        """
        return _CURRENT.get() or cls()

    def now(self) -> float:
        """Return the reading of this clock in seconds; only differences are meaningful."""
        at = self._stopped_at if self._stops else asyncio.get_running_loop().time()
        return at - self._stood_s

    def timing(self) -> AbstractContextManager[None]:
        """Time a block and the block's child tasks by this clock; the surrounding work waits."""
        return _Timing(self)

    def awaited(self) -> AbstractContextManager[None]:
        """Mark the current work as waiting for this clock's work during a block."""
        return self.awaited_by(_CURRENT.get())

    @contextmanager
    def awaited_by(self, waiting: "Clock | None") -> Iterator[None]:
        """Mark another clock's work as waiting for this clock's work during a block."""
        if waiting is None or waiting.leads_to(self):
            yield
            return
        self.add_waiting(waiting)
        try:
            yield
        finally:
            self.remove_waiting(waiting)

    @asynccontextmanager
    async def limit(self, limit_s: float) -> AsyncIterator[asyncio.Timeout]:
        """Raise TimeoutError in the block when this clock has advanced by `limit_s`."""
        async with asyncio.timeout(None) as limit:
            self._limits[limit] = self.now() + limit_s
            self._set(limit)
            try:
                yield limit
            finally:
                del self._limits[limit]

    @asynccontextmanager
    async def running(self, limit_s: float) -> AsyncIterator[asyncio.Timeout]:
        """Time a block by this clock, and raise TimeoutError in the block after `limit_s`.

        This combines `timing` and `limit`.
        """
        with self.timing():
            async with self.limit(limit_s) as limit:
                yield limit

    async def wait(self, task: "asyncio.Task[Any]", *, limit_s: float) -> None:
        """Wait until the task ends or this clock has advanced by `limit_s`.

        This is cheaper than `limit`, because it runs for each hook. A task that ends within one
        iteration of the loop needs no timer.
        """
        ends_at = self.now() + limit_s
        await asyncio.sleep(0)
        while not task.done() and (left_s := ends_at - self.now()) > 0:
            if (goes_on := self.resumption()) is not None:
                await asyncio.wait({task, goes_on}, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.wait({task}, timeout=left_s)

    def resumption(self) -> "asyncio.Future[Any] | None":
        """Return a future that is done when this clock resumes, or None while the clock runs."""
        if self._stops and self._went_on is None:
            self._went_on = asyncio.get_running_loop().create_future()
        return self._went_on

    def leads_to(self, other: "Clock") -> bool:
        """Return whether `other` is this clock, or waits (directly or not) for this clock."""
        if self is other:
            return True
        for each in self._waiting:  # noqa: SIM110 - asked for each hook, and a generator costs more
            if each.leads_to(other):
                return True
        return False

    def add_waiting(self, waiting: "Clock") -> None:
        """Make another clock wait for this clock until `remove_waiting`."""
        self._waiting.append(waiting)
        if self._stops:
            waiting.stop()

    def remove_waiting(self, waiting: "Clock") -> None:
        """Undo one call of `add_waiting` with the clock `waiting`."""
        self._waiting.remove(waiting)
        if self._stops:
            waiting.go_on()

    def stop(self) -> None:
        """Stop this clock and all clocks that wait for it; each call needs one call of `go_on`."""
        self._stops += 1
        if self._stops == 1:
            self._stopped_at = asyncio.get_running_loop().time()
            for limit in self._limits:
                self._set(limit)
            for each in self._waiting:
                each.stop()

    def go_on(self) -> None:
        """Undo one call of `stop`; the clock runs again when all calls are undone."""
        self._stops -= 1
        if not self._stops:
            self._stood_s += asyncio.get_running_loop().time() - self._stopped_at
            if self._went_on is not None:
                self._went_on.set_result(None)
                self._went_on = None
            for limit in self._limits:
                self._set(limit)
            for each in self._waiting:
                each.go_on()

    def _set(self, limit: asyncio.Timeout) -> None:
        if not limit.expired():
            limit.reschedule(None if self._stops else self._limits[limit] + self._stood_s)


class _Timing:
    """The context manager that `Clock.timing` returns."""

    __slots__ = ("_around", "_before", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._around: Clock | None = None
        self._before: Token[Clock | None] | None = None

    def __enter__(self) -> None:
        around = _CURRENT.get()
        if around is not None:
            if around.leads_to(self._clock):
                return
            self._around = around
            self._clock.add_waiting(around)
        self._before = _CURRENT.set(self._clock)

    def __exit__(self, *_: object) -> None:
        if self._around is not None:
            self._clock.remove_waiting(self._around)
        if self._before is not None:
            _CURRENT.reset(self._before)


class Slots:
    """A semaphore that serves waiting tasks in the order of their arrival.

    The wait has no time limit of its own. A waiter's clock stops while a user is asked about work
    that holds a slot.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._work = Clock()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold a slot during the block."""
        with self._work.awaited():
            await self._free.acquire()
        try:
            with Clock.current().awaited_by(self._work):
                yield
        finally:
            self._free.release()


@contextmanager
def asking() -> Iterator[None]:
    """Stop the clock of the current work during the block, in which a user is asked."""
    current = Clock.current()
    current.stop()
    try:
        yield
    finally:
        current.go_on()
