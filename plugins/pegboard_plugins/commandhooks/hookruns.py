"""The runs of hooks: their number, their times and their last ends, over all processes."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.plugins import lock_file, replace_file
from pegboard_plugins.commandhooks.outcome import Ended

_MOST = 1000
"""Hooks that are counted; those that ran least recently are forgotten."""


class HookRuns(msgspec.Struct):
    """The runs of a hook: their number, their seconds, and the last end."""

    count: int = 0
    total_s: float = 0.0
    last: str = ""

    def add(self, ended: Ended, taken_s: float) -> None:
        """Count a run."""
        self.count += 1
        self.total_s += taken_s
        self.last = ended.failure or f"code {ended.exit_code}"

    @property
    def mean_ms(self) -> float | None:
        """The mean time of a run, None where there is none."""
        return round(self.total_s / self.count * 1000, 1) if self.count else None

    def __str__(self) -> str:
        if not self.count:
            return "no runs"
        number = "1 run" if self.count == 1 else f"{self.count} runs"
        return f"{number}, {self.mean_ms:.0f} ms each, last: {self.last}"


def runs_file(cache_dir: Path) -> Path:
    """Return the file with the runs of all ended processes, in the plugin's cache."""
    return cache_dir / "runs.json"


def read_runs(file: Path) -> dict[str, HookRuns]:
    """Return the runs by the hooks' labels; it blocks."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(file.read_bytes(), type=dict[str, HookRuns])
    return {}


def add_runs(file: Path, runs: Mapping[str, HookRuns]) -> None:
    """Add the runs of a process to the file, or lose them if it cannot be written; blocks."""
    with suppress(OSError), lock_file(file):
        known = read_runs(file)
        for label, each in runs.items():
            before = known.pop(label, HookRuns())
            total_s = before.total_s + each.total_s
            known[label] = HookRuns(before.count + each.count, total_s, each.last)
        replace_file(file, msgspec.json.encode(dict([*known.items()][-_MOST:])))
