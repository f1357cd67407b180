"""The sessions that changed each file, as tool calls report or as the file's time shows.

Files that snapshots leave out, such as ignored files, are copied before and after a call's write.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pegboard.snapshots import RestoreWay
from pegboard_plugins.snapshots.clock import CLOCK_NS, FileClock, file_clock, step_ns
from pegboard_plugins.snapshots.objects import Objects, TreeEntry, tree_of
from pegboard_plugins.snapshots.state import NotKeptError, WorktreeState

Copying = Callable[[tuple[str, ...], bytes], None]
"""Keeps a copy of a file, by the sessions that are about to write it and its path."""


class WriteClaim(msgspec.Struct, eq=False):
    """A tool call that may write files below `root`, from the call's beginning to its end.

    With `tells`, the call reports all files that it writes; `told` are the reported paths below
    `root`. `spoke` is set if the call has reported any file. `copy` stores a file before the call
    writes it.
    """

    owners: tuple[str, ...]
    root: bytes
    copy: Copying
    tells: bool = False
    begin_ns: int = 0
    end_ns: int | None = None
    step_ns: int = msgspec.field(default_factory=step_ns)
    told: set[bytes] = msgspec.field(default_factory=set)
    spoke: bool = False
    pauses: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def tell(self, path: Path) -> None:
        """Record that the call has written the file `path`."""
        self.spoke = True
        self._note(path)

    def intend(self, path: Path) -> None:
        """Copy a file that snapshots leave out, before the call writes the file; blocks."""
        name = self._note(path)
        if name is not None:
            self.copy(self.owners, name)

    def _note(self, path: Path) -> bytes | None:
        name = os.fsencode(path)
        if not name.startswith(self.root):
            return None
        name = name.removeprefix(self.root)
        self.told.add(name)
        return name

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Ignore changes of files in the `with` block, while the call waits for something."""
        begin_ns = time.time_ns()
        try:
            yield
        finally:
            self.pauses.append((begin_ns, time.time_ns()))

    def covers(self, change: "PathChange", clock: FileClock) -> bool:
        """Return whether the call may have made the change, judged by the time of the file."""
        if self.tells and (self.spoke or self.told):
            return False
        at_ns = change.at_ns - clock.ahead_ns
        step = abs(step_ns() - self.step_ns)  # the clock was set during the call or since
        slack_ns = clock.slack_ns + (step if step > CLOCK_NS else 0)
        if at_ns < self.begin_ns - slack_ns:
            return False
        if change.latest:
            return True
        if any(begin + slack_ns < at_ns < end - slack_ns for begin, end in self.pauses):
            return False
        return self.end_ns is None or at_ns <= self.end_ns + slack_ns


class PathChange(NamedTuple):
    """The time of a path's change; if `latest`, the change may have been earlier."""

    at_ns: int
    latest: bool = False


class Claims:
    """The files that sessions have changed since the last `take`; threads may share the object.

    A file that the user changes in an editor at the same time belongs to no call.
    """

    def __init__(self, root: bytes, copy: Copying) -> None:
        self._root = root
        self._place = Path(os.fsdecode(root))
        self._copy = copy
        self._lock = threading.Lock()
        self._writings: list[WriteClaim] = []
        self._claimed: dict[str, set[bytes]] = {}

    def begin(self, owners: tuple[str, ...], *, tells: bool) -> WriteClaim:
        """Begin a call that may write files; `owners` are its session and the sessions above."""
        writing = WriteClaim(owners, self._root, self._copy, tells, begin_ns=time.time_ns())
        with self._lock:
            self._writings.append(writing)
        return writing

    def share(
        self,
        changed: Iterable[bytes],
        times: Mapping[bytes, int],
        moved: Mapping[bytes, bytes],
        *,
        looked_ns: int,
    ) -> None:
        """Attribute changed files to calls, and drop the calls that ended before `looked_ns`.

        `looked_ns` is the time before the comparison that found the changes. `times` has the time
        of the last change for files with misleading times of their own. `moved` maps files to the
        paths from which they were moved, since a moved folder keeps the times of its files.
        """
        changed = frozenset(changed)
        clock = file_clock(self._place) if changed and self._writings else FileClock()
        with self._lock:
            for path in changed:
                writers = self._writers(path, times, clock)
                if not writers and path in moved:
                    writers = self._writers(moved[path], times, clock)
                for writing in writers:
                    for owner in writing.owners:
                        self._claimed.setdefault(owner, set()).add(path)
            self._writings = [
                each for each in self._writings if each.end_ns is None or each.end_ns > looked_ns
            ]

    def owners(self, changed_ns: int) -> set[str]:
        """Return the sessions with a call that may have made a change at this time."""
        with self._lock:
            waiting = tuple(self._writings)
        clock = file_clock(self._place) if waiting else FileClock()
        found = [each for each in waiting if each.covers(PathChange(changed_ns), clock)]
        return {owner for each in found for owner in each.owners}

    def has(self, owner: str) -> bool:
        """Return whether the session has changes to take."""
        return owner in self._claimed

    def take(self, owner: str) -> tuple[bytes, ...]:
        """Return the files that a session has changed since the last call."""
        with self._lock:
            return tuple(sorted(self._claimed.pop(owner, ())))

    def _writers(
        self, path: bytes, times: Mapping[bytes, int], clock: FileClock
    ) -> list[WriteClaim]:
        told = [each for each in self._writings if path in each.told]
        if told or not self._writings:
            return told
        change = PathChange(times[path]) if path in times else _change_of(self._root, path)
        return [each for each in self._writings if each.covers(change, clock)]


def _change_of(root: bytes, path: bytes) -> PathChange:
    """Return the time of the path's last change.

    For a missing path, it is the time of the nearest existing folder. Modification times are
    ignored, because `touch` and programs that unpack archives set them.
    """
    here, found = root[:-1], 0
    for name in (b"", *path.split(b"/")):
        here += b"/" + name if name else b""
        try:
            facts = os.lstat(here or b"/")
        except OSError:
            return PathChange(found, latest=True)
        found = facts.st_ctime_ns
        if not stat.S_ISDIR(facts.st_mode):
            return PathChange(found, latest=here != root + path)
    return PathChange(found)


class Copies:
    """The copies of files before a call's write, by session.

    Its methods block; threads may share it.
    """

    def __init__(self, state: WorktreeState, objects: Objects) -> None:
        self._state = state
        self._objects = objects
        self._before: dict[str, dict[bytes, TreeEntry | None]] = {}

    def note(self, owners: Iterable[str], path: bytes) -> None:
        """Copy a file that is about to change, if snapshots leave it out and it can be copied.

        Only the first copy is stored, until `drop` removes it.
        """
        if self._state.has(path):
            return
        with suppress(NotKeptError, OSError):
            found = self._state.copied(path)
            for owner in owners:
                self._before.setdefault(owner, {}).setdefault(path, found)

    def has(self, owner: str) -> bool:
        """Return whether a file was copied for the session."""
        return owner in self._before

    def ways(self, owner: str) -> dict[bytes, RestoreWay]:
        """Return the changes of the session's copied files that snapshots leave out.

        Files that cannot be copied are left out. The states in the result contain only these files.
        """
        noted = dict(self._before.get(owner, {}))
        before: dict[bytes, TreeEntry | None] = {}
        after: dict[bytes, TreeEntry | None] = {}
        for path in noted.keys() & self._state.apart.reasons.keys():
            with suppress(NotKeptError, OSError):
                after[path] = self._state.copied(path)
                before[path] = noted[path]
        way = RestoreWay(before=tree_of(before, self._objects), after=tree_of(after, self._objects))
        return dict.fromkeys(after, way)

    def drop(self, owner: str) -> None:
        """Remove a session's copies, once the changes that they show were reported."""
        self._before.pop(owner, None)
