"""The turns and events of a server; turns go on while the connection is lost."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pegboard_client import (
    AsyncClient,
    AsyncEventStream,
    Resync,
    ServerError,
    ServerUnreachableError,
)

from pegboard import PegboardError
from pegboard.errors import AbortedError, NotFoundError, TimeLimitError
from pegboard.schema.event import Custom, Event, SessionIdle, SessionStatusChanged
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.unstable import Bus
from pegboard_plugins.shared.frontend.feed import RESYNC

TOLD_WITHIN_S = 10.0
"""The longest delay of a turn's events after its answer, which has its own connection."""
LOOK_EVERY_S = 0.5
_NOT_FOUND, _ABORTED = "NotFoundError", "MessageAbortedError"


class ServerTurns:
    """The turns and events of a server.

    `begin` starts to publish the events on `bus`. `on_rest` is called when a session becomes idle,
    and when the server reports that events were lost.
    """

    def __init__(
        self,
        client: AsyncClient,
        events: AsyncEventStream[Event],
        bus: Bus,
        on_rest: Callable[[], None],
    ) -> None:
        self._client = client
        self._events = events
        self._bus = bus
        self._on_rest = on_rest
        self._rests: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._hearing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self) -> asyncio.Task[None]:
        """Start the task that publishes the server's events; the caller owns the task."""
        self._hearing = task = asyncio.create_task(self._hear(), name="events")
        return task

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._events.is_connected

    async def _hear(self) -> None:
        try:
            async for event in self._events:
                if isinstance(event, Resync):
                    self._publish_resync({})
                    await self._look_who_rests()
                    self._on_rest()
                else:
                    self._take(event)
        except ServerError as error:
            self._publish_resync({"error": str(error)})
            raise
        finally:
            self._bus.close()

    def _publish_resync(self, facts: dict[str, Any]) -> None:
        self._bus.publish(Event(properties=Custom(name=RESYNC, data=facts)))

    def _take(self, event: Event) -> None:
        match event.properties:
            case SessionStatusChanged(session_id=session_id):
                self._rests[session_id].clear()
            case SessionIdle(session_id=session_id):
                self._rests[session_id].set()
                self._on_rest()
            case _:
                pass
        self._bus.publish(event)

    async def _look_who_rests(self) -> None:
        with suppress(PegboardError):
            running = await self._client.sessions.status()
            for session_id in self._rests.keys() - running.keys():
                self._rests[session_id].set()

    async def answer(self, session_id: str, send: Callable[[], Awaitable[Turn]]) -> Turn:
        """Send a request and return the turn that answers it, even if the connection was lost.

        :raises AbortedError: when the turn was stopped before it had an answer.
        :raises ServerError: when the server refuses, or stays away for too long.
        """
        before = await self._newest_id(session_id)
        self._rests[session_id].clear()
        posting = asyncio.create_task(self._posted(session_id, send, before))
        try:
            either: set[asyncio.Future[Any]] = {posting, self._hearing}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not posting.done():
                self._hearing.result()  # it ends with an error only
            turn = await posting
            await self._all_told(session_id)
        finally:
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
        return turn

    async def _posted(
        self, session_id: str, send: Callable[[], Awaitable[Turn]], before: str
    ) -> Turn:
        try:
            return await send()
        except ServerUnreachableError as error:
            return await self._find_answer(session_id, before, error)
        except ServerError as error:
            if error.name == _ABORTED:
                raise AbortedError(error.message) from error
            raise

    async def _find_answer(
        self, session_id: str, before: str, lost: ServerUnreachableError
    ) -> Turn:
        """Return the answer after message `before` once the session is idle, or raise `lost`.

        The function asks the server repeatedly, after the connection of the prompt was lost.
        """
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                if session_id in await self._client.sessions.status():
                    continue
                turns = await self._client.messages(session_id, limit=1)
            except (ServerUnreachableError, TimeLimitError):
                continue
            last = turns[-1].info if turns else None
            if isinstance(last, AssistantMessage) and last.id > before:
                return turns[-1]
            raise lost

    async def _all_told(self, session_id: str) -> None:
        """Wait until the session's remaining events have arrived, for at most 10 seconds."""
        resting = asyncio.create_task(self._rests[session_id].wait())
        either: set[asyncio.Future[Any]] = {resting, self._hearing}
        await asyncio.wait(either, timeout=TOLD_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        resting.cancel()
        await asyncio.gather(resting, return_exceptions=True)

    async def _newest_id(self, session_id: str) -> str:
        turns = await self._client.messages(session_id, limit=1)
        return turns[-1].info.id if turns else ""


@contextmanager
def gone(kind: str, name: str) -> Iterator[None]:
    """Within the context, translate a server's "not found" error into `NotFoundError`."""
    try:
        yield
    except ServerError as error:
        if error.name != _NOT_FOUND:
            raise
        raise NotFoundError(kind, name) from error
