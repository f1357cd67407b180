"""A database that answers late, as one behind a network does: everything arrives, in order.

With PEGBOARD_SLOW_STORE=1 in the environment (any number: the delays' seed) every App that
`played.opened` opens has it, and so have the processes that tests start. The suite of the engine
then runs over it: `PEGBOARD_SLOW_STORE=1 pytest tests/core/engine tests/faults`.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pegboard import hookimpl
from pegboard.errors import PegboardError
from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.storage import Fence, OnCommit, Storage
from pegboard.storage.changes import Change
from pegboard_plugins.sqlite import open_sqlite

VARIABLE = "PEGBOARD_SLOW_STORE"
SCHEME = "slow"
WAY_S = 0.01
"""The longest that a question is on its way, and the longest that its answer is."""
_TICK_S = 1e-6
_AT_ONCE = {"files", "ids", "warnings", "path", "aclose"}


class Line:
    """A way on which everything takes a moment and nothing overtakes what went before."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._last = 0.0

    def due(self) -> float:
        """When what sets out now has arrived, by the loop's clock."""
        takes_s = self._chance.uniform(0, WAY_S)
        now = asyncio.get_running_loop().time()
        self._last = max(now + takes_s, self._last + _TICK_S)
        return self._last

    async def passed(self) -> None:
        """Return when it has arrived."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(self.due(), arrived.set_result, None)
        try:
            await arrived
        finally:
            timer.cancel()


class SlowStorage:
    """`Storage` over another one. Each question and each answer takes up to `WAY_S`.

    What is written goes to the other storage in the order in which it was handed over, also when
    nobody waits for it any more, and the answers come in that order with their events before
    them. Reads overtake each other, and a write that is still on its way.
    """

    def __init__(self, chance: random.Random, on_commit: OnCommit | None) -> None:
        self._chance = chance
        self._on_commit = on_commit
        self._there, self._back = Line(chance), Line(chance)
        self._writing: set[asyncio.Task[Any]] = set()
        self._untold = 0
        self._told = asyncio.Event()
        self.storage: Storage

    def hear(self, events: tuple[Event, ...]) -> None:
        """Pass the events of a commit on, when they have come back."""
        asyncio.get_running_loop().call_at(self._back.due(), self._tell, events)
        self._untold += 1

    def _tell(self, events: tuple[Event, ...]) -> None:
        self._untold -= 1
        self._told.set()
        if self._on_commit is not None:
            self._on_commit(events)

    async def commit(self, *changes: Change, fence: Fence | None = None) -> tuple[Event, ...]:
        """See `Storage.commit`."""
        return await asyncio.shield(
            self._sent(lambda: self.storage.commit(*changes, fence=fence), "commit")
        )

    async def claim(self, session_id: str) -> Fence:
        """See `Storage.claim`; when the wait is cancelled, the right is given back."""
        claiming = self._sent(lambda: self.storage.claim(session_id), "claim")
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(PegboardError):
                await self.release(await claiming)
            raise

    async def release(self, fence: Fence) -> None:
        """See `Storage.release`."""
        await asyncio.shield(self._sent(lambda: self.storage.release(fence), "release"))

    async def aclose(self) -> None:
        """See `Storage.aclose`; what was handed over is written and told before."""
        while self._writing or self._untold:
            await asyncio.gather(*self._writing, return_exceptions=True)
            if self._untold:
                self._told.clear()
                await self._told.wait()  # each has its timer
        await self.storage.aclose()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.storage, name)
        if name in _AT_ONCE or name.startswith("_"):
            return found
        return self._late_read(found)

    def _sent(self, write: Callable[[], Awaitable[Any]], name: str) -> "asyncio.Task[Any]":
        task = asyncio.create_task(self._written(write), name=f"slow {name}")
        self._writing.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # who has stopped waiting does not want to know

    async def _written(self, write: Callable[[], Awaitable[Any]]) -> Any:
        await self._there.passed()
        try:
            return await write()
        finally:
            await self._back.passed()

    def _late_read(self, read: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def late(*arguments: Any, **names: Any) -> Any:
            await asyncio.sleep(self._chance.uniform(0, WAY_S))
            try:
                return await read(*arguments, **names)
            finally:
                await asyncio.sleep(self._chance.uniform(0, WAY_S))

        return late


class SlowStoragePlugin:
    """Opens `slow:///path` databases; the delays are those of the seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @hookimpl
    async def register_storage(self) -> Mapping[str, Any]:
        return {SCHEME: self._open}

    async def _open(
        self, url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
    ) -> SlowStorage:
        slow = SlowStorage(random.Random(self._seed), on_commit)
        path = Path(str(url).removeprefix(f"{SCHEME}://"))
        slow.storage = await open_sqlite(path, ids=ids, on_commit=slow.hear)
        return slow


def slow_seed() -> int | None:
    """The seed of the delays that this process was asked for, None where there are none."""
    asked = os.environ.get(VARIABLE)
    return int(asked) if asked else None


def slow_url(path: Path) -> str:
    """The database at this path as one that answers late."""
    return f"{SCHEME}://{path}"
