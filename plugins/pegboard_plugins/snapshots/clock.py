"""The clock of file times, which may differ from the system's clock and be less precise."""

import os
import time
from pathlib import Path

import msgspec

from pegboard.unstable import temporary_beside

CLOCK_NS = 20_000_000
"""Times of files may lag behind the clock by this much."""
COARSE_NS = 2_000_000_000
"""The same where a file system stores whole seconds, or every second one."""
_SECOND_NS = 1_000_000_000


class FileClock(msgspec.Struct, frozen=True):
    """How a file system's clock differs from the system's clock.

    `ahead_ns` is how far it is ahead, and `slack_ns` the imprecision of file times.
    """

    ahead_ns: int = 0
    slack_ns: int = CLOCK_NS


def file_clock(folder: Path) -> FileClock:
    """Return the clock of a folder's file system, measured with a new file.

    If no file can be created, return the system's clock.
    """
    before_ns = time.time_ns()
    try:
        stamp_ns = _stamp_ns(folder)
    except OSError:
        return FileClock()
    after_ns = time.time_ns()
    slack_ns = CLOCK_NS if stamp_ns % _SECOND_NS else COARSE_NS
    if before_ns - slack_ns <= stamp_ns <= after_ns + CLOCK_NS:
        return FileClock(slack_ns=slack_ns)
    return FileClock(ahead_ns=stamp_ns - before_ns, slack_ns=slack_ns + after_ns - before_ns)


def step_ns() -> int:
    """Return the difference between the system's clock and the time since boot.

    It changes only when the system's clock is set, and so reveals that.
    """
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.time_ns() - time.clock_gettime_ns(steady)


def _stamp_ns(folder: Path) -> int:
    flags = os.O_WRONLY | os.O_CLOEXEC
    try:
        file = os.open(folder, flags | os.O_TMPFILE, 0o600)  # a file without a name
    except (OSError, AttributeError):  # network file systems have none, nor has macOS
        place = temporary_beside(folder / "clock")
        file = os.open(place, flags | os.O_CREAT | os.O_EXCL, 0o600)
        place.unlink()
    try:
        return os.fstat(file).st_ctime_ns
    finally:
        os.close(file)
