"""One plugin's function for one hook: its place in the order, and the time of its calls.

Each plugin has a queue of notifications of its own, so that a slow plugin delays no other one.
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
    """One plugin's function for one hook.

    `key` tells plugins of one name apart. `arguments` are the names it wants; `position` is -1
    for one that wants to be asked first, 1 for last, else 0. What is `required` is never skipped.
    `before` and `after` name plugins that are asked later, or earlier; a `wrapper` is around all
    the others. `given` are values that it gets in each call as they are. `refusal` says why the
    function cannot be called at all, "" if it can: what needs its consent is refused.
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
        """Whether the function is a coroutine's; others run in a thread."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function))

    @cached_property
    def in_place(self) -> bool:
        """True if the caller's task runs the function, so that cancelling the task ends it."""
        return self.awaits and self.origin == "builtin"

    @cached_property
    def holder(self) -> Holder:
        """The name that is reported when a call blocks the event loop."""
        return Holder(self.plugin, f"hook {self.hook}", self.origin == "builtin")


def ordered(found: Sequence[Implementation]) -> tuple[Implementation, ...]:
    """Order the implementations by their `before` and `after`, else as given."""
    return _resolved(found)[0]


def circle(found: Sequence[Implementation]) -> tuple[str, ...]:
    """Return plugins whose order contradicts itself, in a circle; empty if an order exists."""
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
    """Add the time limits of all implementations inside a wrapper to the wrapper's own."""
    inside_s = sum(each.timeout_s for each in inner)
    found = []
    for each in reversed(wrappers):
        inside_s += each.timeout_s
        found.append(msgspec.structs.replace(each, timeout_s=inside_s))
    return tuple(reversed(found))


class Timing(msgspec.Struct):
    """The time that one plugin's implementation of a hook takes; `plugin` is the plugin's key.

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
        """Whether this hook of the plugin is skipped, after several failures in a row."""
        return self.row >= FAILURES

    def note(self, elapsed_ms: float, *, failed: bool) -> bool:
        """Count a call; return whether the plugin's hook is quarantined from now on."""
        self.calls += 1
        self.failures += failed
        self.total_ms += elapsed_ms
        self.max_ms = max(self.max_ms, elapsed_ms)
        if self.row >= FAILURES:
            return False
        self.row = self.row + 1 if failed else 0
        return self.row == FAILURES


class Listener:
    """The bounded queue of one plugin, and the task that empties it.

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
        """Queue a call without blocking; report the first loss of a burst."""
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
        """Wait until the queue is empty, within the limit; what is left then is dropped."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._limit_s + MARGIN_S)
        if self._task is not None:
            lost = len(self._waiting)
            text = f"was not ready {self._limit_s:g} s after the end"
            self._on_loss(f"{text}, so {lost:,} more events are lost" if lost else text)
        await self.aclose()

    async def aclose(self) -> None:
        """End the task; drop the calls that wait."""
        self._waiting.clear()
        if (task := self._task) is not None:
            self._task = None
            task.cancel()
            await asyncio.wait({task})  # it ends at once: each call gives up when cancelled
