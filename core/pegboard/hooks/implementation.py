"""One plugin's function for one hook, and the order in which those of a hook are asked."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from pegboard.contract.plugin import Origin
from pegboard.hooks.stalls import Holder

CALL = "call"
"""The argument of a wrapper with which it asks the others."""


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
    def holder(self) -> Holder:
        """Who is named when a call holds up the event loop."""
        return Holder(self.plugin, f"hook {self.hook}")


def ordered(found: Sequence[Implementation]) -> tuple[Implementation, ...]:
    """The implementations by what they say of their place, else as they are given."""
    return _resolved(found)[0]


def circle(found: Sequence[Implementation]) -> tuple[str, ...]:
    """The plugins that each want to be before one another; none where the order can be kept."""
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
    """The wrappers, each with the time of all that it is around, and its own."""
    inside_s = sum(each.timeout_s for each in inner)
    found = []
    for each in reversed(wrappers):
        inside_s += each.timeout_s
        found.append(msgspec.structs.replace(each, timeout_s=inside_s))
    return tuple(reversed(found))
