"""The recovery of events that a client missed while it was disconnected from the server."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from pegboard.errors import ServerUnreachableError, TimeLimitError
from pegboard.schema.event import (
    Custom,
    Event,
    MessageUpdated,
    PartUpdated,
    PermissionAsked,
    QuestionAsked,
)
from pegboard.schema.part import Part
from pegboard.schema.session import PermissionRequest
from pegboard_plugins.shared.frontend import RESYNC, Feed

LOOK_EVERY_S = 0.5
READ_AGAIN = 20


class CatchUp:
    """A filter for the events of a turn: it adds missed events and removes repeated ones.

    `before` is the id of the last message before the turn.
    """

    def __init__(self, feed: Feed, session_id: str, before: str) -> None:
        self._feed = feed
        self._session_id = session_id
        self._before = before
        self._parts: dict[str, Part] = {}
        self._asked: set[str] = set()

    async def complete(self, events: Sequence[Event]) -> AsyncIterator[Event]:
        """Yield the events; where a lost connection has left a gap, yield the missed events."""
        for event in events:
            match event.properties:
                case Custom(name=name, data=data) if name == RESYNC:
                    for missed in [] if "error" in data else await self._missed():
                        if self._is_news(missed):
                            yield missed
                case _ if self._is_news(event):
                    yield event

    def _is_news(self, event: Event) -> bool:
        match event.properties:
            case PartUpdated(part=part):
                is_news = self._parts.get(part.id) != part
                self._parts[part.id] = part
                return is_news
            case PermissionAsked(request=request) | QuestionAsked(request=request):
                is_news = request.id not in self._asked
                self._asked.add(request.id)
                return is_news
            case _:
                return True

    async def _missed(self) -> Sequence[Event]:
        """Return the turn's stored messages and its waiting requests as events.

        The read is repeated until the server is reachable; after `READ_AGAIN` attempts return ().
        """
        for _ in range(READ_AGAIN):
            try:
                return [event async for event in self._read()]
            except (ServerUnreachableError, TimeLimitError):
                await asyncio.sleep(LOOK_EVERY_S)
        return ()

    async def _read(self) -> AsyncIterator[Event]:
        session_id = self._session_id
        for turn in await self._feed.turns(session_id):
            if turn.info.id > self._before:
                yield Event(properties=MessageUpdated(session_id=session_id, info=turn.info))
                created = turn.info.time.created
                for part in turn.parts:
                    told = PartUpdated(session_id=session_id, part=part, time=created)
                    yield Event(properties=told)
        for request in await self._feed.waiting():
            if isinstance(request, PermissionRequest):
                yield Event(properties=PermissionAsked(request=request))
            else:
                yield Event(properties=QuestionAsked(request=request))
