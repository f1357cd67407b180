"""Files that no tree has, such as ignored ones, as they were before and after calls."""

from collections.abc import Iterable
from contextlib import suppress

from pegboard.storage import Way
from pegboard_plugins.snapshots.objects import Entry, Objects
from pegboard_plugins.snapshots.state import NotKeptError, WorktreeState
from pegboard_plugins.snapshots.tree import tree_of


class Copies:
    """What was found before a call's write, by the session whose work the call is.

    Its methods block; threads may share it.
    """

    def __init__(self, state: WorktreeState, objects: Objects) -> None:
        self._state = state
        self._objects = objects
        self._before: dict[str, dict[bytes, Entry | None]] = {}

    def note(self, owners: Iterable[str], path: bytes) -> None:
        """The file is about to be changed: copy it, if no tree has it and it can be.

        What was noted first counts, until it is dropped.
        """
        if self._state.has(path):
            return
        with suppress(NotKeptError, OSError):
            found = self._state.copied(path)
            for owner in owners:
                self._before.setdefault(owner, {}).setdefault(path, found)

    def has(self, owner: str) -> bool:
        """Whether something was noted for a session."""
        return owner in self._before

    def ways(self, owner: str) -> dict[bytes, Way]:
        """From what was noted for a session to what is there, for the files that no tree has.

        What cannot be copied is left out. The ways have trees of these files alone.
        """
        noted = dict(self._before.get(owner, {}))
        before: dict[bytes, Entry | None] = {}
        after: dict[bytes, Entry | None] = {}
        for path in noted.keys() & self._state.apart.reasons.keys():
            with suppress(NotKeptError, OSError):
                after[path] = self._state.copied(path)
                before[path] = noted[path]
        way = Way(before=tree_of(before, self._objects), after=tree_of(after, self._objects))
        return dict.fromkeys(after, way)

    def drop(self, owner: str) -> None:
        """What was noted for a session is told."""
        self._before.pop(owner, None)
