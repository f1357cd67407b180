"""How plugins do: timings of each implementation, failures in a row, quarantine."""

from dataclasses import dataclass

import msgspec

FAILURES = 3
"""Failures in a row after which a plugin is left alone until the App is opened again."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin's implementation of one hook has cost."""

    plugin: str
    hook: str
    calls: int
    failures: int
    total_ms: float
    max_ms: float


@dataclass(slots=True)
class _Count:
    calls: int = 0
    failures: int = 0
    row: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0


class Health:
    """The counts of all plugins of an App, each told apart by its key.

    A row of failures is counted for the plugin and for each of its hooks, so that one hook that
    works does not hide another that never does.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], _Count] = {}
        self._rows: dict[str, int] = {}
        self._quarantined: set[str] = set()

    def note(self, key: str, hook: str, *, elapsed_ms: float, failed: bool) -> bool:
        """Count a call; whether the plugin is quarantined because of it."""
        count = self._counts.setdefault((key, hook), _Count())
        count.calls += 1
        count.failures += failed
        count.total_ms += elapsed_ms
        count.max_ms = max(count.max_ms, elapsed_ms)
        count.row = count.row + 1 if failed else 0
        self._rows[key] = self._rows.get(key, 0) + 1 if failed else 0
        if key in self._quarantined or max(count.row, self._rows[key]) < FAILURES:
            return False
        self._quarantined.add(key)
        return True

    def quarantined(self, key: str) -> bool:
        """Whether the plugin is no longer called."""
        return key in self._quarantined

    def timings(self) -> tuple[Timing, ...]:
        """The counts, in the order of the first calls; `plugin` is the key."""
        return tuple(
            Timing(
                plugin=key,
                hook=hook,
                calls=count.calls,
                failures=count.failures,
                total_ms=count.total_ms,
                max_ms=count.max_ms,
            )
            for (key, hook), count in self._counts.items()
        )
