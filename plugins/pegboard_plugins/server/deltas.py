"""Streamed text for clients: slow text is sent at once, fast text in larger pieces."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from pegboard.app import Subscription
from pegboard.schema.event import Event, PartDelta, PartRemoved, PartUpdated

JOINED_S = 0.1
"""A part's deltas are published at least this often."""
FAST_S = 54
"""Deltas of a slow part in a second. The engine joins those of a faster one in 60 frames."""
SLOW_BYTES_S = 20_000
"""The bytes around all texts that all clients may get in a second before each text is joined."""
EVENT_BYTES = 350
"""The bytes of an event around its text, with the name of its directory."""
CODED_BYTES = 30
"""The same in a stream that is compressed."""
FREE_BYTES_S = 4096
"""The bytes around its text that a joined part may have in a second, and a quarter of the text."""
_BEGINS_S = 48
"""The rate that a text begins with, so that the first deltas of a fast one give it away."""
_RATE_OVER_S = 0.25


class _Rate:
    """The rate of events per second, with less weight for older events."""

    def __init__(self, rate: float) -> None:
        self._events = rate * _RATE_OVER_S
        self._at = time.monotonic()

    def add(self, now: float) -> float:
        """Count an event, and return the number of events per second."""
        self._events = self._events * math.exp((self._at - now) / _RATE_OVER_S) + 1
        self._at = now
        return self._events / _RATE_OVER_S


@dataclass(slots=True)
class _Text:
    """The text of one message part that is not sent yet, when to send it, and its budget of bytes.

    The budget grows with time and with the text; an event for fast text costs `EVENT_BYTES`.
    """

    delta: PartDelta
    due: float
    pieces: list[str] = field(default_factory=list)
    budget: float = 0
    budget_at: float = field(default_factory=time.monotonic)
    rate: _Rate = field(default_factory=lambda: _Rate(_BEGINS_S))

    def add(self, added: str, now: float, *, spare: bool) -> bool:
        """Add text; return whether to send now, because text arrives slowly or the budget suffices.

        `spare` says whether the clients can take more bytes.
        """
        self.pieces.append(added)
        is_slow = self.rate.add(now) <= FAST_S
        earned = (now - self.budget_at) * FREE_BYTES_S + len(added) / 4
        self.budget, self.budget_at = min(self.budget + earned, EVENT_BYTES), now
        if is_slow and spare:
            return True
        if self.budget < EVENT_BYTES:
            return False
        self.budget = 0
        return True

    def joined(self, due: float) -> Event:
        """Return the text not sent yet as a delta; `due` is when to send text that follows."""
        delta = replace(self.delta, delta="".join(self.pieces))
        self.pieces.clear()
        self.due = due
        return Event(properties=delta)


class JoinedDeltas:
    """The events of a subscription in order, with consecutive deltas of a text joined.

    `around` returns the overhead of one delta: the bytes for all clients apart from the text.
    """

    def __init__(self, events: Subscription, around: Callable[[], int]) -> None:
        self._events = events
        self._around = around
        self._rate = _Rate(0)
        self._loop = asyncio.get_running_loop()
        self._texts: dict[str, _Text] = {}

    async def batch(self) -> tuple[Event, ...]:
        """Wait for the next events; return () once the subscription to events is closed."""
        while True:
            try:
                async with asyncio.timeout_at(self._due()):
                    taken = await self._events.batch()
            except TimeoutError:
                told = tuple(self._pass_on_due())
            else:
                told = tuple(self._pass_on(taken) if taken else self._join_texts())
                if not taken:
                    return told
            if told:
                return told

    def _due(self) -> float | None:
        return min((text.due for text in self._texts.values()), default=None)

    def _pass_on(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            match event.properties:
                case PartDelta(part_id=part_id, delta=added) as delta:
                    now = time.monotonic()
                    spare = self._rate.add(now) * self._around() <= SLOW_BYTES_S
                    if text := self._texts.get(part_id):
                        if text.add(added, now, spare=spare):
                            yield text.joined(self._later())
                    else:
                        self._texts[part_id] = _Text(delta, self._later())
                        yield event
                case other:
                    yield from self._join_texts(event.session_id)
                    if isinstance(other, PartUpdated):
                        self._texts.pop(other.part.id, None)
                    elif isinstance(other, PartRemoved):
                        self._texts.pop(other.part_id, None)
                    yield event

    def _pass_on_due(self) -> Iterator[Event]:
        """Yield deltas with the texts that are due, and forget parts without new text."""
        now = self._loop.time()
        for part_id, text in tuple(self._texts.items()):
            if text.due > now:
                continue
            if text.pieces:
                yield text.joined(self._later())
            else:
                del self._texts[part_id]

    def _join_texts(self, session_id: str | None = None) -> Iterator[Event]:
        """Yield a delta for each part, of one or all sessions, that has text not sent yet."""
        for text in self._texts.values():
            if text.pieces and session_id in (None, text.delta.session_id):
                yield text.joined(self._later())

    def _later(self) -> float:
        return self._loop.time() + JOINED_S
