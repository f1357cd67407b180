"""A plugin's implementation of a hook: its order among plugins, its timing and its queue.

Each plugin has its own queue of notifications, so that a slow plugin delays no other plugin.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from pegboard.contract.plugin import Kind, Origin
from pegboard.hooks.stalls import Holder

CALL = "call"
"""The argument of a wrapper with which it asks the others."""
FAILURES = 3
"""Failures in a row after which a hook of a plugin is not called until the App is opened again."""
LIMIT = 1000
"""Things that may wait for one plugin; the oldest are lost beyond it."""

MARGIN_S = 0.25
"""The time that the end waits beyond a call's own limit, so that the call is reported."""

Job = Callable[[], Awaitable[object]]


class Implementation(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One plugin's function that implements one hook.

    `key` distinguishes plugins with the same name. `arguments` are the names of the arguments that
    the function takes. `position` is -1 for a function that asks to be first, 1 for last, else 0.
    The failure of a `required` function is an error. `before` names plugins that are asked later,
    `after` plugins that are asked earlier. A `wrapper` is called around all other functions.
    `given` are extra arguments with fixed values. `guards`: the operation that calls the hook is
    refused while the function cannot be called. `refusal` is the reason why the function is never
    called, "" if there is none.
    """

    key: str
    plugin: str
    origin: Origin
    hook: str
    kind: Kind
    function: Callable[..., object]
    arguments: tuple[str, ...]
    timeout_s: float
    position: int = 0
    required: bool = False
    wrapper: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    given: Mapping[str, object] = {}
    guards: bool = False
    refusal: str = ""

    @cached_property
    def awaits(self) -> bool:
        """Whether the plugin's function is a coroutine function; others run in a thread."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function))

    @cached_property
    def in_place(self) -> bool:
        """Whether the function runs in the caller's task, and is cancelled with this task."""
        return self.awaits and self.origin == "builtin"

    @cached_property
    def holder(self) -> Holder:
        """The plugin and hook that a report names when a call blocks the event loop."""
        return Holder(self.plugin, f"hook {self.hook}", self.origin == "builtin")


def ordered(found: Sequence[Implementation]) -> tuple[Implementation, ...]:
    """Sort the implementations so that `before` and `after` hold, and otherwise keep the order."""
    return _resolved(found)[0]


def circle(found: Sequence[Implementation]) -> tuple[str, ...]:
    """Return the plugins whose `before` and `after` contradict each other; empty if none do."""
    return _resolved(found)[1]


def _resolved(
    found: Sequence[Implementation],
) -> tuple[tuple[Implementation, ...], tuple[str, ...]]:
    left = sorted(found, key=lambda each: each.position)
    if not any(each.before or each.after for each in left):
        return tuple(left), ()
    done: list[Implementation] = []
    stuck: tuple[str, ...] = ()
    while left:
        free = next((each for each in left if not any(_precedes(one, each) for one in left)), None)
        if free is None:
            stuck = stuck or tuple(each.plugin for each in left if _is_bound(each, left))
        left.remove(free := free or left[0])
        done.append(free)
    return tuple(done), stuck


def _precedes(one: Implementation, other: Implementation) -> bool:
    return one is not other and (other.plugin in one.before or one.plugin in other.after)


def _is_bound(each: Implementation, left: Sequence[Implementation]) -> bool:
    return any(_precedes(each, one) for one in left) and any(_precedes(one, each) for one in left)


def with_time(
    wrappers: Sequence[Implementation], inner: Sequence[Implementation]
) -> tuple[Implementation, ...]:
    """Add to each wrapper's time limit the limits of all implementations inside the wrapper."""
    inside_s = sum(each.timeout_s for each in inner)
    found = []
    for each in reversed(wrappers):
        inside_s += each.timeout_s
        found.append(msgspec.structs.replace(each, timeout_s=inside_s))
    return tuple(reversed(found))


class Timing(msgspec.Struct):
    """The number and the duration of calls of one plugin's implementation of a hook.

    `plugin` is the plugin's key. `row` is the number of failures in a row. It is counted per hook,
    so that a failing hook does not disable the plugin's other hooks.
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
        """Whether the plugin's hook is skipped because it failed several times in a row."""
        return self.row >= FAILURES

    def note(self, elapsed_ms: float, *, failed: bool) -> bool:
        """Count a call; return whether this call puts the plugin's hook in quarantine."""
        self.calls += 1
        self.failures += failed
        self.total_ms += elapsed_ms
        self.max_ms = max(self.max_ms, elapsed_ms)
        if self.row >= FAILURES:
            return False
        self.row = self.row + 1 if failed else 0
        return self.row == FAILURES


class Listener:
    """The notification queue of one plugin, of limited length, and the task that empties it.

    `limit_s` is the longest time that `drain` waits for queued notifications. `on_loss` receives a
    message when notifications are lost; it may cause an event that is queued here again.
    """

    def __init__(self, on_loss: Callable[[str], None], *, limit_s: float) -> None:
        self._limit_s = limit_s
        self._on_loss = on_loss
        self._waiting: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._behind = False

    def post(self, call: Job) -> None:
        """Queue a call without blocking; report only the first loss of a burst."""
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
        """Wait until the queue is empty or the time limit ends; drop the calls still queued."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._limit_s + MARGIN_S)
        if self._task is not None:
            lost = len(self._waiting)
            text = f"was not ready {self._limit_s:g} s after the end"
            self._on_loss(f"{text}, so {lost:,} more events are lost" if lost else text)
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the task that empties the queue, and drop the queued calls."""
        self._waiting.clear()
        if (task := self._task) is not None:
            self._task = None
            task.cancel()
            await asyncio.wait({task})  # it ends at once: each call gives up when cancelled
