"""The writer of a run, which passes changes to the database and then to subscribers."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Self

import msgspec

from pegboard.errors import InvalidInputError, StorageError
from pegboard.kit.threads import shield
from pegboard.schema.event import Event, PartDelta, Properties
from pegboard.schema.part import Part
from pegboard.storage import Fence, Storage
from pegboard.storage.changes import AddText, Change, DropPart, PutMessage, PutPart, Tell

FRAME_S = 1 / 60
"""Events are published at most this often: once per frame of a screen."""
STORE_S = 0.25
"""Streamed text is stored at most this often."""
STORE_SHARE = 0.1
"""Text is stored once it is this share of the stored text, which bounds what a crash loses."""


class _AddedText(msgspec.Struct):
    """Added text of a part (`letters` long), and the length of the part's stored text."""

    part: Part
    pieces: list[str] = msgspec.field(default_factory=list)
    letters: int = 0
    stored: int = 0

    def event(self) -> PartDelta:
        """Return the event that publishes the added text."""
        return PartDelta(
            session_id=self.part.session_id,
            message_id=self.part.message_id,
            part_id=self.part.id,
            field="text",
            delta="".join(self.pieces),
        )

    def change(self) -> AddText:
        """Return the change that stores the text added since the last store; forget this text."""
        text = "".join(self.pieces)
        self.pieces.clear()
        self.stored += self.letters
        self.letters = 0
        return AddText(self.part.session_id, self.part.id, text)


_Item = Change | Properties | _AddedText | asyncio.Future[None]


class Writer:
    """The writer of changes in order; the database publishes their events with the commit.

    Changes are collected for a frame, a period of `FRAME_S`, and go into one commit. `barrier`
    commits them earlier. Events that are not stored, such as deltas, are published after all
    earlier changes.

    Text that is added to a part is stored at most every `STORE_S`, and only if its length is at
    least `STORE_SHARE` of the part's stored text. At its end the whole part is stored. `dirty`
    returns the parts with other changes and is called every `STORE_S`.

    Changes that the database could not write are retried with the next commit. A change that cannot
    be stored at all is dropped, and the next `barrier` raises the reason.
    """

    def __init__(
        self,
        storage: Storage,
        publish: Callable[[Sequence[Event]], None],
        *,
        fence: Fence | None,
        dirty: Callable[[], tuple[Part, ...]] = tuple,
    ) -> None:
        self._storage = storage
        self._publish = publish
        self._fence = fence
        self.dirty = dirty
        self._items: list[_Item] = []
        self._deltas: dict[str, _AddedText] = {}
        self._growing: dict[str, _AddedText] = {}
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._touched = False
        self._published_at = 0.0
        self._stored_at = 0.0
        self._refused: InvalidInputError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._stored_at = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._run(), name="pegboard-writer")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        try:
            # The turn may be cancelled more than once; its last changes are still written here.
            await shield(self.barrier())
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def change(self, *changes: Change) -> None:
        """Store these changes, in this order, with the next commit."""
        self._items.extend(changes)
        for change in changes:
            if isinstance(change, DropPart):
                self._growing.pop(change.part_id, None)
        self._wake.set()

    def say(self, properties: Properties) -> None:
        """Publish an event that is not stored, after all earlier changes and events."""
        self._items.append(properties)
        self._wake.set()

    def put(self, part: Part) -> None:
        """Store a part, after publishing the part's pending deltas."""
        # A client of deltas alone misses none, and gets none after the part that contains it.
        self._deltas.pop(part.id, None)
        self._growing.pop(part.id, None)
        self._items.append(PutPart(part))
        self._wake.set()

    def delta(self, part: Part, text: str) -> None:
        """Publish text that the model has added to a part, with the next frame."""
        added = self._deltas.get(part.id)
        if added is None:
            added = self._deltas[part.id] = _AddedText(part)
            self._items.append(added)
            self._touched = True
            self._wake.set()
        added.pieces.append(text)
        growing = self._growing.get(part.id)
        if growing is None:
            growing = self._growing[part.id] = _AddedText(part)
        growing.pieces.append(text)
        growing.letters += len(text)

    def touch(self) -> None:
        """Plan the next time at which the parts that `dirty` returns are stored."""
        if not self._touched:
            self._touched = True
            asyncio.get_running_loop().call_at(self._stored_at + STORE_S, self._wake.set)

    @property
    def owes(self) -> bool:
        """Whether the database has not yet received some message."""
        return any(isinstance(item, PutMessage) for item in self._items)

    async def barrier(self) -> None:
        """Wait until all earlier changes are durable and published.

        :raises StorageError: when they could not be written; the next barrier tries again.
        :raises InvalidInputError: when a change cannot be stored; the others are stored.
        """
        await self.passed(self.mark())

    async def passed(self, mark: asyncio.Future[None]) -> None:
        """Wait until all changes before a call of `mark` are durable and published.

        `mark` is the future that this call returned. The errors are those of `barrier`.
        """
        assert self._task is not None
        if self._task.done() and not mark.done():
            await self._task
        await (self.mark() if mark.cancelled() else mark)

    async def store(self) -> bool:
        """Wait until all changes so far are stored; return whether all of them are stored.

        The wait also ends with the turn, which stores the remaining changes.
        """
        self._store_text(share=0)
        assert self._task is not None
        done = self.mark()
        await asyncio.wait((done, self._task), return_when=asyncio.FIRST_COMPLETED)
        return done.done() and not done.cancelled() and done.exception() is None

    def mark(self) -> asyncio.Future[None]:
        """Commit all earlier changes soon; return a future that completes when these are stored."""
        done = asyncio.get_running_loop().create_future()
        self._items.append(done)
        self._urgent.set()
        self._wake.set()
        return done

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._wake.wait()  # the turn ends it by cancelling
                if not self._urgent.is_set():
                    await self._frame_end(self._published_at + FRAME_S - loop.time())
                self._store_dirty(loop)
                self._wake.clear()
                self._urgent.clear()
                await self._flush()
                self._published_at = loop.time()
        except BaseException as error:
            _fail(self._items, error)  # those who wait, and were not of the last flush
            raise

    def _store_dirty(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._touched:
            return
        if loop.time() - self._stored_at < STORE_S:
            loop.call_at(self._stored_at + STORE_S, self._wake.set)
            return
        self._touched = False
        self._stored_at = loop.time()
        self._store_text(share=STORE_SHARE)
        for part in self.dirty():
            self.put(part)

    def _store_text(self, *, share: float) -> None:
        for growing in self._growing.values():
            if growing.letters and growing.letters >= share * growing.stored:
                self._items.append(growing.change())

    async def _frame_end(self, delay_s: float) -> None:
        if delay_s <= 0:
            return
        try:
            async with asyncio.timeout(delay_s):
                await self._urgent.wait()
        except TimeoutError:
            return

    async def _flush(self) -> None:
        items, self._items = self._items, []
        self._deltas.clear()
        places = [at for at, item in enumerate(items) if isinstance(item, Change)] or [len(items)]
        first, end = places[0], places[-1] + 1
        self._say(items[:first])
        try:
            if items[first:end]:
                await self._storage.commit(*_changes(items[first:end]), fence=self._fence)
        except StorageError as error:
            unwritten = [each for each in items[first:] if not isinstance(each, asyncio.Future)]
            self._items[:0] = unwritten
            _fail(items, error)
            return
        except InvalidInputError as error:
            self._refused = error
            await self._commit_singly(items[first:end])
        except BaseException as error:
            _fail(items, error)
            raise
        self._say(items[end:])
        barriers = [each for each in items if isinstance(each, asyncio.Future)]
        if barriers and self._refused is not None:
            _fail(items, self._refused)
            self._refused = None
        for barrier in barriers:
            if not barrier.done():
                barrier.set_result(None)

    async def _commit_singly(self, items: Sequence[_Item]) -> None:
        """Commit each change separately, and skip changes that cannot be stored."""
        for change in _changes(items):
            with suppress(InvalidInputError):
                await self._storage.commit(change, fence=self._fence)

    def _say(self, items: Sequence[_Item]) -> None:
        self._publish([Event(properties=each) for each in _events_of(items)])


def _events_of(items: Sequence[_Item]) -> Iterable[Properties]:
    for item in items:
        if isinstance(item, _AddedText):
            yield item.event()
        elif not isinstance(item, asyncio.Future | Change):
            yield item


def _changes(items: Sequence[_Item]) -> Iterable[Change]:
    """Yield the changes in order, with events that are not stored wrapped as changes."""
    for item in items:
        if isinstance(item, Change):
            yield item
        else:
            yield from (Tell(each) for each in _events_of([item]))


def _fail(items: list[_Item], error: BaseException) -> None:
    for item in items:
        if isinstance(item, asyncio.Future) and not item.done():
            if isinstance(error, asyncio.CancelledError):
                item.cancel()
            else:
                item.set_exception(error)
                item.exception()  # no warning where the turn ends before it is awaited
