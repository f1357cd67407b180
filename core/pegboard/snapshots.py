"""The protocol of snapshots: states of the files of a worktree, which a plugin stores.

The core reports when a step starts and when a tool call runs. A plugin takes the snapshots. With
each step it stores the changes that the step has made. The ids of states are defined by the
plugin.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Part, Unkept
from pegboard.schema.session import FileDiff, Session
from pegboard.storage.changes import Change


class RestoreWay(msgspec.Struct, frozen=True, kw_only=True):
    """A change of files from the state with the id `before` to the state with the id `after`."""

    before: str
    after: str


class StagedWay(NamedTuple):
    """A change of a file's entry in git's index, from the state `before` to the state `after`.

    `head` is the commit that was checked out before the change.
    """

    before: str
    after: str
    head: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was not restored, and the reason why not.

    Others have `changed` it since, its content is `lost`, or the write `failed`. A `secret` has no
    copy, so it cannot be restored. The reasons of `Unkept` mean that no snapshot has the file.

    The other reasons mean that only the file's entry in git's index was not restored. It was
    `restaged` since or `committed`, its staged content is no longer in the repository (`unstaged`),
    or the index was `locked`.
    """

    path: Path
    reason: (
        Literal["changed", "lost", "failed", "secret"]
        | Literal["restaged", "committed", "unstaged", "locked"]
        | Unkept
    )


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were copied before a restore replaced or deleted the originals.

    `command` prints a copy; replace FILE in it by the file's path in the worktree.
    """

    paths: tuple[Path, ...]
    command: str


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a restore: the `changed` files, and the files that were `left`.

    Files that already had the wanted state are in neither. `unknown` is the reason why the changes
    of some steps are unknown, or "". `replaced` are files among `changed` that were copied before.
    """

    changed: tuple[Path, ...] = ()
    left: tuple[Left, ...] = ()
    unknown: str = ""
    replaced: Replaced | None = None


class Writing(Protocol):
    """A tool call that may write files, to which the call's tool reports what it writes."""

    def tell(self, path: Path) -> None:
        """Record that the tool call has written this file."""
        ...

    def intend(self, path: Path) -> None:
        """Copy the file that the call is about to write, unless a state has it; this blocks."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Return a block in which the tool call waits; file changes in it are not the call's."""
        ...


class StepParts(Protocol):
    """The parts of a step's message, by id, while the step runs."""

    parts: dict[str, Part]

    def put(self, part: Part) -> None:
        """Store and publish a part that is new or changed."""
        ...


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """The data and functions of a run that a `Trail` needs to record the steps of the run.

    `turns` returns the session's current turns, and `new_id` returns an id for a new part. `change`
    queues a change for the storage, after the run's earlier changes. The trail calls `found` with
    the id of each new file state.
    """

    session: Session
    turns: Callable[[], Sequence[Turn]]
    new_id: Callable[[], str]
    change: Callable[[Change], None]
    found: Callable[[str], None]


class Trail(Protocol):
    """The recorder of the file changes of one run, step by step.

    A snapshot at the start of a step, taken during its request, also ends the previous step.
    `effect` is the effect of the called tool.
    """

    def snapshot_of(self, prompt_id: str) -> str | None:
        """Return the id of the current state if it is known without a snapshot, else None."""
        ...

    def begin(self, message: AssistantMessage, parts: StepParts) -> None:
        """Start a step."""
        ...

    def expect(self, effect: str) -> None:
        """Announce a call with this effect."""
        ...

    def calling(self, effect: str) -> AbstractAsyncContextManager[Writing | None]:
        """Return a block for a tool call; it yields None if the call itself cannot write files."""
        ...

    async def finish(self) -> None:
        """Wait until all earlier changes of files are known."""
        ...

    async def close(self) -> None:
        """Store the changes of the last step, at the end of the run."""
        ...


class Snapshots(Protocol):
    """The states of the files of one worktree; each App has one object.

    `pegboard.unstable.StepSnapshots` is a `Trail` for any snapshots that know which call made a
    change.
    """

    @property
    def refused(self) -> str:
        """The reason why no snapshots are taken (a home folder, too many files, no git), or ""."""
        ...

    def follow(self, run: Followed) -> Trail:
        """Return the recorder of a run's steps at once, without waiting."""
        ...

    async def track(self, *, fresh: bool = False) -> str | None:
        """Take a snapshot and return the id of the current state, or None if snapshots are refused.

        This is free if no file can have been written since. With `fresh` all files are examined,
        for changes by the user. Cancelling the caller does not stop the snapshot.
        """
        ...

    async def keep_copies(self, session_id: str, ways: Mapping[str, RestoreWay]) -> None:
        """Keep the file states that a copy of a session needs; `session_id` is the id of the copy.

        `ways` are the copy's file changes, by step. States that do not exist here, as after an
        import, cannot be kept.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Release the states of a session, which can then no longer be reverted."""
        ...

    async def diff(self, ways: Mapping[Path, RestoreWay]) -> tuple[FileDiff, ...]:
        """Return the changes of files as unified diffs, without unchanged files.

        Changes between deleted states are left out.
        """
        ...

    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        """Restore files that are in their state `before` to their state `after`.

        A file in neither state was changed by others and is left alone, as is a file whose state is
        no longer stored. A file is deleted only if `after` does not contain it. If both states are
        equal, the path is an empty folder, which is created again if the snapshots knew it.
        """
        ...

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Restore entries of git's index by their git names; return the entries not restored."""
        ...

    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        """Write files in these states into a copy of the worktree at `folder`.

        A file that its state does not contain is deleted there. Return the files whose state is no
        longer stored; they are not changed.

        :raises OSError: when a file cannot be written.
        """
        ...

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete states that are too old, over the disk quota, or of a directory without sessions.

        `directories` are the directories with sessions, of all projects. Return the number of freed
        bytes.
        """
        ...

    async def aclose(self) -> None:
        """Stop all work, including an unfinished snapshot."""
        ...
