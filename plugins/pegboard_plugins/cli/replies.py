"""Which requests to the user are answered, by whomever: another program may be at the session."""

import asyncio

from pegboard.embedding import Subscription
from pegboard.schema.event import Event, PermissionReplied, QuestionRejected, QuestionReplied


class Replies:
    """What was answered since it listens."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._more = asyncio.Event()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._answered

    async def hear(self, subscription: Subscription) -> None:
        """Take the answers in, until the subscription is closed."""
        while events := await subscription.batch():
            for event in events:
                self._note(event)

    async def until(self, request_id: str) -> None:
        """Wait for the answer to a request, however long somebody thinks about it."""
        while request_id not in self._answered:
            self._more.clear()
            await self._more.wait()

    def _note(self, event: Event) -> None:
        match event.properties:
            case (
                PermissionReplied(request_id=request_id)
                | QuestionReplied(request_id=request_id)
                | QuestionRejected(request_id=request_id)
            ):
                self._answered.add(request_id)
                self._more.set()
            case _:
                pass
