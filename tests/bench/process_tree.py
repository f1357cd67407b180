"""What a process and all that descend from it use, orphans included. Linux only: reads /proc."""

import ctypes
import os
import resource
import signal
import threading
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PR_SET_CHILD_SUBREAPER = 36
SAMPLE_S = 0.05


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Memory(threading.Thread):
    """The peak of the summed resident sets of a process tree, in bytes, until `finish`."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._ended = threading.Event()
        self._before: set[int] = set()
        self._peak = 0

    def run(self) -> None:
        """Sample until `finish`."""
        while not self._ended.wait(SAMPLE_S):
            self._peak = max(self._peak, self._sum())

    def finish(self) -> int:
        """End the sampling; the peak."""
        self._ended.set()
        self.join()
        return self._peak

    def _sum(self) -> int:
        """The sum over processes that the last sample saw too.

        A child between fork and exec still shows its parent's pages and would count them again.
        """
        found = descendants(self._root)
        counted = {self._root} | found & self._before
        self._before = found
        return sum(_resident(pid) for pid in counted)


def descendants(root: int) -> set[int]:
    """The processes below `root`."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)):
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def reap(pid: int) -> tuple[int, resource.struct_rusage]:
    """Wait for a child: its exit code, and what it and the children it waited for have used."""
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used


def end_orphans(but: int) -> float:
    """Kill our other children, adopted ones too; the CPU seconds that they have used."""
    cpu_s = 0.0
    for pid in descendants(os.getpid()) - descendants(but) - {but}:
        try:
            os.kill(pid, signal.SIGKILL)
            used = os.wait4(pid, 0)[2]
        except (ProcessLookupError, ChildProcessError):
            continue
        cpu_s += used.ru_utime + used.ru_stime
    return cpu_s


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return 0
