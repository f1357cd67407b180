"""Control groups of Linux: one for each family of processes, where we may make them.

Groups are made below our own, so that an operator's limits for us hold for commands too. With
version 1 root can always make them; with version 2 our own group has to delegate the controller
`pids`, as it does in a machine or container whose processes are all in the root group.
"""

import os
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path

_ROOTS = {"pids": Path("/sys/fs/cgroup/pids"), "": Path("/sys/fs/cgroup")}
"""Where the hierarchies are, by their controllers; version 2 names none."""

_PREFIX = "pegboard-"


class Groups:
    """The groups of one App, each for at most `tasks` threads; none where none can be made."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._left: list[Path] = []

    def new(self) -> "ControlGroup | None":
        """A new empty group, None where none can be made."""
        if self._parent is None:
            return None
        self._sweep()
        return _made(self._parent, self._tasks)

    def remove(self, group: "ControlGroup") -> None:
        """Remove a group; one that the kernel still holds is removed with a later one."""
        self._left.append(group.folder)
        self._sweep()

    def close(self) -> None:
        """Remove the remaining groups; the next program removes those that are still held."""
        self._sweep()

    @cached_property
    def _parent(self) -> Path | None:
        """The folder of our own group, if groups can be made there that count threads."""
        for folder in _own_groups():
            group = _made(folder, self._tasks)
            if group is not None:
                self._left += [group.folder, *_orphans(folder)]
                self._sweep()
                return folder
        return None

    def _sweep(self) -> None:
        self._left = [folder for folder in self._left if not _removed(folder)]


class ControlGroup:
    """One group; a process that writes `0` to `door` is in it, with all that it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.door = folder / "cgroup.procs"

    def members(self) -> set[int]:
        """The processes in it."""
        return {int(pid) for pid in _read(self.door).split()}

    def was_full(self) -> bool:
        """Whether the kernel has refused a process or a thread."""
        found = re.search(r"^max (\d+)", _read(self.folder / "pids.events"), re.MULTILINE)
        return found is not None and int(found[1]) > 0


def _own_groups() -> list[Path]:
    """The folders of our own group in the hierarchies that may count threads."""
    found = []
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in _ROOTS:
            found.append(_ROOTS[controllers] / path.lstrip("/"))
    return found


def _orphans(parent: Path) -> list[Path]:
    """The groups that killed programs have left."""
    named = (re.fullmatch(rf"{_PREFIX}(\d+)-\w+", folder.name) for folder in parent.iterdir())
    return [parent / each[0] for each in named if each and not Path("/proc", each[1]).exists()]


def _made(parent: Path, tasks: int) -> ControlGroup | None:
    folder = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        folder.mkdir()
        # Not made anew: where the controller is missing there is no such file.
        limit = os.open(folder / "pids.max", os.O_WRONLY)
        try:
            os.write(limit, b"%d" % tasks)
        finally:
            os.close(limit)
    except OSError:
        _removed(folder)
        return None
    return ControlGroup(folder)


def _removed(folder: Path) -> bool:
    with suppress(FileNotFoundError):
        try:
            folder.rmdir()
        except OSError:
            return False
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
