"""Snapshots of a run's steps: one beside each request, and the patch parts made from them.

The snapshot at the start of a step also ends the step before, so that a step costs one at most.
It starts once the request has been sent, and a tool that may write waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec.structs import replace

from pegboard.contract.tools import Tool
from pegboard.engine.engine import Engine
from pegboard.engine.finish import Repeats
from pegboard.engine.history import History
from pegboard.engine.processor import Processor
from pegboard.engine.writer import Writer
from pegboard.kit.threads import shielded
from pegboard.schema.event import SessionDiffed
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Part, PatchPart, Staged, StepFinishPart, StepStartPart
from pegboard.schema.session import FileDiff, Revert, Session, SessionSummary
from pegboard.storage.changes import Emit, PutPart
from pegboard.storage.snapshots import Snapshots, Way, Writing, ways_of

HEAD_START_S = 0.05
"""How long the snapshot waits, so that the request is sent first."""
CLOSE_LIMIT_S = 10.0
"""How long the end of a run waits for its last snapshot."""
STOP_LIMIT_S = 2.0
"""The same limit once the run is aborted, however often, and a person waits."""
PATCH_LIMIT_CHARS = 1 << 18
"""Longer texts of all diffs of a session are left out; the counts are there all the same."""


class PartIds(Protocol):
    """Gives ids for new parts."""

    def part(self) -> str:
        """An id for a new part."""
        ...


class Followed(Protocol):
    """The run whose steps are followed, as far as snapshots need it."""

    engine: Engine
    session: Session
    history: History
    writer: Writer
    calls: Repeats

    @property
    def ids(self) -> PartIds:
        """The ids of the session."""
        ...

    def change(self, *, summary: SessionSummary) -> None:
        """Store the summary of all changes of the session."""
        ...


@dataclass(slots=True)
class _Step:
    """A step: its message, and the tree at its start once the snapshot is taken."""

    message: AssistantMessage
    processor: Processor
    tree: str | None = None


class StepSnapshots:
    """The snapshots of one run; without snapshots it does nothing."""

    def __init__(self, run: Followed) -> None:
        self._run = run
        self._snapshots = run.engine.snapshots
        self._owners: tuple[str, ...] = ()
        if self._snapshots is not None:
            self._owners = self._snapshots.lineage(run.session.id, run.session.parent_id)
        self._step: _Step | None = None
        self._task: asyncio.Task[None] | None = None
        self._go = asyncio.Event()
        self._wrote = False
        self._writings: dict[str, Writing] = {}
        self._patches: list[PatchPart] = []

    def known(self, prompt_id: str) -> str | None:
        """The current tree if it is known without a snapshot; after a new prompt it is not."""
        snapshots, step = self._snapshots, self._step
        if snapshots is None or step is None or step.message.parent_id != prompt_id:
            return None
        return snapshots.current if not self._writings else None

    def begin(self, message: AssistantMessage, processor: Processor) -> None:
        """Start the snapshot of a step, beside its request."""
        if self._snapshots is None:
            return
        known = self.known(message.parent_id)
        earlier, self._step = self._step, _Step(message, processor, known)
        before = self._task
        self._go.clear()
        self._task = asyncio.create_task(
            self._take(self._snapshots, self._step, earlier, before), name="snapshot"
        )
        self._task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def expect(self, tool: Tool) -> None:
        """A call is coming: start the snapshot now."""
        if tool.effect != "reads":
            self._go.set()

    @asynccontextmanager
    async def calling(self, call_id: str, tool: Tool) -> AsyncIterator[None]:
        """A block for a tool call; one that may write first waits for the step's snapshot."""
        if self._snapshots is None or tool.effect == "reads":
            yield
            return
        await self.finish()
        if tool.effect == "delegates":
            yield
            return
        self._wrote = True
        with self._snapshots.writing(self._owners, tells=tool.effect == "edits") as writing:
            self._writings[call_id] = writing
            try:
                yield
            finally:
                del self._writings[call_id]

    async def finish(self) -> None:
        """Wait for the step's snapshot, with which all earlier changes are known."""
        if self._task is not None:
            self._go.set()
            await asyncio.wait((self._task,))  # git has a time limit of its own

    def intends(self, call_id: str, path: Path) -> None:
        """A call is about to change a file, so that the change counts as its own."""
        writing = self._writings.get(call_id)
        if writing is not None:
            writing.intend(path)

    def edited(self, call_id: str, path: Path) -> None:
        """A call has changed a file."""
        writing = self._writings.get(call_id)
        if writing is not None:
            writing.tell(path)

    @contextmanager
    def asking(self, call_id: str) -> Iterator[None]:
        """A block in which a call waits for the user, whose edits of files are not the call's."""
        writing = self._writings.get(call_id)
        if writing is None:
            yield
            return
        with writing.paused():
            yield

    async def close(self) -> None:
        """Store the changes of the last step, if there may be any; the run's end waits for it."""
        task, snapshots, step = self._task, self._snapshots, self._step
        if task is None or snapshots is None or step is None:
            return
        if self._patches or self._owes(snapshots):
            self._go.set()
        else:
            task.cancel()
        own = asyncio.current_task()
        stopped = own is not None and own.cancelling()
        work = asyncio.create_task(self._ended(task, snapshots, step), name="last snapshot")
        try:
            await asyncio.wait((work,), timeout=0 if stopped else CLOSE_LIMIT_S - STOP_LIMIT_S)
        finally:
            with suppress(TimeoutError):
                await shielded(asyncio.wait_for(work, STOP_LIMIT_S))

    async def _ended(self, task: "asyncio.Task[None]", snapshots: Snapshots, step: _Step) -> None:
        """Store the changes of the last step, once its own snapshot is taken."""
        await asyncio.wait((task,))
        tree = None if task.cancelled() else await snapshots.track()
        if tree is not None:
            await self._settle(snapshots, step, tree)
        if self._patches:
            await self._tell(snapshots)

    async def _tell(self, snapshots: Snapshots) -> None:
        """Store and publish the summary of all changes of the session, once per run."""
        run = self._run
        before, _ = split(run.history.turns, None)
        diffs = bounded(await snapshots.diff(total((*before, *self._patches))))
        run.change(summary=summary_of(diffs))
        run.writer.change(Emit(SessionDiffed(session_id=run.session.id, diff=diffs)))

    def _owes(self, snapshots: Snapshots) -> bool:
        """Whether there may be changes without a patch part."""
        return self._wrote or snapshots.claimed(self._run.session.id)

    async def _take(
        self,
        snapshots: Snapshots,
        step: _Step,
        earlier: _Step | None,
        before: "asyncio.Task[None] | None",
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))  # git has a time limit of its own
        fresh = earlier is None or earlier.message.parent_id != step.message.parent_id
        if fresh or snapshots.current is None:
            await self._head_start()
        tree = await snapshots.track(fresh=fresh)
        if tree is None:
            return
        step.tree = tree
        self._run.calls.found(tree)
        start = _part(step.processor, StepStartPart)
        if start is not None and start.snapshot != tree and self._is_there(step):
            self._amend(step, replace(start, snapshot=tree))
        if earlier is not None:
            await self._settle(snapshots, earlier, tree)

    async def _head_start(self) -> None:
        try:
            async with asyncio.timeout(HEAD_START_S):
                await self._go.wait()
        except TimeoutError:
            return

    async def _settle(self, snapshots: Snapshots, step: _Step, tree: str) -> None:
        """Make the patch parts of a step, given the tree at its end."""
        self._wrote = False
        copied = await snapshots.copied(self._run.session.id)
        changed = snapshots.take(self._run.session.id)
        left = snapshots.unkept(changed)
        if not self._is_there(step):
            return
        finish = _part(step.processor, StepFinishPart)
        if finish is not None and finish.snapshot != tree:
            self._amend(step, replace(finish, snapshot=tree))
        index = snapshots.take_staged(self._run.session.id)
        if not (changed or index) or step.tree is None:
            return
        kept = tuple(path for path in left if path in copied)
        others = tuple(path for path in changed if path not in left)
        named = {str(path): reason for path, reason in left.items() if path not in copied}
        patches = []
        if others or named or index:
            way = Way(before=step.tree, after=tree)
            patches.append(replace(self._patch(step, way, others), left=named, staged=index))
        if kept:
            patches.append(self._patch(step, copied[kept[0]], kept))
        # No await since `take`, so no cancellation can lose the patches.
        self._patches += patches
        for patch in patches:
            step.processor.put(patch)
        for name, way in ((n, w) for patch in patches for n, w in ways_of(patch).items()):
            await snapshots.keep(self._run.session.id, name, way)

    def _patch(self, step: _Step, way: Way, files: Iterable[Path]) -> PatchPart:
        return PatchPart(
            id=self._run.ids.part(),
            session_id=step.message.session_id,
            message_id=step.message.id,
            hash=way.before,
            files=tuple(map(str, files)),
            after=way.after,
        )

    def _amend(self, step: _Step, part: StepStartPart | StepFinishPart) -> None:
        """Store a late change without an event: clients count steps and costs by events."""
        step.processor.parts[part.id] = part
        self._run.writer.change(PutPart(part, told=False))

    def _is_there(self, step: _Step) -> bool:
        """Whether the message still exists: that of a request that was too long is dropped."""
        turns = reversed(self._run.history.turns)
        return any(turn.info.id == step.message.id for turn in turns)


_P = TypeVar("_P", StepStartPart, StepFinishPart)


def _part(processor: Processor, kind: type[_P]) -> _P | None:
    return next((part for part in processor.parts.values() if isinstance(part, kind)), None)


def split(
    turns: Iterable[Turn], point: Revert | None
) -> tuple[tuple[PatchPart, ...], tuple[PatchPart, ...]]:
    """The patches before a point of a session and those after it, in order."""
    turns = tuple(turns)
    count = sum(isinstance(part, PatchPart) for part in behind(turns, point))
    patches = [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]
    place = len(patches) - count
    return tuple(patches[:place]), tuple(patches[place:])


def behind(turns: Iterable[Turn], point: Revert | None) -> list[Part]:
    """The parts after a point of a session, in order; none after its end."""
    if point is None:
        return []
    found: list[Part] = []
    is_behind = False
    for turn in turns:
        is_named = turn.info.id == point.message_id
        is_behind = is_behind or (is_named and point.part_id is None)
        for part in turn.parts:
            is_behind = is_behind or (is_named and part.id == point.part_id)
            if is_behind:
                found.append(part)
    return found


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
