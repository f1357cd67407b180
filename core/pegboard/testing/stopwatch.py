"""A stopwatch that does not count the time in which threads are ready but no processor is free."""

import os
import time
from collections.abc import Mapping

from pegboard.kit.threads import starved

ATTEMPTS = 3
"""What seems slow is measured so often: a fault comes again, a busy moment does not."""


class Stopwatch:
    """A stopwatch that starts when made, and stands still while a thread waits for a processor.

    `threads` are the native ids of the threads; without any, all threads of the process count.
    """

    def __init__(self, *threads: int) -> None:
        self._threads = threads
        self._starved = self._starved_s()
        self._began = time.perf_counter()

    @property
    def taken_s(self) -> float:
        """The seconds since the stopwatch was started, without pauses."""
        taken_s = time.perf_counter() - self._began
        starved = self._starved_s().items()
        return max(taken_s - sum(each - self._starved.get(name, 0.0) for name, each in starved), 0)

    def _starved_s(self) -> Mapping[int, float]:
        try:
            threads = self._threads or tuple(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208
        except OSError:
            return {}  # another system than Linux counts nothing
        return {each: starved(each) for each in threads}
