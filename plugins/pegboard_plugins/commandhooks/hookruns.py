"""The runs of hooks: their number, their times and their last ends, over all processes."""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

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
    try:
        return _decoded(file.read_bytes())
    except OSError:
        return {}


def add_runs(file: Path, runs: Mapping[str, HookRuns]) -> None:
    """Add the runs of a process to the file; it blocks.

    They are lost where the file cannot be written, or another process writes it.
    """
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "r+b") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known = _decoded(opened.read())
            for label, each in runs.items():
                before = known.pop(label, HookRuns())
                total_s = before.total_s + each.total_s
                known[label] = HookRuns(before.count + each.count, total_s, each.last)
            opened.seek(0)
            opened.truncate()
            opened.write(msgspec.json.encode(dict([*known.items()][-_MOST:])))


def _decoded(content: bytes) -> dict[str, HookRuns]:
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(content, type=dict[str, HookRuns])
    return {}
