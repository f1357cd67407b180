"""The snapshots protocol: states of the files of a worktree, which a plugin keeps.

The core says when to take one and whose work a change is. A state has an id of the plugin's own,
which is stored with the steps of a session.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from pegboard.schema.part import PatchPart, Staged, Unkept
from pegboard.schema.session import FileDiff, SessionSummary


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A change from one state of the files to another, by their ids."""

    before: str
    after: str


def ways_of(patch: PatchPart) -> dict[str, Way]:
    """The trees that a patch refers to, of files and of the index, by a name for each pair."""
    index = {
        f"{patch.id}_index{number}": Way(before=each.hash, after=each.after)
        for number, each in enumerate(patch.staged)
    }
    return {patch.id: Way(before=patch.hash, after=patch.after or patch.hash), **index}


class StagedWay(NamedTuple):
    """A change of a path in git's index; `head` was the commit before it."""

    before: str
    after: str
    head: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was not restored: `changed` by somebody since, its content `lost`, or `failed`.

    No copy is kept of a `secret`, so it can be neither restored nor, once removed, brought back.
    Of others no snapshot was made. Of some only the entry in git's index was not restored: it was
    `restaged` by somebody, `committed`, its staged content is gone from the repository
    (`unstaged`), or the index was `locked`.
    """

    path: Path
    reason: (
        Literal["changed", "lost", "failed", "secret"]
        | Literal["restaged", "committed", "unstaged", "locked"]
        | Unkept
    )


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for each file; those that were already in the wanted state are in neither.

    `unknown` says why the changes of some steps are unknown, else it is "".
    """

    changed: tuple[Path, ...] = ()
    left: tuple[Left, ...] = ()
    unknown: str = ""


class Writing(Protocol):
    """A call that may write files, while it runs."""

    def tell(self, path: Path) -> None:
        """The call has written this file."""
        ...

    def intend(self, path: Path) -> None:
        """The call is about to write this file; a copy is made if no state has it. It blocks."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """A block in which the call waits: changes meanwhile are not its work."""
        ...


class Snapshots(Protocol):
    """The states of the files of one worktree; one object per App.

    A method that is not `async` returns at once, but for `Writing.intend`.
    """

    @property
    def refused(self) -> str:
        """Why there are none (a home folder, too many files, no git), else ""."""
        ...

    @property
    def current(self) -> str | None:
        """The newest state, if nothing can have been written since; else None."""
        ...

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """The session and its ancestors: a subagent's changes are its callers' work, too."""
        ...

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> AbstractContextManager[Writing]:
        """A block for a call that may write files, for a session and its ancestors.

        With `tells` the call names the files that it writes. If it names none, or without
        `tells`, the next snapshot looks at all files.
        """
        ...

    async def track(self, *, fresh: bool = False) -> str | None:
        """Take a snapshot: the id of the current state, None where snapshots are refused.

        It costs nothing when nothing can have been written; `fresh` looks anyway, for changes of
        the user. Cancelling the caller does not stop it.
        """
        ...

    def claimed(self, session_id: str) -> bool:
        """Whether `take` or `take_staged` has something."""
        ...

    def take(self, session_id: str) -> tuple[Path, ...]:
        """The files that the session has changed, each given once."""
        ...

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """The session's changes of git's index, each given once."""
        ...

    async def copied(self, session_id: str) -> Mapping[Path, Way]:
        """The changes of files that no state has, but of which copies are kept; before `take`."""
        ...

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """The files of which no states are kept, with the reason."""
        ...

    async def keep(self, session_id: str, step: str, way: Way) -> None:
        """Keep both states of a step from being collected, until the session is forgotten."""
        ...

    async def keep_copies(self, session_id: str, ways: Mapping[str, Way]) -> None:
        """Keep the states for a copy of a session; `ways` are by step.

        States that are not here, as after an import, cannot be kept.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Release the states of a session, which can then not be reverted."""
        ...

    async def diff(self, ways: Mapping[Path, Way]) -> tuple[FileDiff, ...]:
        """The changes of files as unified diffs; files without a difference are left out.

        States that are no longer kept are left out.
        """
        ...

    async def restore(self, ways: Mapping[Path, Way]) -> Restored:
        """Restore files that are in their state of `before` to their state of `after`.

        A file in neither state has been changed by somebody: it is left, and so is one whose
        state is no longer kept. A file is deleted only where `after` has none.
        """
        ...

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Restore paths of git's index, as git names them; those that were not restored."""
        ...

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete states that are too old, beyond the quota, or of a directory without a session.

        `directories` are those that have one, of all projects. The answer is the freed bytes.
        """
        ...

    async def aclose(self) -> None:
        """Stop all work; an unfinished snapshot is given up."""
        ...


PATCH_LIMIT_CHARS = 1 << 18
"""Longer texts of all diffs of a session are left out; the counts are there all the same."""


def total(patches: Iterable[PatchPart]) -> dict[Path, Way]:
    """Each file's change from before the first patch to after the last one."""
    return {Path(file): way for file, way in total_by_name(patches).items()}


def total_by_name(changes: Iterable[PatchPart | Staged]) -> dict[str, Way]:
    """The same of files, or of paths of git's index, by the name that the changes have."""
    ways: dict[str, Way] = {}
    for change in changes:
        for file in change.files:
            first = ways[file].before if file in ways else change.hash
            ways[file] = Way(before=first, after=change.after or change.hash)
    return ways


def bounded(diffs: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """The diffs, without their texts when these are too long for an event."""
    if sum(len(diff.patch) for diff in diffs) <= PATCH_LIMIT_CHARS:
        return tuple(diffs)
    return tuple(replace(diff, patch="") for diff in diffs)


def summary_of(diffs: Sequence[FileDiff]) -> SessionSummary:
    """The counts of diffs."""
    return SessionSummary(
        additions=sum(diff.additions for diff in diffs),
        deletions=sum(diff.deletions for diff in diffs),
        files=len(diffs),
    )
