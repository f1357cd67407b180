"""The snapshots of a run, one at each step, and the message parts with the changed files.

The snapshot at the start of a step is also the end of the previous step. It starts after the model
request has been sent, and a tool call that may write files waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.files.storednames import name_of, stored_name
from pegboard.kit.threads import shield
from pegboard.schema.event import SessionDiffed
from pegboard.schema.message import AssistantMessage, Turn, UserMessage, UserSummary
from pegboard.schema.part import (
    Completed,
    Part,
    PatchPart,
    Staged,
    StepFinishPart,
    StepStartPart,
    ToolPart,
)
from pegboard.schema.session import FileDiff, SessionSummary, title_from
from pegboard.snapshots import Followed, RestoreWay, StepParts, Writing
from pegboard.storage.changes import ChangeSession, PublishEvent, PutMessage, PutPart, Tell

if TYPE_CHECKING:
    from pegboard.files.filestates import States

COPIED_LIMIT_BYTES = 50 << 20
"""Of a larger file no copy is made: snapshots keep only its id."""
HEAD_START_S = 0.05
"""How long the snapshot waits, so that the request is sent first."""
CLOSE_LIMIT_S = 10.0
"""How long the end of a run waits for its last snapshot."""
STOP_LIMIT_S = 2.0
"""The same limit once the run is aborted, however often, and a user waits."""


class _Step(msgspec.Struct):
    """One step of a run: its message, the message's parts, and the id of the snapshot at its start.

    `tree` is None until the snapshot is taken.
    """

    message: AssistantMessage
    parts: StepParts
    tree: str | None = None


class StepSnapshots:
    """The recorder (`Trail`) of the steps of one run, which takes a snapshot at each step."""

    def __init__(self, states: "States", run: Followed) -> None:
        self._run = run
        self._states = states
        self._owners = states.lineage(run.session.id, run.session.parent_id)
        self._step: _Step | None = None
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._go = asyncio.Event()
        self._wrote = False
        self._working = 0
        self._patches: list[PatchPart] = []
        self._prompts: dict[str, str] = {}

    def snapshot_of(self, prompt_id: str) -> str | None:
        """Return the id of the current file state if no new snapshot is needed, or None."""
        if self._working or self._step is None or self._step.message.parent_id != prompt_id:
            return None
        return self._states.current

    def begin(self, message: AssistantMessage, parts: StepParts) -> None:
        """Start the snapshot of a step while its request runs."""
        self._prompts[message.id] = message.parent_id
        known = self.snapshot_of(message.parent_id)
        earlier, self._step = self._step, _Step(message, parts, known)
        self._go.clear()
        self._task = asyncio.create_task(
            self._take(self._step, earlier, self._task), name="snapshot"
        )
        self._tasks.add(self._task)
        self._task.add_done_callback(self._taken)

    def _taken(self, ended: "asyncio.Task[None]") -> None:
        self._tasks.discard(ended)
        if not ended.cancelled():
            ended.exception()

    def expect(self, effect: str) -> None:
        """Start the snapshot of the step now if a tool call with this effect may write files."""
        if effect != "reads":
            self._go.set()

    @asynccontextmanager
    async def calling(self, effect: str) -> AsyncIterator[Writing | None]:
        """Run a tool call in a block; a call that may write first waits for the step's snapshot."""
        if effect != "reads":
            await self.finish()
        if effect in ("reads", "delegates"):
            yield None
            return
        self._wrote = True
        with self._states.writing(self._owners, tells=effect == "edits") as writing:
            self._working += 1
            try:
                yield writing
            finally:
                self._working -= 1

    async def finish(self) -> None:
        """Wait for the step's snapshot, so that all earlier changes are known."""
        if self._task is not None:
            self._go.set()
            if not self._task.done():
                await asyncio.wait((self._task,))  # git has a time limit of its own

    async def close(self) -> None:
        """Store the file changes of the last step, if any; the end of the run waits for this."""
        task, step = self._task, self._step
        if task is None or step is None:
            return
        if self._patches or self._wrote or self._states.claimed(self._run.session.id):
            self._go.set()
        else:
            for each in self._tasks:
                each.cancel()
        own = asyncio.current_task()
        stopped = own is not None and own.cancelling()
        work = asyncio.create_task(self._ended(task, step), name="last snapshot")
        self._task = work
        try:
            await asyncio.wait((work,), timeout=0 if stopped else CLOSE_LIMIT_S - STOP_LIMIT_S)
        finally:
            with suppress(TimeoutError):
                await shield(asyncio.wait_for(work, STOP_LIMIT_S))
            for each in self._tasks:
                each.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _ended(self, task: "asyncio.Task[None]", step: _Step) -> None:
        """Store the file changes of the run's last step.

        First wait for the snapshot at the start of this step, then take one at its end.
        """
        await asyncio.wait({task, *self._tasks})
        tree = None if task.cancelled() else await self._states.track()
        if tree is not None:
            await self._settle(step, tree)
        await self._summarise()

    async def _summarise(self) -> None:
        """Publish the file changes of the session and of each prompt, once per run.

        If the run changed no files, the event is published but not stored, because an equal event
        is already stored.
        """
        run, session_id, answered = self._run, self._run.session.id, set(self._prompts.values())
        patches = {
            part.id: (turn.prompt_id, part)
            for turn in run.turns()
            for part in turn.parts
            if isinstance(part, PatchPart)
        }
        patches |= {each.id: (self._prompts[each.message_id], each) for each in self._patches}
        ways = total(part for _, part in patches.values())
        diffs = await self._diffs(ways)
        diffed = SessionDiffed(session_id=session_id, diff=diffs)
        if self._patches:
            run.change(ChangeSession(session_id=session_id, summary=summary_of(diffs)))
        run.change(PublishEvent(diffed) if self._patches else Tell(diffed))
        for turn in run.turns():
            if not isinstance(turn.info, UserMessage) or turn.info.id not in answered:
                continue
            own = total(part for prompt_id, part in patches.values() if prompt_id == turn.info.id)
            changed = diffs if own == ways else await self._diffs(own)
            summary = UserSummary(diffs=changed, title=title_from("\n".join(turn.own_texts)))
            if summary != turn.info.summary:
                run.change(PutMessage(replace(turn.info, summary=summary)))

    async def _diffs(self, ways: Mapping[Path, RestoreWay]) -> tuple[FileDiff, ...]:
        return bounded(await self._states.diff(ways)) if ways else ()

    async def _take(
        self, step: _Step, earlier: _Step | None, before: "asyncio.Task[None] | None"
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,))  # git has a time limit of its own
        fresh = earlier is None or earlier.message.parent_id != step.message.parent_id
        if fresh or self._states.current is None:
            await self._head_start()
        tree = await self._states.track(fresh=fresh)
        if tree is None:
            return
        step.tree = tree
        self._run.found(tree)
        start = _part(step.parts, StepStartPart)
        if start is not None and start.snapshot != tree and self._is_there(step):
            self._amend(step, replace(start, snapshot=tree))
        if earlier is not None:
            await self._settle(earlier, tree)

    async def _head_start(self) -> None:
        try:
            async with asyncio.timeout(HEAD_START_S):
                await self._go.wait()
        except TimeoutError:
            return

    async def _settle(self, step: _Step, tree: str) -> None:
        """Store a step's file changes as patch parts; `tree` is the snapshot at its end."""
        self._wrote = False
        states = self._states
        copied = await states.copied(self._run.session.id)
        changed = states.take(self._run.session.id)
        left = states.unkept(changed)
        if not self._is_there(step):
            return
        finish = _part(step.parts, StepFinishPart)
        if finish is not None and finish.snapshot != tree:
            self._amend(step, replace(finish, snapshot=tree))
        index = states.take_staged(self._run.session.id)
        if not (changed or index) or step.tree is None:
            return
        kept = tuple(path for path in left if path in copied)
        others = tuple(path for path in changed if path not in left)
        named = {
            stored_name(str(path)): reason for path, reason in left.items() if path not in copied
        }
        patches = []
        if others or named or index:
            way = RestoreWay(before=step.tree, after=tree)
            patches.append(replace(self._patch(step, way, others), left=named, staged=index))
        if kept:
            patches.append(self._patch(step, copied[kept[0]], kept))
        # No await since `take`, so no cancellation can lose the patches.
        self._patches += patches
        for patch in patches:
            step.parts.put(patch)
        for name, way in ((n, w) for patch in patches for n, w in ways_of(patch).items()):
            await states.keep(self._run.session.id, name, way)

    def _patch(self, step: _Step, way: RestoreWay, files: Iterable[Path]) -> PatchPart:
        return PatchPart(
            id=self._run.new_id(),
            session_id=step.message.session_id,
            message_id=step.message.id,
            hash=way.before,
            files=tuple(stored_name(str(file)) for file in files),
            after=way.after,
        )

    def _amend(self, step: _Step, part: StepStartPart | StepFinishPart) -> None:
        """Store a part that received its snapshot id late, without an event.

        Clients count steps and costs by the events of these parts.
        """
        step.parts.parts[part.id] = part
        self._run.change(PutPart(part, publish=False))

    def _is_there(self, step: _Step) -> bool:
        """Return whether the step's message still exists in the history.

        The message of a request that was too long is deleted.
        """
        return any(turn.info.id == step.message.id for turn in reversed(self._run.turns()))


_P = TypeVar("_P", StepStartPart, StepFinishPart)


def _part(step: StepParts, kind: type[_P]) -> _P | None:
    return next((part for part in step.parts.values() if isinstance(part, kind)), None)


def ways_of(patch: PatchPart) -> dict[str, RestoreWay]:
    """Return the ids of the snapshots before and after a patch, by the patch's id.

    Each change of git's index has its own entry, under the patch's id with `_indexN`.
    """
    index = {
        f"{patch.id}_index{number}": RestoreWay(before=each.hash, after=each.after)
        for number, each in enumerate(patch.staged)
    }
    return {patch.id: RestoreWay(before=patch.hash, after=patch.after or patch.hash), **index}


PATCH_LIMIT_CHARS = 1 << 18
"""Longer texts of all diffs of a session are left out; the counts are there all the same."""


def total(patches: Iterable[PatchPart]) -> dict[Path, RestoreWay]:
    """Return for each file the ids of the snapshots before its first and after its last change."""
    return {Path(name_of(file)): way for file, way in total_by_name(patches).items()}


def changed_files(turns: Iterable[Turn]) -> frozenset[Path]:
    """Return the paths, with links resolved, of the files that a session has changed.

    These are the files of the patches of its steps and subagents, and the files edited in the
    current step. The disk is not read.
    """
    return frozenset(path for turn in turns for part in turn.parts for path in _changed_by(part))


def _changed_by(part: Part) -> Iterator[Path]:
    match part:
        case PatchPart(files=files):
            yield from (Path(name_of(file)) for file in files)
        case ToolPart(state=Completed(metadata={"filediff": {"file": str(file)}})):
            yield Path(file)
        case _:
            pass


def total_by_name(changes: Iterable[PatchPart | Staged]) -> dict[str, RestoreWay]:
    """Return for each file name the ids of the snapshots around all changes of the file."""
    ways: dict[str, RestoreWay] = {}
    for change in changes:
        for file in change.files:
            first = ways[file].before if file in ways else change.hash
            ways[file] = RestoreWay(before=first, after=change.after or change.hash)
    return ways


def bounded(diffs: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """Return the diffs, without their texts if these are too long for an event."""
    if sum(len(diff.patch) for diff in diffs) <= PATCH_LIMIT_CHARS:
        return tuple(diffs)
    return tuple(replace(diff, patch="") for diff in diffs)


def summary_of(diffs: Sequence[FileDiff]) -> SessionSummary:
    """Count the added and deleted lines and the files of diffs."""
    return SessionSummary(
        additions=sum(diff.additions for diff in diffs),
        deletions=sum(diff.deletions for diff in diffs),
        files=len(diffs),
    )
