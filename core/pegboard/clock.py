"""The time of a piece of work, which stands still while a person is asked about it.

Whoever sets a limit on work that may have to ask a person sets it on a `Clock`: that of a tool
call, a hook, a subagent, a budget. While somebody is asked, the clock of the work that asks
stands, and so do those of all who wait for that work. For one event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_CURRENT: ContextVar["Clock | None"] = ContextVar("pegboard_clock", default=None)


class Clock:
    """The time that some work takes, in seconds."""

    def __init__(self) -> None:
        self._waiting: list[Clock] = []
        self._stops = 0
        self._stopped_at = 0.0
        self._stood_s = 0.0
        self._limits: dict[asyncio.Timeout, float] = {}
        self._went_on: asyncio.Future[None] | None = None

    def now(self) -> float:
        """An instant by this clock, which only has a meaning beside another one."""
        at = self._stopped_at if self._stops else asyncio.get_running_loop().time()
        return at - self._stood_s

    @contextmanager
    def timing(self) -> Iterator[None]:
        """A block, and what it starts, whose work this clock times; what is around it waits."""
        around = _CURRENT.get()
        if around is not None and around.leads_to(self):
            yield
            return
        before = _CURRENT.set(self)
        try:
            with self.awaited_by(around):
                yield
        finally:
            _CURRENT.reset(before)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """A block in which the current work waits for this clock's."""
        with self.awaited_by(_CURRENT.get()):
            yield

    @contextmanager
    def awaited_by(self, waiting: "Clock | None") -> Iterator[None]:
        """A block in which another work waits for this clock's; none waits for itself."""
        if waiting is None or waiting.leads_to(self):
            yield
            return
        self._waiting.append(waiting)
        if self._stops:
            waiting.stop()
        try:
            yield
        finally:
            self._waiting.remove(waiting)
            if self._stops:
                waiting.go_on()

    @asynccontextmanager
    async def limit(self, limit_s: float) -> AsyncIterator[asyncio.Timeout]:
        """A block that ends with a TimeoutError after so much time by this clock."""
        async with asyncio.timeout(None) as limit:
            self._limits[limit] = self.now() + limit_s
            self._set(limit)
            try:
                yield limit
            finally:
                del self._limits[limit]

    @asynccontextmanager
    async def running(self, limit_s: float) -> AsyncIterator[asyncio.Timeout]:
        """A block that this clock times, and that ends after so much time by it."""
        with self.timing():
            async with self.limit(limit_s) as limit:
                yield limit

    async def wait(self, task: "asyncio.Task[Any]", *, limit_s: float) -> None:
        """Wait until the task has ended, or so much time has passed by this clock.

        Without the cost of a limit that can be moved: each hook is waited for so.
        """
        ends_at = self.now() + limit_s
        while not task.done() and (left_s := ends_at - self.now()) > 0:
            if self._stops:
                self._went_on = self._went_on or asyncio.get_running_loop().create_future()
                either: set[asyncio.Future[Any]] = {task, self._went_on}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.wait({task}, timeout=left_s)

    def leads_to(self, other: "Clock") -> bool:
        """Whether this is the other one, or the other one waits for it."""
        return self is other or any(each.leads_to(other) for each in self._waiting)

    def stop(self) -> None:
        """Stand still, with all that wait, until `go_on` was called as often."""
        self._stops += 1
        if self._stops == 1:
            self._stopped_at = asyncio.get_running_loop().time()
            for limit in self._limits:
                self._set(limit)
            for each in self._waiting:
                each.stop()

    def go_on(self) -> None:
        """Take one `stop` back."""
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


class Slots:
    """Room for so many at a time; the others wait in their order.

    There is no limit on the wait: that of the work which waits ends it, and its clock stands
    while somebody is asked about work that has a slot.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._work = Clock()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A block that has a slot."""
        with self._work.awaited():
            await self._free.acquire()
        try:
            current = _CURRENT.get()
            with current.awaited_by(self._work) if current else nullcontext():
                yield
        finally:
            self._free.release()


def current_clock() -> Clock:
    """The clock of the work that is done here; a new one if nobody times it."""
    return _CURRENT.get() or Clock()


@contextmanager
def asking() -> Iterator[None]:
    """A block in which a person is asked: the current work's clock stands."""
    current = _CURRENT.get()
    if current is None:
        yield
        return
    current.stop()
    try:
        yield
    finally:
        current.go_on()
