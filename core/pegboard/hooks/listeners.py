"""One plugin's queue of things to hear, so that a slow plugin delays nobody else."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

LIMIT = 1000
"""Things that may wait for one plugin; the oldest are lost beyond it."""

MARGIN_S = 0.25
"""So much later than a call's own limit the end gives up: the call is told of first."""

Deliver = Callable[[str, Mapping[str, object]], Awaitable[None]]


class Listener:
    """The bounded queue of one plugin, and the task that empties it while there is something.

    `limit_s` is how long the end waits for what is still queued. What is lost is told to `on_loss`,
    which may be heard as an event, and so come back here.
    """

    def __init__(self, deliver: Deliver, on_loss: Callable[[str], None], *, limit_s: float) -> None:
        self._limit_s = limit_s
        self._deliver = deliver
        self._on_loss = on_loss
        self._waiting: deque[tuple[str, Mapping[str, object]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._behind = False

    def post(self, hook: str, arguments: Mapping[str, object]) -> None:
        """Queue a call; it never blocks. The first loss of a burst is reported."""
        self._waiting.append((hook, arguments))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        if len(self._waiting) > LIMIT:
            self._waiting.popleft()
            self._fall_behind()

    def _fall_behind(self) -> None:
        if self._behind:
            return
        self._behind = True  # set first: the report is an event too, and comes back here
        self._on_loss(f"is more than {LIMIT:,} events behind, so the oldest are lost")

    async def _run(self) -> None:
        while self._waiting:
            hook, arguments = self._waiting.popleft()
            await self._deliver(hook, arguments)
        self._behind = False
        self._task = None

    async def drain(self) -> None:
        """Wait until the queue is empty, within the limit; what is left is lost."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._limit_s + MARGIN_S)
        if self._task is not None:
            lost = len(self._waiting)
            text = f"was not ready {self._limit_s:g} s after the end"
            self._on_loss(f"{text}, so {lost:,} more events are lost" if lost else text)
        await self.aclose()

    async def aclose(self) -> None:
        """End the task; what waits is lost."""
        self._waiting.clear()
        if (task := self._task) is not None:
            self._task = None
            task.cancel()
            await asyncio.wait({task})  # it ends at once: each call gives up when cancelled
