"""Limits on the processes of a tool call (number, memory, open files), and their enforcement.

Limits that the kernel enforces are set by a shell before it becomes the program, or by a control
group. The other limits apply to a whole family of processes. The family is checked at least ten
times a second. A check usually takes two small reads: of the number of threads and of the free
memory of the whole machine. The processes are examined only if these numbers have changed so much
that the family may exceed a limit.

Control groups are created below Pegboard's own group, so that an operator's limits also hold for
commands. In version 1, root can always create them. In version 2, Pegboard's group must delegate
the controller `pids`, as in a machine or container that has only the root group.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import msgspec

from pegboard.errors import ToolError
from pegboard.schema.config import ProcessLimits

TICK_S = 0.1
"""How often a family of processes is examined if the kernel limits it, too."""
ALONE_TICK_S = 0.02
"""How often where it does not: root without a control group."""
SACRIFICE = 500
"""How much sooner (of 1,000) the kernel ends a command than us when memory runs out."""
LOOK_S = 5.0
"""How often each process of a family is examined, whatever the machine's load."""
MEMORY_SHARE = 0.75
"""The share of the machine's memory for a family of processes without a limit of its own."""
TASKS = 4
"""The kernel counts threads: it refuses more than so many for each process that is allowed."""
_WORST_SCORE = 1000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROOTS = {"pids": Path("/sys/fs/cgroup/pids"), "": Path("/sys/fs/cgroup")}
"""The folders of the control groups, by their controllers; version 2 names none."""

_PREFIX = "pegboard-"
LIMITS = "AGENT_LIMITS"
"""The variable with the limits of a bash, which removes it before its line begins."""
_BEFORE = f'eval "${LIMITS}"; '
"""Stands before a line, on its first line for the numbers in messages."""
LONGEST_BYTES = (128 << 10) - 1
"""Of one argument of a program (Linux, `MAX_ARG_STRLEN`)."""


class Groups:
    """The control groups that one App creates for its process families, where Linux allows this.

    Each group allows at most `tasks` threads.
    """

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._left: list[Path] = []

    def new(self) -> "ControlGroup | None":
        """Create an empty control group; return None if that is impossible."""
        if self._parent is None:
            return None
        self.sweep()
        return _made(self._parent, self._tasks)

    def remove(self, group: "ControlGroup") -> None:
        """Remove a control group; if it is busy, try again when another is created or removed."""
        self._left.append(group.folder)
        self.sweep()

    @cached_property
    def _parent(self) -> Path | None:
        """The folder of Pegboard's own group if groups that limit threads can be created."""
        for folder in _own_groups():
            group = _made(folder, self._tasks)
            if group is not None:
                self._left += [group.folder, *_orphans(folder)]
                self.sweep()
                return folder
        return None

    def sweep(self) -> None:
        """Remove the unused control groups; a later program removes groups still in use."""
        self._left = [folder for folder in self._left if not _removed(folder)]


class ControlGroup:
    """A control group; a process that writes `0` to `door` enters it with all its children."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.door = folder / "cgroup.procs"

    def members(self) -> set[int]:
        """Return the pids of the processes in the control group."""
        return {int(pid) for pid in _read(self.door).split()}

    def was_full(self) -> bool:
        """Return whether the kernel has refused to create a process or a thread."""
        found = re.search(rb"^max (\d+)", _read(self.folder / "pids.events"), re.MULTILINE)
        return found is not None and int(found[1]) > 0


def _own_groups() -> list[Path]:
    """Return the folders of Pegboard's own group in hierarchies that may limit threads."""
    lines = os.fsdecode(_read("/proc/self/cgroup")).splitlines()
    groups = (line.split(":", 2) for line in lines)
    return [_ROOTS[names] / path.lstrip("/") for _, names, path in groups if names in _ROOTS]


def _orphans(parent: Path) -> list[Path]:
    """Return the control groups that killed programs have left behind."""
    named = (re.fullmatch(rf"{_PREFIX}(\d+)-\w+", folder.name) for folder in parent.iterdir())
    return [parent / each[0] for each in named if each and not Path("/proc", each[1]).exists()]


def _made(parent: Path, tasks: int) -> ControlGroup | None:
    folder = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        folder.mkdir()
        # "r+" creates no file: where the controller is missing there is none.
        with open(folder / "pids.max", "r+b", buffering=0) as limit:  # noqa: PTH123 - as in `_read`
            limit.write(b"%d" % tasks)
    except OSError:
        _removed(folder)
        return None
    return ControlGroup(folder)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return not folder.exists()
    return True


class Machine(msgspec.Struct, frozen=True):
    """The number of threads on the machine, and its free memory in bytes."""

    threads: int
    free: int


class Bounds:
    """The limits on the commands of an App's tools."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._groups = Groups(limits.processes * TASKS)

    @property
    def processes(self) -> int:
        """The number of processes that a family may have, 0 for no limit."""
        return self._limits.processes

    @cached_property
    def memory(self) -> int:
        """The memory that a family may have, in bytes, 0 for no limit."""
        said = self._limits.memory_mb
        return int(_machine_memory() * MEMORY_SHARE) if said is None else said << 20

    @contextmanager
    def group(self) -> Iterator[ControlGroup | None]:
        """Yield a control group for a family run by root, which ignores resource limits."""
        wanted = self.processes and os.geteuid() == 0
        group = self._groups.new() if wanted else None
        try:
            yield group
        finally:
            if group is not None:
                self._groups.remove(group)

    def around(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        group: ControlGroup | None = None,
        seal: int = 0,
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command line that runs `argv` within the limits, and its variables.

        A shell sets the limits and then becomes `argv`. If `argv` is a bash with a command line,
        that bash sets the limits itself, which saves starting a shell. `seal` is the seal of the
        process family.

        :raises ToolError: when the program or the directory does not exist; the shell would report
          this as the program's own error.
        """
        script = f"{self._fixed} {self._most_of_the_user()} {_sealed(seal)}".strip()
        if group is not None:
            script = f"{{ echo 0 >{group.door}; }} 2>/dev/null; {script}"
        if not script:
            return argv, env
        if not cwd.is_dir():
            raise ToolError(f"cannot run {argv[0]!r} in {cwd}: there is no such directory")
        name = str(cwd / argv[0]) if "/" in argv[0] else argv[0]
        if "\0" in name or shutil.which(name, path=env.get("PATH", os.defpath)) is None:
            raise ToolError(f"cannot run {argv[0]!r} in {cwd}: there is no such program")
        line = _BEFORE + argv[-1]
        if tuple(argv[1:-1]) == ("-p", "-c") and len(os.fsencode(line)) <= LONGEST_BYTES:
            hidden = f"BASH_EXECUTION_STRING=${{BASH_EXECUTION_STRING:{len(_BEFORE)}}}"
            return [*argv[:-1], line], {**env, LIMITS: f"{script} {hidden}; unset {LIMITS}"}
        # A shell drops variables that it cannot name, such as exported functions.
        odd = [f"{name}={value}" for name, value in env.items() if not _NAME.fullmatch(name)]
        through = ["/usr/bin/env", *odd] if odd else []
        return ["/bin/sh", "-c", f'{script} exec "$@"', "sh", *through, *argv], env

    def close(self) -> None:
        """Remove the remaining control groups."""
        self._groups.sweep()

    @cached_property
    def _fixed(self) -> str:
        """The shell commands that set the limits of all commands, at most Pegboard's own."""
        import resource  # the first process pays, not the start of the program

        parts = []
        if own := _read("/proc/self/oom_score_adj").strip():
            score = min(int(own) + SACRIFICE, _WORST_SCORE)
            parts.append(f"{{ echo {score} >/proc/self/oom_score_adj; }} 2>/dev/null;")
        most = self._limits.open_files
        for letter, limit in zip("SH", resource.getrlimit(resource.RLIMIT_NOFILE), strict=True):
            if most and not 0 <= limit <= most:
                parts.append(f"ulimit -{letter}n {most};")
        return " ".join(parts)

    def _most_of_the_user(self) -> str:
        """Return the shell command that limits the user's threads, or "".

        The kernel counts all threads of a user, so the limit is their present number plus the
        allowed new ones. It is "" if the kernel enforces no limit, as for root.
        """
        if not self.processes or os.geteuid() == 0 or not (threads := machine().threads):
            return ""
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        most = threads + self.processes * TASKS
        # -u is bash's letter, -p that of smaller shells.
        known = f"{{ ulimit -u {most} || ulimit -p {most}; }} 2>/dev/null;"
        return "" if 0 <= limit <= most else known


def without_limits(output: bytes) -> bytes:
    """Remove the shell code that sets the limits from a syntax error message of bash."""
    return output.replace(f"`{_BEFORE}".encode(), b"`", 1)


def _sealed(seal: int) -> str:
    """Return the shell command that sets the seal: `-w` in smaller shells, `-x` in bash."""
    if not seal or not sys.platform.startswith("linux"):
        return ""
    return f"{{ ulimit -w {seal} || ulimit -x {seal}; }} 2>/dev/null;"


class FamilyWatch:
    """The supervision of a process family against the limits, from before the family's start."""

    def __init__(
        self,
        bounds: Bounds,
        members: Callable[[], set[int] | None],
        group: ControlGroup | None = None,
    ) -> None:
        self._bounds = bounds
        self._members = members
        self._group = group
        self._least = machine()
        self._looked_at = time.monotonic()
        alone = bounds.processes and group is None and os.geteuid() == 0
        self.tick_s = ALONE_TICK_S if alone else TICK_S

    def exceeded(self) -> str:
        """Return which limit is exceeded, as text for the user, or "".

        Normally this reads only the machine's thread count and free memory. It examines each
        process if the count has risen by the allowed number of processes, or if free memory has
        fallen by half of the allowed memory. It also does so every `LOOK_S`, because other programs
        may free resources meanwhile.
        """
        bounds, now = self._bounds, machine()
        if self._group is not None and self._group.was_full():
            return f"more than {bounds.processes} processes"
        least = self._least = Machine(
            min(self._least.threads, now.threads), max(self._least.free, now.free)
        )
        many = bool(bounds.processes) and now.threads - least.threads >= bounds.processes
        much = bool(bounds.memory) and least.free - now.free >= bounds.memory // 2
        if time.monotonic() - self._looked_at >= LOOK_S:
            many, much = bool(bounds.processes), bool(bounds.memory)
        if not (many or much):
            return ""
        self._looked_at = time.monotonic()
        pids = self._members()
        if pids is None:
            return ""
        if many and len(pids) > bounds.processes:
            return f"more than {bounds.processes} processes"
        if much and _anonymous(pids) > bounds.memory and _own(pids) > bounds.memory:
            return f"more than {bounds.memory >> 20} MB of memory"
        return ""


def machine() -> Machine:
    """Read the machine's threads and free memory from the kernel; zeros if unknown."""
    threads = re.search(rb"/(\d+)", _read("/proc/loadavg"))
    free = re.search(rb"MemAvailable:\s+(\d+)", _read("/proc/meminfo"))
    return Machine(int(threads[1]) if threads else 0, int(free[1]) << 10 if free else 0)


def _machine_memory() -> int:
    """Return the memory of the machine, or of the container, in bytes; 0 if unknown."""
    total = re.search(rb"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    files = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    allowed = [int(text) for path in files if (text := _read(path).strip()).isdigit()]
    return min([int(total[1]) << 10, *allowed]) if total else 0


def _anonymous(pids: Iterable[int]) -> int:
    """Return the anonymous memory of processes in bytes; a shared page counts once per process."""
    counts = (_read(f"/proc/{pid}/statm").split() for pid in pids)
    pages = sum(int(count[1]) - int(count[2]) for count in counts if count)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _own(pids: Iterable[int]) -> int:
    """Return the memory of processes with shared pages counted once; slow for the kernel."""
    found = (re.search(rb"Pss_Anon:\s+(\d+)", _read(f"/proc/{pid}/smaps_rollup")) for pid in pids)
    return sum(int(each[1]) << 10 for each in found if each)


def _read(path: str | Path) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of Path.read_bytes
            return file.read()
    except OSError:
        return b""
