"""Events on their way to clients: encoded once, kept for a while, queued for each listener."""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pegboard import IdSource
from pegboard.schema.wire import encode

QUEUED_FRAMES = 4000
QUEUED_BYTES = 2 << 20
"""What waits for one client; beyond it the client is told to read anew."""
KEPT_FRAMES = 4000
KEPT_BYTES = 8 << 20
NEW_S = 1.0
READING_S = 0.15
LONGEST_NUMBER = 15
"""Digits of a frame's number; a text with more of them is none."""
"""What a client that comes back can be given."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event as JSON; without a directory it is everybody's."""

    number: int
    directory: str | None
    project: str | None
    event: bytes

    def envelope(self) -> bytes:
        """The event as `/global/event` has it."""
        place = {"directory": self.directory, "project": self.project}
        known = encode({name: value for name, value in place.items() if value is not None})
        return (
            known[:-1] + (b"," if len(known) > len(b"{}") else b"") + b'"payload":%b}' % self.event
        )


class Listener:
    """One client's frames; `directory` None hears all directories."""

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self.closed = False
        self.missed = 0
        self.since = time.monotonic()
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()

    def hears(self, frame: Frame) -> bool:
        """Whether the frame is for this client."""
        return self.directory is None or frame.directory in (None, self.directory)

    def deliver(self, frame: Frame) -> None:
        """Queue a frame; a client too slow loses all that waits, and `missed` counts it."""
        if len(self._frames) >= QUEUED_FRAMES or self._bytes + len(frame.event) > QUEUED_BYTES:
            self.missed += len(self._frames)
            self._frames.clear()
            self._bytes = 0
        self._frames.append(frame)
        self._bytes += len(frame.event)
        self._ready.set()

    def close(self) -> None:
        """End the stream, once what is queued is read."""
        self.closed = True
        self._ready.set()

    async def frames(self, limit_s: float) -> tuple[Frame, ...]:
        """What has come, after at most this time; nothing when nothing came."""
        if not (self._frames or self.closed or self.missed):
            self._ready.clear()
            try:
                await asyncio.wait_for(self._ready.wait(), limit_s)
            except TimeoutError:
                return ()
        found = tuple(self._frames)
        self._frames.clear()
        self._bytes = 0
        return found


class Feed:
    """All events of the server's projects, and who listens; for one event loop."""

    def __init__(self) -> None:
        self.ids = IdSource()
        self._listeners: dict[Listener, None] = {}
        self._kept: deque[Frame] = deque()
        self._kept_bytes = 0
        self._last = 0
        self._run = secrets.token_hex(4)

    def publish(self, event: bytes, *, directory: str | None, project: str | None = None) -> None:
        """Hand an event to all who hear it; never waits."""
        self._last += 1
        frame = Frame(self._last, directory, project, event)
        self._keep(frame)
        for listener in self._listeners:
            if listener.hears(frame):
                listener.deliver(frame)

    def say(
        self, kind: str, properties: Mapping[str, object], *, directory: Path | None = None
    ) -> None:
        """An event of the server's own, to all or to a directory's."""
        self.publish(self.own(kind, properties), directory=str(directory) if directory else None)

    def own(self, kind: str, properties: Mapping[str, object]) -> bytes:
        """The JSON of an event of the server's own."""
        return encode({"id": self.ids.new("event"), "type": kind, "properties": properties})

    def listen(self, directory: Path | None, *, after: str | None = None) -> Listener:
        """A client that hears all from here on, or from behind the frame with the id `after`.

        What is not kept any more counts as missed.
        """
        listener = Listener(str(directory) if directory else None)
        if after is not None:
            self._resume(listener, after)
        self._listeners[listener] = None
        return listener

    def forget(self, listener: Listener) -> None:
        """Deliver nothing more to a client."""
        self._listeners.pop(listener, None)

    def hang_up(self, directory: Path | Literal["all"]) -> None:
        """End the streams of one directory, or all streams."""
        for listener in tuple(self._listeners):
            if directory == "all" or listener.directory == str(directory):
                listener.close()

    def is_heard(self, directory: Path) -> bool:
        """Whether a client follows this directory alone."""
        return any(listener.directory == str(directory) for listener in self._listeners)

    async def read(self, directory: Path) -> None:
        """Time for clients that have just begun to listen to read what a turn has told.

        `opencode run` opens its stream beside its prompt, and leaves when that is answered.
        """
        since = time.monotonic() - NEW_S
        places = (None, str(directory))
        if any(each.since > since and each.directory in places for each in self._listeners):
            await asyncio.sleep(READING_S)

    def frame_id(self, number: int) -> str:
        """What a client gives back as `Last-Event-ID`."""
        return f"{self._run}-{number}"

    @property
    def listeners(self) -> int:
        """How many clients listen."""
        return len(self._listeners)

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._last

    def _keep(self, frame: Frame) -> None:
        self._kept.append(frame)
        self._kept_bytes += len(frame.event)
        while len(self._kept) > KEPT_FRAMES or self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft().event)

    def _resume(self, listener: Listener, after: str) -> None:
        run, _, digits = after.partition("-")
        oldest = self._kept[0].number if self._kept else self._last + 1
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST_NUMBER
        number = int(digits) if is_number else -1
        if run != self._run or not oldest - 1 <= number <= self._last:
            listener.missed = 1
            return
        for frame in self._kept:
            if frame.number > number and listener.hears(frame):
                listener.deliver(frame)
