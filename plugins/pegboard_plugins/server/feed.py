"""Events for clients: encoded once, stored in a buffer, and read from there by each client."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pegboard.app import IdSource
from pegboard.schema.wire import encode
from pegboard_plugins.server.deltas import CODED_BYTES, EVENT_BYTES

KEPT_FRAMES = 4000
KEPT_BYTES = 8 << 20
"""The most bytes of events for all clients; a client further behind must read again."""
TAKEN_FRAMES = 256
TAKEN_BYTES = 64 << 10
"""What one client gets at a time, but for a frame that is larger: more is not held for it."""
FRESH_FRAMES = 256
FRESH_BYTES = 1 << 20
"""After so much the publisher lets clients read."""
TURNS = 100
"""Of the event loop, in which a client that reads has surely read."""
NEW_S = 1.0
READING_S = 0.15
_TIME_ENDS_AT = len("evt_") + 12
"""The letters of an event's id up to the end of its time."""
LONGEST_NUMBER = 15
"""The most digits of a frame's number."""


@dataclass(frozen=True, slots=True)
class EventFrame:
    """An event as JSON, for the clients of a directory; without a directory, for all clients.

    A frame that `repeats` the content of deltas is for clients that do not know deltas. A `relayed`
    frame comes from another server of a fleet.
    """

    number: int
    directory: str | None
    project: str | None
    event: bytes
    repeats: bool = False
    relayed: bool = False

    def envelope(self) -> bytes:
        """Return the event in the form of `/global/event`."""
        place = {"directory": self.directory, "project": self.project}
        known = encode({name: value for name, value in place.items() if value is not None})
        return (
            known[:-1] + (b"," if len(known) > len(b"{}") else b"") + b'"payload":%b}' % self.event
        )


class _Kept:
    """The buffer of the newest event frames, at least one frame, with consecutive numbers."""

    def __init__(self) -> None:
        self.last = 0
        self.oldest = 1
        self._frames: dict[int, EventFrame] = {}
        self._bytes = 0

    def add(self, frame: EventFrame) -> None:
        """Store the next frame, and drop the oldest frames to limit the size of the buffer."""
        self.last = frame.number
        self._frames[frame.number] = frame
        self._bytes += len(frame.event)
        while self.oldest < self.last and (
            len(self._frames) > KEPT_FRAMES or self._bytes > KEPT_BYTES
        ):
            self._bytes -= len(self._frames.pop(self.oldest).event)
            self.oldest += 1

    def since(self, number: int) -> Iterator[EventFrame]:
        """Yield the frames from `number` on; the buffer must still have frame `number`."""
        return (self._frames[each] for each in range(number, self.last + 1))


class FeedListener:
    """One client's position in the buffer of event frames.

    With `directory` None, the client receives the frames of all directories. With `repeats`, it
    receives frames that repeat the content of deltas. With `own`, it receives no frames from other
    servers. `coded` says that the client's stream is compressed.

    Frames are not queued for a listener. A slow client costs no memory, and falls behind.
    """

    def __init__(
        self, kept: _Kept, directory: str | None, *, repeats: bool, coded: bool, own: bool
    ) -> None:
        self.directory = directory
        self.repeats = repeats
        self.coded = coded
        self.own = own
        self.closed = False
        self.missed = 0
        self.since = time.monotonic()
        self._kept = kept
        self._next = kept.last + 1
        self._has_more = False
        self._asks = False
        self._ready = asyncio.Event()

    @property
    def heard(self) -> int:
        """The number of the newest frame that the client has read or skipped."""
        return self._next - 1

    @property
    def is_late(self) -> bool:
        """Whether frames wait for a client that has asked for frames."""
        return self._asks and self._has_more

    def hears(self, frame: EventFrame) -> bool:
        """Return whether a frame is for this client."""
        if (frame.repeats and not self.repeats) or (frame.relayed and self.own):
            return False
        return self.directory is None or frame.directory in (None, self.directory)

    def tell(self, frame: EventFrame) -> None:
        """Note that a new frame exists, so that a waiting client continues."""
        if self.hears(frame):
            self._has_more = True
            self._ready.set()
        elif not self._has_more:
            self._next = frame.number + 1

    def go_back(self, number: int) -> None:
        """Move the client's position back to directly after the frame with this number."""
        self._next = number + 1
        self._has_more = number < self._kept.last

    def close(self) -> None:
        """End the client's stream after the frames that are in the buffer now."""
        self.closed = True
        self._ready.set()

    async def frames(self, limit_s: float) -> tuple[EventFrame, ...]:
        """Wait up to `limit_s` seconds for the next frames; return () if there are none.

        `missed` counts the frames that were dropped before they were read, for any directory.
        """
        self._asks = True
        try:
            if not (self._has_more or self.closed or self.missed):
                self._ready.clear()
                await asyncio.wait_for(self._ready.wait(), limit_s)
        except TimeoutError:
            return ()
        finally:
            self._asks = False
        return tuple(self._take())

    def _take(self) -> Iterator[EventFrame]:
        if self._next < self._kept.oldest:
            self.missed += self._kept.oldest - self._next
            self._next = self._kept.oldest
        count = size = 0
        for frame in self._kept.since(self._next):
            if self.hears(frame):
                count, size = count + 1, size + len(frame.event)
                if count > 1 and (count > TAKEN_FRAMES or size > TAKEN_BYTES):
                    return
                yield frame
            self._next = frame.number + 1
        self._has_more = False


class EventFeed:
    """The events of the server's projects, and their listeners; used on one event loop."""

    def __init__(self) -> None:
        self.ids = IdSource()
        self._listeners: dict[FeedListener, None] = {}
        self._kept = _Kept()
        self._fresh_frames = 0
        self._fresh_bytes = 0
        self._run = secrets.token_hex(4)
        self._unstored = 0
        self._is_closed = False

    def event_id(self) -> str:
        """Return an id, for an event that is not stored, that resembles the last such id.

        Similar ids compress well. Random ids would be a third of the bytes around a delta's text.
        """
        self._unstored = (self._unstored + 1) % 1_000_000
        return f"{self.ids.new('event')[:_TIME_ENDS_AT]}{self._run}{self._unstored:06}"

    def publish(
        self,
        event: bytes,
        *,
        directory: str | None,
        project: str | None = None,
        repeats: bool = False,
        relayed: bool = False,
    ) -> None:
        """Publish an event to the listeners without blocking."""
        frame = EventFrame(self._kept.last + 1, directory, project, event, repeats, relayed)
        self._kept.add(frame)
        self._fresh_frames += 1
        self._fresh_bytes += len(event)
        for listener in self._listeners:
            listener.tell(frame)

    async def publish_all(
        self, events: Iterable[tuple[bytes, bool]], *, directory: str, project: str | None
    ) -> None:
        """Publish many events, each with its flag `repeats`, and let clients read in between.

        The function does not wait for a client with a full connection.
        """
        for event, repeats in events:
            self.publish(event, directory=directory, project=project, repeats=repeats)
            if self._fresh_frames >= FRESH_FRAMES or self._fresh_bytes >= FRESH_BYTES:
                self._fresh_frames = self._fresh_bytes = 0
                await self._read_up()

    async def _read_up(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if not any(listener.is_late for listener in self._listeners):
                return

    def say(
        self, kind: str, properties: Mapping[str, object], *, directory: Path | None = None
    ) -> None:
        """Publish an event of the server itself, to all clients or to those of `directory`."""
        self.publish(self.own(kind, properties), directory=str(directory) if directory else None)

    def own(self, kind: str, properties: Mapping[str, object]) -> bytes:
        """Return the JSON of an event of the server itself."""
        return encode({"id": self.ids.new("event"), "type": kind, "properties": properties})

    def listen(
        self,
        directory: Path | None,
        *,
        after: str | None = None,
        repeats: bool = False,
        coded: bool = False,
        own: bool = False,
    ) -> FeedListener:
        """Return a listener for new frames, or for all frames after the frame with id `after`.

        Frames that the buffer no longer has count as missed. After the feed is closed, the client's
        stream ends at once.
        """
        place = str(directory) if directory else None
        listener = FeedListener(self._kept, place, repeats=repeats, coded=coded, own=own)
        if after is not None:
            self._resume(listener, after)
        self._listeners[listener] = None
        if self._is_closed:
            listener.close()
        return listener

    def forget(self, listener: FeedListener) -> None:
        """Stop the delivery of events to a client."""
        self._listeners.pop(listener, None)

    def hang_up(self, directory: Path) -> None:
        """End the event streams of one directory."""
        for listener in tuple(self._listeners):
            if listener.directory == str(directory):
                listener.close()

    def close(self) -> None:
        """End all event streams when the server stops, even the streams of requests in progress."""
        self._is_closed = True
        for listener in tuple(self._listeners):
            listener.close()

    def hears_repeats(self, directory: str) -> bool:
        """Return whether a client of this directory may not understand deltas."""
        return any(
            listener.repeats and listener.directory in (None, directory)
            for listener in self._listeners
        )

    def around(self, directory: str) -> int:
        """Return the bytes, without the text, that a delta costs for a directory's clients."""
        return sum(
            CODED_BYTES if listener.coded else EVENT_BYTES
            for listener in self._listeners
            if listener.directory in (None, directory)
        )

    def is_heard(self, directory: Path) -> bool:
        """Return whether a client listens only to this directory."""
        return any(listener.directory == str(directory) for listener in self._listeners)

    async def read(self, directory: Path) -> None:
        """Give clients that have just connected a moment to read the events of a turn.

        `opencode run` opens its stream when it sends its prompt, and disconnects after the answer.
        """
        since = time.monotonic() - NEW_S
        places = (None, str(directory))
        if any(each.since > since and each.directory in places for each in self._listeners):
            await asyncio.sleep(READING_S)

    def frame_id(self, number: int) -> str:
        """Return the id of a frame, which a client sends back as `Last-Event-ID`."""
        return f"{self._run}-{number}"

    @property
    def listeners(self) -> int:
        """The number of clients that listen."""
        return len(self._listeners)

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._kept.last

    def _resume(self, listener: FeedListener, after: str) -> None:
        run, _, digits = after.partition("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST_NUMBER
        number = int(digits) if is_number else -1
        if run == self._run and self._kept.oldest - 1 <= number <= self._kept.last:
            listener.go_back(number)
        else:
            listener.missed = 1
