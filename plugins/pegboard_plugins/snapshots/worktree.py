"""Snapshots: states of a worktree's files, so that the changes of a session can be reverted.

States are trees in a shadow repository of git. Each worktree has one, in the folder of the user's
data. Changes that a tool or the kernel reports are recorded without a process of git. After other
calls, one process lists the differences from the user's index. The user's repository is never
changed, and none of its hooks or filters run.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Literal, ParamSpec, TypeVar

from pegboard import Workspace
from pegboard.schema.part import Staged, Unkept
from pegboard.schema.session import FileDiff
from pegboard.snapshots import Followed, Left, Replaced, Restored, RestoreWay, StagedWay, Trail
from pegboard.unstable import StepSnapshots, name_of
from pegboard_plugins.snapshots import restore as restoring
from pegboard_plugins.snapshots.claims import Claims, Copies, WriteClaim
from pegboard_plugins.snapshots.early import Lineages, refusal
from pegboard_plugins.snapshots.git import GitUnusableError, ShadowGit
from pegboard_plugins.snapshots.objects import NoRoomError, Objects, tree_of
from pegboard_plugins.snapshots.staging import restage
from pegboard_plugins.snapshots.state import TooMuchError, WorktreeState
from pegboard_plugins.snapshots.store import REPLACED, Store, drop_orphans, place_of
from pegboard_plugins.snapshots.watch import Watch

MOST_FAILURES = 3
MOST_WATCHED = 500
"""More files are found faster by git than one by one."""

RESERVE_BYTES = 128 << 20
"""So much of the disk is left to everything else, the database above all."""
_FULL = (
    "no snapshots are made while less than %d MiB are free on the disk of %s, so changes of files"
    " cannot be undone: make room, or run `pegboard session gc`"
)
_log = logging.getLogger("pegboard.snapshots")

_Reason = Literal["same", "changed", "lost", "failed", "secret"]
_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


class GitSnapshots:
    """The snapshots of one worktree, stored below `folder`.

    Secret files are in no tree, and are restored only from the user's repository.
    """

    def __init__(self, workspace: Workspace, *, folder: Path, env: Mapping[str, str]) -> None:
        self._place = place_of(workspace.worktree, folder)
        self._git = ShadowGit(workspace, self._place, env)
        self._objects = Objects(self._place / "objects", self._git.algorithm)
        self._store = Store(self._place, self._objects)
        self._state = WorktreeState(self._git, self._objects)
        self._root = workspace.worktree
        self._directory = workspace.directory
        self._root_bytes = os.fsencode(workspace.worktree) + b"/"
        self._copies = Copies(self._state, self._objects)
        self._claims = Claims(self._root_bytes, self._copies.note)
        self._lineages = Lineages()
        self._busy = threading.Lock()
        self._stirred = False
        self._told: set[bytes] = set()
        self._staged: dict[str, list[Staged]] = {}
        self._failures = 0
        self._full = False
        self._watch = Watch(self._root_bytes)
        self._trusted = 0
        self._unarmed = False
        self._upkeep: asyncio.Task[None] | None = None
        self.refused = refusal(workspace.worktree, env)

    def follow(self, run: Followed) -> Trail:
        """Start to take snapshots at the steps of a run."""
        return StepSnapshots(self, run)

    @property
    def current(self) -> str | None:
        """The id of the newest snapshot, or None if files may have changed since.

        While another thread takes a snapshot, the value is None too.
        """
        dirty = self._stirred or self._told or self.refused or self._busy.locked()
        return None if dirty else self._state.tree

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """Return the ids of the session and of the sessions above it, which share its changes."""
        return self._lineages.of(session_id, parent_id)

    @contextmanager
    def writing(self, owners: tuple[str, ...], *, tells: bool) -> Iterator[WriteClaim]:
        """Mark the `with` block as a call that may write files, for the sessions `owners`.

        If it `tells`, the call reports the files that it writes with `Writing.tell`. Without
        reports, the next snapshot compares all files.
        """
        writing = self._claims.begin(owners, tells=tells)
        try:
            yield writing
        finally:
            self._told |= writing.told
            if not (tells and writing.spoke):
                self._stirred = True
            writing.end_ns = time.time_ns()  # last: a look that begins now knows of the call

    async def track(self, *, fresh: bool = False) -> str | None:
        """Return the tree of the current files, or None if snapshots are refused.

        If no call can have written since the last tree, that tree is returned at once. With
        `fresh`, files are compared in any case, to find changes of the user. The snapshot goes on
        if the caller is cancelled.
        """
        if self.refused:
            return None
        if not fresh and self.current is not None:
            return self.current
        tree = await self._beside(self._track, fresh=fresh)
        if tree is not None and self._unarmed and self._upkeep is None:
            self._unarmed = False
            self._upkeep = asyncio.create_task(self._kept_up(), name="snapshots' upkeep")
            self._upkeep.add_done_callback(self._upkeep_ended)
        return tree

    def claimed(self, session_id: str) -> bool:
        """Return whether `take` or `take_staged` would return changes of the session."""
        return self._claims.has(session_id) or session_id in self._staged

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """Return the session's changes of git's index since the last call."""
        return tuple(self._staged.pop(session_id, ()))

    def take(self, session_id: str) -> tuple[Path, ...]:
        """Return the files that the session has changed since the last call."""
        self._copies.drop(session_id)
        return tuple(self._path(path) for path in self._claims.take(session_id))

    async def copied(self, session_id: str) -> Mapping[Path, RestoreWay]:
        """Return changes of files that snapshots leave out, from copies; call it before `take`."""
        noted = self._copies.has(session_id)
        ways = await asyncio.to_thread(self._copies.ways, session_id) if noted else {}
        return {self._path(path): way for path, way in ways.items()}

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """Return the files among `files` whose states are not stored, each with the reason."""
        reasons = self._state.apart.reasons
        named = ((file, os.fsencode(file).removeprefix(self._root_bytes)) for file in files)
        return {file: reasons[name] for file, name in named if name in reasons}

    async def keep(self, session_id: str, step: str, way: RestoreWay) -> None:
        """Protect both trees of a step from deletion until the session is forgotten."""
        await asyncio.to_thread(
            self._store.keep, session_id, step, before=way.before, after=way.after
        )

    async def keep_copies(self, session_id: str, ways: Mapping[str, RestoreWay]) -> None:
        """Protect the states that the steps of a copied session refer to; `ways` are by step.

        States that are not on this machine, as after an import, are skipped.
        """
        steps = {step: (way.before, way.after) for step, way in ways.items()}
        await asyncio.to_thread(self._store.keep_copies, session_id, steps)

    async def forget(self, session_id: str) -> None:
        """Drop the references of a session, so that the snapshots they protect can be deleted."""
        await asyncio.to_thread(self._store.forget, session_id)

    async def diff(self, ways: Mapping[Path, RestoreWay]) -> tuple[FileDiff, ...]:
        """Return the changes of files as unified diffs, without unchanged files.

        Binary files, very long files and secrets have neither text nor counts. Files with deleted
        states are left out.
        """
        return await self._beside(self._diff, ways)

    async def restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        """Restore files from the state `before` to the state `after` of their `RestoreWay`.

        A file in neither state has been changed since, and is left as it is. So is a file with a
        state that is no longer stored. A file is removed only if `after` does not contain it.
        Secret files are restored only from the user's repository, and are never removed.
        """
        return await self._beside(self._restore, ways)

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Restore paths of git's index; return the paths that were not restored, with reasons."""
        return await self._beside(self._restage, ways)

    async def copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        """Write files to a copy of the worktree; return the files whose content is not stored."""
        return await self._beside(self._copy_out, states, folder)

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete snapshots that are old, exceed the quota, or belong to unused directories."""
        own = await asyncio.to_thread(self._store.collect)
        return own + await asyncio.to_thread(drop_orphans, self._place.parent, directories)

    async def aclose(self) -> None:
        """Stop the running processes and tasks; a snapshot in progress is abandoned."""
        await self._git.stop()
        if self._upkeep is not None:
            await asyncio.wait((self._upkeep,), timeout=1.0)
        await asyncio.to_thread(self._watch.close)  # takes the kernel 20 ms

    async def _kept_up(self) -> None:
        """Watch the worktree's folders, and once a day delete old snapshots."""
        await self._beside(self._arm)
        if self._store.is_due():
            await asyncio.to_thread(self._store.collect)

    async def _beside(
        self, work: Callable[_Arguments, _Value], *args: _Arguments.args, **names: _Arguments.kwargs
    ) -> _Value:
        """Run `work` in a thread; the processes of git run on this event loop."""
        self._git.loop = asyncio.get_running_loop()
        return await asyncio.to_thread(work, *args, **names)

    def _upkeep_ended(self, ended: "asyncio.Task[None]") -> None:
        self._upkeep = None
        if not ended.cancelled():
            ended.exception()

    def _track(self, *, fresh: bool) -> str | None:
        with self._busy:
            stirred, self._stirred = self._stirred, False
            told, self._told = self._told, set()
            looked_ns = time.time_ns()
            try:
                with self._objects.sparing(RESERVE_BYTES):
                    self._state.freshen()
                    changed = self._looked(told, everywhere=fresh or stirred)
            except TooMuchError as error:
                self.refused = str(error)
                return None
            except NoRoomError:
                self._stirred, self._trusted = True, 0
                if not self._full:
                    _log.warning(_FULL, RESERVE_BYTES >> 20, self._place)
                self._full = True
                return None
            except OSError as error:
                self._stirred, self._trusted = True, 0
                self._failures += 1
                if self._failures >= MOST_FAILURES or isinstance(error, GitUnusableError):
                    self.refused = f"git cannot be used: {error}"
                return None
            self._failures, self._full = 0, False
            self._share_index()
            self._claims.share(
                changed, self._state.apart.times, self._state.moved, looked_ns=looked_ns
            )
            return self._state.tree

    def _share_index(self) -> None:
        """Attribute a change of git's index to the sessions that may have caused it."""
        change, self._state.staged = self._state.staged, None
        if change is not None:
            changed_ns = self._git.index_state()[:1] or (0,)
            for owner in self._claims.owners(changed_ns[0]):
                self._staged.setdefault(owner, []).append(change)

    def _looked(self, told: set[bytes], *, everywhere: bool) -> frozenset[bytes]:
        if self._state.tree is None:
            self._git.prepare()
        elif not everywhere:
            return self._state.look_at(told)
        # Asked in any case: what has happened until here is in the look, and not told again.
        generation, watched = self._watch.generation, self._watch.changed()
        known = generation and generation == self._trusted and not self._state.indexed_anew
        if known and watched is not None and len(watched) <= MOST_WATCHED:
            return self._state.look_at(told, watched)
        # Short work ends with one look; it is not made to wait for what the next one saves.
        self._trusted, self._unarmed = 0, self._state.tree is not None
        changed = self._state.look(told)
        self._trusted = generation
        return changed

    def _arm(self) -> None:
        with self._busy:
            folders = self._state.folders
        self._watch.arm(folders, self._git.ignored)

    def _diff(self, ways: Mapping[Path, RestoreWay]) -> tuple[FileDiff, ...]:
        moves, _ = restoring.moves_of(ways, self._root, self._objects)
        contents = self._contents(moves, both=True)
        return tuple(
            restoring.file_diff(move, contents) for move in moves if move.expected != move.wanted
        )

    def _copy_out(self, states: Mapping[Path, str], folder: Path) -> tuple[Path, ...]:
        moves, left = restoring.moves_to(states, self._root, self._objects)
        lost = restoring.put_out(
            folder, moves, self._contents(moves, both=False), self._state.traits
        )
        return (*(each.path for each in left), *map(self._path, lost))

    def _restore(self, ways: Mapping[Path, RestoreWay]) -> Restored:
        with self._busy:
            moves, left = restoring.moves_of(ways, self._root, self._objects)
            contents = self._contents(moves, both=False)
            try:
                tree, copied = self._copied(moves)
            except OSError:  # without copies nothing is replaced
                left += [Left(path=self._path(move.path), reason="failed") for move in moves]
                return Restored(left=tuple(left))
            changed = []
            for move in moves:
                reason = self._step(move, contents)
                if reason is None:
                    changed.append(self._path(move.path))
                    self._told.add(move.path)
                elif reason != "same":
                    left.append(Left(path=self._path(move.path), reason=reason))
            paths = tuple(sorted(path for path in changed if path in copied))
            command = f"git --git-dir={quote(str(self._place))} show {tree}:FILE"
            replaced = Replaced(paths=paths, command=command) if paths else None
            return Restored(changed=tuple(changed), left=tuple(left), replaced=replaced)

    def _copied(self, moves: Iterable[restoring.Move]) -> tuple[str, frozenset[Path]]:
        """Take a snapshot of the files that the moves replace; return its id and the paths."""
        copies = {
            move.path: move.expected
            for move in moves
            if move.expected not in (None, move.wanted)
            and not move.is_secret
            and self._state.copy(move.path) == move.expected
            and self._objects.has(move.expected.oid)
        }
        tree = tree_of(copies, self._objects)
        if copies:
            self._store.keep(REPLACED, tree, before=tree, after=tree)
        return tree, frozenset(self._path(path) for path in copies)

    def _restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        with self._busy:
            try:
                return restage(self._git, self._objects, ways)
            except OSError:
                return tuple(
                    Left(path=self._root / name_of(path), reason="locked") for path in ways
                )

    def _step(self, move: restoring.Move, contents: Mapping[bytes, bytes]) -> _Reason | None:
        """Restore one file; return None, or the reason why the file was not changed."""
        found = self._state.entry(move.path)
        if found == move.wanted:
            if found is None:
                with suppress(OSError):
                    restoring.make_empty(self._root, move.path, self._state.traits)
            return "same"
        if found != move.expected:
            return "changed"
        content = b"" if move.wanted is None else contents.get(move.wanted.oid)
        is_secret = move.is_secret
        if content is None or (is_secret and move.wanted is None):
            return "secret" if is_secret else "lost"
        try:
            traits = self._state.traits
            restoring.put_back(self._root, move, content, stays=self._directory, traits=traits)
        except OSError:
            return "failed"
        return None

    def _contents(self, moves: Sequence[restoring.Move], *, both: bool) -> dict[bytes, bytes]:
        """Return the contents after the moves by object id; with `both`, also those before."""
        different = [move for move in moves if move.expected != move.wanted]
        secrets = {move.wanted.oid for move in different if move.is_secret and move.wanted}
        if both:  # to be shown
            different = [move for move in different if not move.is_secret]
        entries = [move.wanted for move in different]
        if both:
            entries += [move.expected for move in different]
        found: dict[bytes, bytes] = {}
        elsewhere = set()
        for oid in {entry.oid for entry in entries if entry is not None}:
            content = self._objects.get(oid)
            if content is None:
                elsewhere.add(oid)
            else:
                found[oid] = content
        users: Mapping[bytes, bytes] = {}
        with suppress(OSError):  # the user's repository cannot be read
            users = self._git.contents(tuple(elsewhere))
        for oid, content in users.items():
            # Ours from here on: the user's repository may drop it, and it is soon asked for again.
            found[oid] = content
            if oid not in secrets:
                self._objects.put("blob", content)
        return found

    def _path(self, path: bytes) -> Path:
        return self._root / os.fsdecode(path)
