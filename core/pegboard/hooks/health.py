"""How plugins do: timings of each implementation, failures in a row, quarantine."""

from dataclasses import dataclass

import msgspec

FAILURES = 3
"""Failures in a row after which a hook of a plugin is not called until the App is opened again."""


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


class PluginHealth:
    """The counts of all plugins of an App, each told apart by its key.

    A row of failures is counted for each hook of a plugin: one that fails costs no other.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], _Count] = {}

    def note(self, key: str, hook: str, *, elapsed_ms: float, failed: bool) -> bool:
        """Count a call; whether the hook of this plugin is quarantined because of it."""
        count = self._counts.setdefault((key, hook), _Count())
        count.calls += 1
        count.failures += failed
        count.total_ms += elapsed_ms
        count.max_ms = max(count.max_ms, elapsed_ms)
        if count.row >= FAILURES:
            return False
        count.row = count.row + 1 if failed else 0
        return count.row == FAILURES

    def is_quarantined(self, key: str, hook: str) -> bool:
        """Whether this hook of the plugin is no longer called."""
        count = self._counts.get((key, hook))
        return count is not None and count.row >= FAILURES

    def quarantined(self, key: str) -> tuple[str, ...]:
        """The hooks of the plugin that are no longer called."""
        hooks = (hook for plugin, hook in self._counts if plugin == key)
        return tuple(hook for hook in hooks if self.is_quarantined(key, hook))

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
