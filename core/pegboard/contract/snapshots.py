"""What keeps the states of a project's files, so that what a session did can be undone.

The core says when to look and whose work a change is; a plugin keeps the states. A state has an
id of the plugin's own, which is stored with the steps of a session and means nothing to others.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from pegboard.schema.part import Staged, Unkept
from pegboard.schema.session import FileDiff


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """From one state of the files to another, by their ids."""

    before: str
    after: str


class StagedWay(NamedTuple):
    """A path's way from one state of git's index to another; `head` was the commit before it."""

    before: str
    after: str
    head: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was left alone: `changed` by somebody since, its content `lost`, or `failed`.

    Of a `secret` no copy is kept: it can neither be put back nor, once it is removed, come again.
    Of others no snapshot was made. Of some only the entry in git's index was left: it was
    `restaged` by somebody, `committed`, the content that was staged is gone from the repository
    (`unstaged`), or the index was `locked`.
    """

    path: Path
    reason: (
        Literal["changed", "lost", "failed", "secret"]
        | Literal["restaged", "committed", "unstaged", "locked"]
        | Unkept
    )


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files; those that were as wanted already are in neither.

    `unknown` says why nobody knows what some steps changed, else it is "".
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
        """The call is about to write this file; if no state has it, a copy is made. It blocks."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """A block in which the call waits: what is changed meanwhile is not its work."""
        ...


class Snapshots(Protocol):
    """The states of the files of one worktree; one object per App.

    A method that is not `async` returns at once, but for `Writing.intend`.
    """

    refused: str
    """Why there are none (a home folder, too many files, no git), else ""."""

    @property
    def current(self) -> str | None:
        """The newest state, if nothing can have been written since; else None."""
        ...

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """The session and those above it: what a subagent writes is its callers' work, too."""
        ...

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> AbstractContextManager[Writing]:
        """A call that may write files, for a session and those above it.

        `tells`: what it writes it says; if it said nothing, or is no such call, the next look
        is at everything.
        """
        ...

    async def track(self, *, fresh: bool = False) -> str | None:
        """The state of the files as they are; None where snapshots are refused.

        It costs nothing when nothing can have been written; `fresh` looks all the same, for
        what the user has done since. A caller that is cancelled leaves it running.
        """
        ...

    def claimed(self, session_id: str) -> bool:
        """Whether there is something to `take`, or to `take_staged`."""
        ...

    def take(self, session_id: str) -> tuple[Path, ...]:
        """The files that the session is found to have changed, each told once."""
        ...

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """What the session is found to have done to git's index, told once."""
        ...

    async def copied(self, session_id: str) -> Mapping[Path, Way]:
        """The ways of files that no state has, but of which copies are kept; before `take`."""
        ...

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """Those of the files of which no states are kept, with the reason."""
        ...

    async def keep(self, session_id: str, step: str, way: Way) -> None:
        """Keep both states of a step from being collected, until the session is forgotten."""
        ...

    async def keep_copies(self, session_id: str, ways: Mapping[str, Way]) -> None:
        """Keep, for a copy of a session, what its steps refer to; `ways` are by step.

        What is not here, as after an import from elsewhere, cannot be kept.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Let go what a session could have reverted."""
        ...

    async def diff(self, ways: Mapping[Path, Way]) -> tuple[FileDiff, ...]:
        """What became of files, as unified diffs; files without a difference are left out.

        What cannot be looked up any more is left out.
        """
        ...

    async def restore(self, ways: Mapping[Path, Way]) -> Restored:
        """Put files that are as in `before` into their state of `after`.

        A file that is in neither state has been changed by somebody: it is left, and so is one
        of which a state is not known any more. A file goes only where `after` has none.
        """
        ...

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Put paths of git's index, as git names them, back; what was left as it is."""
        ...

    async def collect(self, directories: Collection[Path]) -> int:
        """Drop what is too old, beyond the quota, or of a directory without a session.

        `directories` are those that have one, of all projects. The answer is the bytes that were
        freed.
        """
        ...

    async def aclose(self) -> None:
        """Stop what runs; a snapshot in the making is given up."""
        ...
