"""Process families: a process with all its descendants, and how to find and end the family."""

import os
import re
import signal
import sys
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.errors import PermissionDeniedError
from pegboard.processes.limits import ControlGroup

MARK = "AGENT_RUN"
"""Variable by which processes are recognised as a call's own, even when they left its group."""
_RLIMIT_LOCKS = 10
"""getrlimit(2); the module `resource` has no name for it."""
_PROGRAMS, _CALLS = 10**7, 10**9
"""How many seals there are: of programs like this one, and of calls in each."""
NEAR_PIDS = 256
CROWD = 50
"""More processes than this are stopped before they are killed: they may fork faster than that."""
FREEZE_ROUNDS = 100


class _Status(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    session: int


class Family:
    """A process with all its descendants, including those that left its group or session.

    They are found under `/proc` by parent, by session and by a mark in their environment. If they
    have cleared the mark, they are found by the `seal`. This is a resource limit on file locks,
    which children inherit and Linux does not enforce (getrlimit(2)). Without `/proc` only the
    process group is known.
    """

    def __init__(self, prefix: str) -> None:
        self.mark = f"{prefix}.{os.urandom(8).hex()}"
        self.seal = program_seal(prefix) * _CALLS + int.from_bytes(os.urandom(8)) % _CALLS
        self.leader = -1
        self.group: ControlGroup | None = None
        """Where the kernel keeps them together, too."""
        self.unclear: set[int] = set()
        """Processes that were becoming a program at the last look, and so had no variables."""

    def kill(self, *, thorough: bool) -> bool:
        """Kill the family; return whether a process was alive."""
        return self.signal(signal.SIGKILL, thorough=thorough)

    def signal(self, number: int, *, thorough: bool = True) -> bool:
        """Send a signal to the family; return whether a process was alive."""
        pids = self.members(thorough=thorough)
        if pids is None:
            if self.leader > 0:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.leader, number)
            return False
        if number == signal.SIGKILL and len(pids) > CROWD:
            pids = self._frozen(pids)
        _send(pids, number)
        return bool(pids)

    def members(self, *, thorough: bool = True) -> set[int] | None:
        """Return the living members, or None without `/proc`.

        This takes 50 us for each process of the machine. If `thorough` is false, only the control
        group is examined, or else processes younger than the leader.
        """
        self.unclear.clear()
        candidates = _all_pids() if thorough else self._newer_pids()
        return None if candidates is None else self._members_of(candidates, known=())

    def _members_of(self, candidates: Iterable[int], *, known: Collection[int]) -> set[int]:
        living = [status for pid in candidates if (status := _status(pid))]
        found = {
            each.pid
            for each in living
            if self.leader in (each.pid, each.session) or self._is_marked(each.pid)
        }
        if self.group is not None:
            found |= {pid for pid in self.group.members() - {*known} if not _is_ending(pid)}
        family = {*known, *found}
        while more := {each.pid for each in living if each.parent in family} - family:
            found |= more
            family |= more
        return found

    def _is_marked(self, pid: int) -> bool:
        try:
            environ = _read(f"/proc/{pid}/environ")
        except OSError:  # of another user
            return False
        if f"{MARK}={self.mark}".encode() in environ or _seal(pid) == self.seal:
            return True
        if not environ and not _is_ending(pid):
            self.unclear.add(pid)
        return False

    def _frozen(self, pids: set[int]) -> set[int]:
        """Stop all members, so that they start no more children, and return the members' pids."""
        if any(_in_group(pid, self.leader) for pid in pids):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)  # at once, the kernel lets none slip by
        stopped: set[int] = set()
        for _ in range(FREEZE_ROUNDS):
            fresh = pids - stopped
            if not fresh:
                break
            _send(fresh, signal.SIGSTOP)
            stopped |= fresh
            others = [pid for pid in _all_pids() or () if pid not in stopped]
            pids = stopped | self._members_of(others, known=stopped)
        return pids

    def _newer_pids(self) -> Iterable[int] | None:
        """Return the pids since the leader's; the kernel counts pids up and reports the last.

        This avoids listing /proc, which takes longer than a short command. If there is a control
        group, its members are returned, because only root can leave it.
        """
        if self.group is not None:
            return {self.leader, *self.group.members()}
        try:
            last = int(Path("/proc/loadavg").read_bytes().split()[-1])
        except (OSError, ValueError, IndexError):
            return _all_pids()
        near = 0 <= last - self.leader <= NEAR_PIDS
        return range(self.leader, last + 1) if near else _all_pids()


def within_tool() -> bool:
    """Return whether this process descends from a process that a tool started.

    Such a process has the mark in its environment. A command can drop the mark (`env -i`), but only
    root can raise the seal, the limit on file locks, which is unlimited elsewhere. A terminal that
    a server opens for a client also has the mark.
    """
    if MARK in os.environ:
        return True
    if not sys.platform.startswith("linux"):
        return False
    import resource  # only decisions need it

    return resource.RLIM_INFINITY not in resource.getrlimit(_RLIMIT_LOCKS)


def refuse_within_tool(command: str) -> None:
    """Raise an error if a tool has started this process, since only the user may decide.

    :raises PermissionDeniedError: when a tool has.
    """
    if within_tool():
        raise PermissionDeniedError(
            f"`{command}` is refused: a tool has started this process, and only the user decides"
            " what is trusted and allowed; run it in a terminal outside Pegboard"
        )


def _send(pids: Collection[int], number: int) -> None:
    """Send a signal to parents before children, since a shell continues after a child's end."""
    parents = {pid: status.parent for pid in pids if (status := _status(pid))}
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    ordered = [pid for pid in pids if parents.get(pid) not in parents]
    for pid in ordered:  # it grows meanwhile
        ordered += children.get(pid, ())
    for pid in ordered:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except ProcessLookupError:
        return False


def _all_pids() -> list[int] | None:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except FileNotFoundError:
        return None


def _status(pid: int) -> _Status | None:
    """Read the state of a living process; return None for a process that has ended."""
    try:
        state, parent, _, session, *_ = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    if state in (b"Z", b"X"):
        return None
    return _Status(pid, int(parent), int(session))


def _is_ending(pid: int) -> bool:
    """Return whether the process has released its memory and is about to end."""
    try:
        return _read(f"/proc/{pid}/statm").startswith(b"0 ")
    except OSError:
        return True


def program_seal(prefix: str) -> int:
    """Return the first seven digits of all seals that this program gives to its processes.

    A seal, a limit on file locks, has 16 digits. The last nine distinguish the program's tool
    calls.
    """
    return _PROGRAMS // 10 + zlib.crc32(prefix.encode()) % (_PROGRAMS - _PROGRAMS // 10)


def _seal(pid: int) -> int:
    """Return the seal of a process, or 0 if the process has no seal."""
    try:
        found = re.search(rb"^Max file locks +(\d+)", _read(f"/proc/{pid}/limits"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of Path.read_bytes
        return file.read()
