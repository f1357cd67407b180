"""The statistics of hooks over all processes: the number, times and last results of their runs."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.plugins import lock_file, replace_file
from pegboard_plugins.commandhooks.outcome import Ended

_MOST = 1000
"""The maximum number of counted hooks; those that ran least recently are dropped."""


class HookRuns(msgspec.Struct):
    """The statistics of a hook: its number of runs, their total seconds, and the last result."""

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
        """The mean time of a run in milliseconds, or None without runs."""
        return round(self.total_s / self.count * 1000, 1) if self.count else None

    def __str__(self) -> str:
        if not self.count:
            return "no runs"
        number = "1 run" if self.count == 1 else f"{self.count} runs"
        return f"{number}, {self.mean_ms:.0f} ms each, last: {self.last}"


def runs_file(cache_dir: Path) -> Path:
    """Return the file with the statistics of ended processes, in the plugin's cache."""
    return cache_dir / "runs.json"


def read_runs(file: Path) -> dict[str, HookRuns]:
    """Return the statistics in the file by hook label; blocks."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(file.read_bytes(), type=dict[str, HookRuns])
    return {}


def add_runs(file: Path, runs: Mapping[str, HookRuns]) -> None:
    """Add a process's statistics to the file; ignore an error of the file system. Blocks."""
    with suppress(OSError), lock_file(file):
        known = read_runs(file)
        for label, each in runs.items():
            before = known.pop(label, HookRuns())
            total_s = before.total_s + each.total_s
            known[label] = HookRuns(before.count + each.count, total_s, each.last)
        replace_file(file, msgspec.json.encode(dict([*known.items()][-_MOST:])))
