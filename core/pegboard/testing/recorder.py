"""A recorder of events for tests."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from pegboard.engine.bus import Subscription
from pegboard.errors import TimeLimitError
from pegboard.schema.event import Event

_LIMIT = 100_000
_T = TypeVar("_T")


class Publisher(Protocol):
    """An object that publishes events: an App or an event bus."""

    def subscribe(self, *, limit: int) -> Subscription:
        """Subscribe to events from now on."""
        ...


class EventRecorder:
    """A recorder of the events that are published while its block runs; `events` has them.

    ::

        async with EventRecorder(app) as recorder:
            await app.prompt(session, "hi")
            await recorder.wait_for(SessionIdle)
        assert recorder.of(FileEdited) == [FileEdited(file="/tmp/a.txt")]
    """

    def __init__(self, publisher: Publisher) -> None:
        self.events: list[Event] = []
        self._subscription = publisher.subscribe(limit=_LIMIT)
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._record(), name="event recorder")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._subscription.close()
        if self._task is not None:
            await self._task  # ends with the subscription, once all queued events are recorded

    def of(self, kind: type[_T]) -> list[_T]:
        """Return the properties of all events of the type `kind` that were recorded so far."""
        return [each.properties for each in self.events if isinstance(each.properties, kind)]

    async def wait_for(
        self,
        kind: type[_T],
        where: Callable[[_T], bool] = lambda _: True,
        *,
        timeout_s: float = 5.0,
    ) -> _T:
        """Return the first recorded event of a type for which `where` is true; wait for one.

        :raises TimeLimitError: when none comes in time; the text lists the events that came.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    for found in self.of(kind):
                        if where(found):
                            return found
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError as error:
            came = ", ".join(dict.fromkeys(each.type for each in self.events)) or "nothing"
            text = f"no {kind.__name__} within {timeout_s:g} s; what came: {came}"
            raise TimeLimitError(text) from error

    async def _record(self) -> None:
        async for event in self._subscription:
            self.events.append(event)
            self._arrived.set()
