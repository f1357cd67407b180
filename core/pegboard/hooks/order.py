"""The order in which the implementations of a hook are asked."""

from collections.abc import Sequence

from pegboard.hooks.isolation import Implementation


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
