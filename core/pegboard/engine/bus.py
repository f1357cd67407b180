"""The event bus: it calls listeners with each published event, and queues it for subscribers."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Self

from pegboard.contract import apphooks
from pegboard.hooks.callers import Hooks
from pegboard.schema.event import Event

_QUEUE_LIMIT = 1000


def telling(hooks: Hooks) -> Callable[[Sequence[Event]], None]:
    """Return a function that passes events to plugins through the hook `event`."""

    def tell(events: Sequence[Event]) -> None:
        if hooks.has(apphooks.event):
            for each in events:
                hooks.notify(apphooks.event, event=each)

    return tell


class Subscription(AsyncIterator[Event]):
    """The events for one subscriber, in order; `async for` ends when the subscription closes.

    `missed` counts the events that were dropped because the subscriber was too slow. Their content
    can still be read from `Storage.events` or from the changed objects.
    """

    def __init__(self, bus: "Bus", limit: int) -> None:
        self.missed = 0
        self._bus = bus
        self._limit = limit
        self._queue: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def __anext__(self) -> Event:
        await self._arrival()
        if not self._queue:
            raise StopAsyncIteration
        return self._queue.popleft()

    async def batch(self) -> tuple[Event, ...]:
        """Wait for an event and return all queued events, or () after the subscription's end.

        The wait has no time limit: a subscriber waits as long as no event is published.
        """
        await self._arrival()
        events = tuple(self._queue)
        self._queue.clear()
        return events

    def close(self) -> None:
        """End the subscription; events that are already queued can still be read."""
        self._closed = True
        self._ready.set()
        self._bus.forget(self)

    def deliver(self, event: Event) -> None:
        """Queue an event for the subscriber; if the queue is full, drop the oldest event."""
        if len(self._queue) >= self._limit:
            self._queue.popleft()
            self.missed += 1
        self._queue.append(event)
        self._ready.set()

    async def _arrival(self) -> None:
        while not self._queue and not self._closed:
            self._ready.clear()
            await self._ready.wait()


class Bus:
    """The event bus, which passes every published event to every subscription of one event loop."""

    def __init__(self) -> None:
        self._attached: list[Callable[[Sequence[Event]], None]] = []
        self._subscriptions: dict[Subscription, None] = {}

    def attach(self, heard: Callable[[Sequence[Event]], None]) -> None:
        """Call `heard` with all future events before they are queued; `heard` must not block."""
        self._attached.append(heard)

    def publish(self, *events: Event) -> None:
        """Queue the events for all subscriptions without waiting."""
        self.publish_all(events)

    def publish_all(self, events: Sequence[Event]) -> None:
        """Publish several events in a row, such as the events of a commit."""
        for heard in self._attached:
            heard(events)
        for event in events:
            for subscription in self._subscriptions:
                subscription.deliver(event)

    def subscribe(self, *, limit: int = _QUEUE_LIMIT) -> Subscription:
        """Return a subscription to all future events, which queues at most `limit` events."""
        subscription = Subscription(self, limit)
        self._subscriptions[subscription] = None
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Stop delivering events to a subscription."""
        self._subscriptions.pop(subscription, None)

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in tuple(self._subscriptions):
            subscription.close()
