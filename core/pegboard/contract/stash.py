"""What plugins keep in memory for the life of an App: each its own values, under its own keys."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StashKey(Generic[T]):
    """A key that is its own name: only who has the object gets at the value.

    Made once, at a module's top: `_CACHE = StashKey[dict[str, int]]()`.
    """

    __slots__ = ()


class Stash:
    """Values of plugins, gone with the App; what must be closed is closed in `shutdown`."""

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def get(self, key: StashKey[T]) -> T | None:
        """The value, None if there is none."""
        found: T | None = self._values.get(key)
        return found

    def setdefault(self, key: StashKey[T], make: Callable[[], T]) -> T:
        """The value; what `make` gives, where there is none yet."""
        if key not in self._values:
            self._values[key] = make()
        found: T = self._values[key]
        return found
