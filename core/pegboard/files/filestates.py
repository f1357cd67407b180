"""The protocol of snapshots that follow the steps of a run."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pegboard.schema.part import Staged, Unkept
from pegboard.snapshots import RestoreWay, Snapshots, Writing


class States(Snapshots, Protocol):
    """Snapshots for `StepSnapshots`, which says when to take them and whose work a change is.

    A method that is not `async` returns at once, but for `Writing.intend`.
    """

    @property
    def current(self) -> str | None:
        """The newest state if nothing can have been written since, else None."""
        ...

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Return the session and its ancestors; a subagent's changes count as its callers' work."""
        ...

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> AbstractContextManager[Writing]:
        """Return a block for a call that may write files, for a session and its ancestors.

        With `tells` the call names the files that it writes. If it names none, or without
        `tells`, the next snapshot looks at all files.
        """
        ...

    def claimed(self, session_id: str) -> bool:
        """Return whether `take` or `take_staged` has something."""
        ...

    def take(self, session_id: str) -> tuple[Path, ...]:
        """Return the files that the session has changed, each only once."""
        ...

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """Return the session's changes of git's index, each only once."""
        ...

    async def copied(self, session_id: str) -> Mapping[Path, RestoreWay]:
        """Return the changes of files that only copies hold; call it before `take`."""
        ...

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """Return the files of which no states are stored, with the reason."""
        ...

    async def keep(self, session_id: str, step: str, way: RestoreWay) -> None:
        """Keep both states of a step from being collected, until the session is forgotten."""
        ...
