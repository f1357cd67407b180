"""The protocol of snapshots that are taken at the steps of a run."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pegboard.schema.part import Staged, Unkept
from pegboard.snapshots import RestoreWay, Snapshots, Writing


class States(Snapshots, Protocol):
    """The protocol of snapshots that also know which session changed a file.

    `StepSnapshots` decides when to take them. Methods that are not `async` return at once, except
    `Writing.intend`.
    """

    @property
    def current(self) -> str | None:
        """The id of the newest state if no file can have changed since then, else None."""
        ...

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Return the ids of the session and its ancestors; all of them own its file changes."""
        ...

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> AbstractContextManager[Writing]:
        """Return a context manager for a call that may write files; `owners` are session ids.

        With `tells` the call reports each file that it writes. If it reports none, or without
        `tells`, the next snapshot examines all files.
        """
        ...

    def claimed(self, session_id: str) -> bool:
        """Return whether the session has changes that `take` or `take_staged` would return."""
        ...

    def take(self, session_id: str) -> tuple[Path, ...]:
        """Return the files that the session has changed; later calls return only new changes."""
        ...

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """Return the session's changes of git's index; later calls return only new changes."""
        ...

    async def copied(self, session_id: str) -> Mapping[Path, RestoreWay]:
        """Return the changes of files that no snapshot stores, but that were copied in advance.

        Call it before `take`.
        """
        ...

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """Return the files that no snapshot stores, each with the reason why none does."""
        ...

    async def keep(self, session_id: str, step: str, way: RestoreWay) -> None:
        """Protect the two states of a change, `way`, from deletion until the session is forgotten.

        `step` is the name of the change in the session.
        """
        ...
