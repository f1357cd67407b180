"""The snapshots protocol: states of the files of a worktree, which a plugin keeps.

The core says when a step begins and when a call works; a plugin takes the states, and stores with
the step whose work a change is. A state has an id of the plugin's own.
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
    """A change from one state of the files to another, by their ids."""

    before: str
    after: str


class StagedWay(NamedTuple):
    """A change of a path in git's index; `head` was the commit before it."""

    before: str
    after: str
    head: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was not restored: `changed` by others since, its content `lost`, or `failed`.

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


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were copied before they were replaced or deleted.

    `command` prints a copy, with the file's path in the worktree for FILE.
    """

    paths: tuple[Path, ...]
    command: str


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for each file; those that were already in the wanted state are in neither.

    `unknown` says why the changes of some steps are unknown, else it is "". `replaced` are files
    among `changed`.
    """

    changed: tuple[Path, ...] = ()
    left: tuple[Left, ...] = ()
    unknown: str = ""
    replaced: Replaced | None = None


class Writing(Protocol):
    """A call that may write files, while it runs."""

    def tell(self, path: Path) -> None:
        """Record that the call has written this file."""
        ...

    def intend(self, path: Path) -> None:
        """Copy this file, which the call is about to write, unless a state has it; blocks."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Return a block in which the call waits: changes meanwhile are not its work."""
        ...


class StepParts(Protocol):
    """The parts of a step's message, by id, while it is made."""

    parts: dict[str, Part]

    def put(self, part: Part) -> None:
        """Store and publish a part that is new or different."""
        ...


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose steps a trail follows.

    `turns` gives the session's turns as they are, `new_id` an id for a new part. `change` stores a
    change behind those that the run has made, `found` says in which state the files are.
    """

    session: Session
    turns: Callable[[], Sequence[Turn]]
    new_id: Callable[[], str]
    change: Callable[[Change], None]
    found: Callable[[str], None]


class Trail(Protocol):
    """The recorder of the steps of one run.

    A snapshot at the start of a step, beside its request, ends the step before, too. `effect` is
    that of the tool that is called.
    """

    def snapshot_of(self, prompt_id: str) -> str | None:
        """Return the current state if it is known without a snapshot, None after a new prompt."""
        ...

    def begin(self, message: AssistantMessage, parts: StepParts) -> None:
        """Begin a step."""
        ...

    def expect(self, effect: str) -> None:
        """Announce a call."""
        ...

    def calling(self, effect: str) -> AbstractAsyncContextManager[Writing | None]:
        """Return a block for a tool call; None in it if the call cannot write a file itself."""
        ...

    async def finish(self) -> None:
        """Return when all earlier changes of files are known."""
        ...

    async def close(self) -> None:
        """End the run: store the changes of its last step."""
        ...


class Snapshots(Protocol):
    """The states of the files of one worktree; one object per App.

    `pegboard.unstable.StepSnapshots` is a `Trail` for any snapshots that can tell whose work a
    change is.
    """

    @property
    def refused(self) -> str:
        """Why no snapshots are taken (a home folder, too many files, no git), else ""."""
        ...

    def follow(self, run: Followed) -> Trail:
        """Start following the steps of a run; it returns at once."""
        ...

    async def track(self, *, fresh: bool = False) -> str | None:
        """Take a snapshot: the id of the current state, None where snapshots are refused.

        It costs nothing when nothing can have been written; `fresh` looks anyway, for changes of
        the user. Cancelling the caller does not stop it.
        """
        ...

    async def keep_copies(self, session_id: str, ways: Mapping[str, RestoreWay]) -> None:
        """Keep the states for a copy of a session; `ways` are by step.

        States that are not here, as after an import, cannot be kept.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Release the states of a session, which can then not be reverted."""
        ...

    async def diff(self, ways: Mapping[Path, RestoreWay]) -> tuple[FileDiff, ...]:
        """Return the changes of files as unified diffs, without unchanged files.

        States that were deleted are left out.
        """
        ...

    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        """Restore files that are in their state of `before` to their state of `after`.

        A file in neither state has been changed by somebody: it is left, and so is one whose
        state is no longer kept. A file is deleted only where `after` has none. A path whose states
        are the same is that of an empty folder, which is made again if snapshots knew it.
        """
        ...

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Restore paths of git's index, as git names them; return those that were not restored."""
        ...

    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        """Write files as they are in these states into a copy of the worktree at `folder`.

        A file that its state does not have is deleted there. The answer are the files of which
        the state is no longer kept; they are as they were.

        :raises OSError: when a file cannot be written.
        """
        ...

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete states that are too old, beyond the quota, or of a directory without a session.

        `directories` are those that have one, of all projects. The answer is the freed bytes.
        """
        ...

    async def aclose(self) -> None:
        """Stop all work; an unfinished snapshot is given up."""
        ...
