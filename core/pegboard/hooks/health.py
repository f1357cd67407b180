"""How plugins do: timings of each implementation, failures in a row, quarantine.

Code of plugins that is no hook: what it raises is told with the plugin's name.

One plugin's queue of things to hear, so that a slow plugin delays nobody else.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pegboard.errors import PegboardError, PluginError

FAILURES = 3
"""Failures in a row after which a hook of a plugin is not called until the App is opened again."""


@dataclass(slots=True)
class Timing:
    """What one plugin's implementation of one hook has cost; `plugin` is the plugin's key.

    A `row` of failures is counted for each hook of a plugin: one that fails costs no other.
    """

    plugin: str
    hook: str
    calls: int = 0
    failures: int = 0
    row: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0

    @property
    def quarantined(self) -> bool:
        """Whether this hook of the plugin is no longer called."""
        return self.row >= FAILURES

    def note(self, elapsed_ms: float, *, failed: bool) -> bool:
        """Count a call; whether the hook of this plugin is quarantined because of it."""
        self.calls += 1
        self.failures += failed
        self.total_ms += elapsed_ms
        self.max_ms = max(self.max_ms, elapsed_ms)
        if self.row >= FAILURES:
            return False
        self.row = self.row + 1 if failed else 0
        return self.row == FAILURES


@contextmanager
def blaming(plugin: str, what: str, *, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """A block of the plugin's code; `what` of it is named, as "the provider house".

    Errors of Pegboard's own, and those of the types `passing`, are the code's answer.

    :raises PluginError: for all else that the block raises.
    """
    try:
        yield
    except Exception as error:  # it is foreign code
        if isinstance(error, (PegboardError, *passing)):
            raise
        raise PluginError(plugin, f"{what} raised {line_of(error)}") from error


def line_of(error: BaseException) -> str:
    """The error's type and the first line of its text, which may fail to be made."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error of a plugin may fail to say what it is
        text = ""
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


LIMIT = 1000
"""Things that may wait for one plugin; the oldest are lost beyond it."""

MARGIN_S = 0.25
"""So much later than a call's own limit the end gives up: the call is told of first."""

Job = Callable[[], Awaitable[object]]


class Listener:
    """The bounded queue of one plugin, and the task that empties it while there is something.

    `limit_s` is how long the end waits for what is still queued. What is lost is told to `on_loss`,
    which may be heard as an event, and so come back here.
    """

    def __init__(self, on_loss: Callable[[str], None], *, limit_s: float) -> None:
        self._limit_s = limit_s
        self._on_loss = on_loss
        self._waiting: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._behind = False

    def post(self, call: Job) -> None:
        """Queue a call; it never blocks. The first loss of a burst is reported."""
        self._waiting.append(call)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        if len(self._waiting) > LIMIT:
            self._waiting.popleft()
            if not self._behind:
                self._behind = True  # set first: the report is an event too, and comes back here
                self._on_loss(f"is more than {LIMIT:,} events behind, so the oldest are lost")

    async def _run(self) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            await call()
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
