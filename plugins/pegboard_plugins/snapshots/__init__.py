"""Snapshots of the project's files, so that the changes of a session can be reverted.

The first snapshot is taken when it is needed, and not at the start of the program.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pegboard.unstable
from pegboard import Workspace, hookimpl
from pegboard.schema.config import Config
from pegboard.schema.part import Staged, Unkept
from pegboard.schema.session import FileDiff
from pegboard_plugins.snapshots.early import Lineages, refusal

if TYPE_CHECKING:
    from pegboard.app import UserFolders
    from pegboard.snapshots import (
        Followed,
        Left,
        Restored,
        RestoreWay,
        Snapshots,
        StagedWay,
        Trail,
        Writing,
    )
    from pegboard_plugins.snapshots.worktree import GitSnapshots


@hookimpl
async def register_snapshots(
    config: Config, workspace: "Workspace", places: "UserFolders", env: Mapping[str, str]
) -> "Snapshots | None":
    """Return snapshots in a shadow repository of git, or None if the user disables snapshots."""
    if not config.snapshot:
        return None
    instructions = config.instructions
    return LateSnapshots(workspace, places=places, env=env, instructions=instructions)


class LateSnapshots:
    """The `GitSnapshots` of a worktree, created when first used, so that Pegboard starts faster."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        places: "UserFolders",
        env: Mapping[str, str],
        instructions: Iterable[str],
    ) -> None:
        self._workspace = workspace
        self._places = places
        self._instructions = instructions
        self._env = env
        self._lineages = Lineages()
        self._made: GitSnapshots | None = None

    def _git(self) -> "GitSnapshots":
        if self._made is None:
            from pegboard_plugins.snapshots.worktree import GitSnapshots

            self._made = GitSnapshots(self._workspace, folder=self._places.snapshots, env=self._env)
        return self._made

    @property
    def refused(self) -> str:
        """The reason why no snapshots of the worktree are taken; "" if they are taken."""
        return self._made.refused if self._made else refusal(self._workspace.worktree, self._env)

    def follow(self, run: "Followed") -> "Trail":
        """Start to take snapshots at the steps of a run."""
        from pegboard.unstable import StepSnapshots

        return StepSnapshots(self, run)

    @property
    def current(self) -> str | None:
        """The id of the newest snapshot; None without one, or if files may have changed since."""
        return self._made.current if self._made else None

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Return the session's id and the ids of the sessions above it."""
        return self._lineages.of(session_id, parent_id)

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> "AbstractContextManager[Writing]":
        """Return a context manager for a call that may write files.

        `owners` are its session and the ancestors. With `tells`, the call reports the files that it
        writes.
        """
        return self._git().writing(owners, tells=tells)

    async def track(self, *, fresh: bool = False) -> str | None:
        """Return the tree of the current files, or None if snapshots are refused."""
        return await self._git().track(fresh=fresh)

    def claimed(self, session_id: str) -> bool:
        """Return whether the session has changes to take."""
        return self._made is not None and self._made.claimed(session_id)

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """Return the session's changes of git's index since the last call."""
        return self._git().take_staged(session_id)

    def take(self, session_id: str) -> tuple[Path, ...]:
        """Return the files that the session has changed since the last call.

        Instructions and skills among them are recorded as not yet accepted by the user.
        """
        changed = self._git().take(session_id)
        documents = [
            path
            for path in changed
            if pegboard.unstable.instructs(path, self._instructions)
            or path in pegboard.unstable.imported_documents(session_id)
        ]
        if documents:
            from pegboard_plugins.shared.frontend import UnseenDocuments  # few steps change one

            UnseenDocuments(self._places.unseen_documents).note(documents)
        return changed

    async def copied(self, session_id: str) -> "Mapping[Path, RestoreWay]":
        """Return the changes of copied files, which snapshots leave out."""
        return await self._git().copied(session_id)

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """Return the files among `files` whose states are not stored, each with the reason."""
        return self._git().unkept(files)

    async def keep(self, session_id: str, step: str, way: "RestoreWay") -> None:
        """Protect the snapshots before and after a step from deletion."""
        await self._git().keep(session_id, step, way)

    async def keep_copies(self, session_id: str, ways: "Mapping[str, RestoreWay]") -> None:
        """Protect the states that the steps of a copied session refer to."""
        await self._git().keep_copies(session_id, ways)

    async def forget(self, session_id: str) -> None:
        """Drop the references of a session, so that the snapshots they protect can be deleted."""
        await self._git().forget(session_id)

    async def diff(self, ways: "Mapping[Path, RestoreWay]") -> tuple[FileDiff, ...]:
        """Return the changes of files as unified diffs."""
        return await self._git().diff(ways)

    async def restore(self, ways: "Mapping[Path, RestoreWay]") -> "Restored":
        """Restore files from the state `before` to the state `after` of their `RestoreWay`."""
        return await self._git().restore(ways)

    async def restage(self, ways: "Mapping[str, StagedWay]") -> "tuple[Left, ...]":
        """Restore paths of git's index; return the paths that were not restored, with reasons."""
        return await self._git().restage(ways)

    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        """Write files in these states to `folder`, a copy of the worktree.

        Return the files whose content is no longer stored.
        """
        return await self._git().copy_out(states, folder)

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete old snapshots; return the number of freed bytes."""
        return await self._git().collect(directories)

    async def aclose(self) -> None:
        """Stop the running work, if a snapshot was taken."""
        if self._made is not None:
            await self._made.aclose()
