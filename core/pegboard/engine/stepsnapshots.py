"""Snapshots of a run's steps: one beside each request, and the patch parts made from them.

The snapshot at the start of a step also ends the step before, so that a step costs one at most.
It starts once the request has been sent, and a tool that may write waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
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
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import PatchPart, StepFinishPart, StepStartPart
from pegboard.schema.session import Session, SessionSummary
from pegboard.storage.changes import Emit, PutPart
from pegboard.storage.snapshots import (
    Snapshots,
    Way,
    Writing,
    bounded,
    summary_of,
    total,
    ways_of,
)

HEAD_START_S = 0.05
"""How long the snapshot waits, so that the request is sent first."""
CLOSE_LIMIT_S = 10.0
"""How long the end of a run waits for its last snapshot."""
STOP_LIMIT_S = 2.0
"""The same limit once the run is aborted, however often, and a person waits."""


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
        parts = (part for turn in run.history.turns for part in turn.parts)
        before = [part for part in parts if isinstance(part, PatchPart)]
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
