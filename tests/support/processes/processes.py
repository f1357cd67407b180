"""What still runs, as the kernel says."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

MARK = f"{os.getpid()}.4713"
"""To be put on the command lines of what a test starts."""
ENDED_WITHIN_S = 20
_SLEPT = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)


def alive(word: str) -> list[str]:
    """The command lines of other processes that have this word, by /proc."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if word.encode() in line and folder.name != str(os.getpid()):
            found.append(line.decode(errors="replace"))
    return found


def remaining(word: str) -> list[str]:
    """Return the processes with this word that are left when the kernel has ended what it can.

    A process that was killed ends when the machine has time for it.
    """
    end = time.monotonic() + ENDED_WITHIN_S
    while (found := alive(word)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def wake_ups(pid: int) -> int:
    """Return how often the threads of a process have gone to sleep, and so were woken."""
    return sum(int(count) for state in _states(pid) for count in _SLEPT.findall(state))


def is_asleep(pid: int) -> bool:
    """Return whether all threads of a process wait: a busy machine holds none of them up."""
    return all("\nState:\tS" in state for state in _states(pid))


def _states(pid: int) -> list[str]:
    states = []
    with suppress(OSError):  # it has just ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                states.append((thread / "status").read_text())
    return states
