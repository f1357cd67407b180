"""The event stream of a server, which resumes without a gap after a lost connection."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pegboard.errors import ServerError, ServerUnreachableError, TimeLimitError
from pegboard_client.address import START
from pegboard_client.aio.link import AsyncLink
from pegboard_client.events import FrameReader, Resync

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
GIVE_UP_S = 60.0
"""How long a server may be away; then the stream ends with the error."""
_AWAY = (None, 502, 503, 504)
"""What a server that starts again, or a proxy before it, answers: nothing, or one of these."""
_Told = TypeVar("_Told")


class AsyncEventStream(Generic[_Told]):
    """The events of a server in order, from the subscription until the stream is closed.

    Entering the stream with `async with` waits until the server has subscribed it, so no later
    event is missed. After a lost connection, the stream reconnects and resumes after the last
    event. If events were lost meanwhile, it yields a `Resync`. A cancelled wait loses no event. The
    stream may be silent for any length of time.
    """

    def __init__(
        self, link: AsyncLink, path: str, read: Callable[[bytes], _Told | Resync | None]
    ) -> None:
        self._link = link
        self._path = path
        self._read = read
        self._ready: deque[_Told | Resync] = deque()
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._frames = FrameReader()
        self._last_id: str | None = None
        self._begun = self._closed = False
        self._tries = 0
        self._lost_at = 0.0

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    @property
    def is_connected(self) -> bool:
        """Whether the stream is connected; False while the stream reconnects."""
        return self._pieces is not None

    async def __anext__(self) -> _Told | Resync:
        """Return the next event.

        :raises ServerUnreachableError: when the server is away for a minute.
        :raises ServerError: when the server refuses to reconnect the client.
        """
        if not self._begun:
            await self._begin()
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            if self._pieces is None:
                await self._come_back()
            else:
                await self._hear(self._pieces)
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Close the event stream."""
        self._closed = True
        self._ready.clear()
        await self._hang_up()

    async def _begin(self) -> None:
        """Connect to the server, and wait for the first event, which it sends at once."""
        if not await self._hear(await self._connect()):
            url = self._link.address.url
            raise ServerUnreachableError(f"the event stream of {url} ended before it began")
        self._begun = True

    async def _connect(self) -> AsyncIterator[bytes]:
        headers = {"last-event-id": self._last_id} if self._last_id is not None else {}
        self._response = await self._link.stream(self._path, headers)
        self._pieces = self._response.aiter_bytes()
        self._frames = FrameReader()
        if self._begun and self._last_id is None:
            self._ready.append(Resync())
        return self._pieces

    async def _come_back(self) -> None:
        """Try to reconnect, after a pause that grows with each attempt."""
        if self._tries == 0:
            self._lost_at = monotonic()
        elif monotonic() - self._lost_at > GIVE_UP_S:
            url = self._link.address.url
            raise ServerUnreachableError(f"the server at {url} is away for too long; {START}")
        await asyncio.sleep(min(FIRST_PAUSE_S * 2**self._tries, LONGEST_PAUSE_S))
        self._tries += 1
        try:
            await self._connect()
        except TimeLimitError:
            pass
        except ServerError as error:
            if error.status not in _AWAY:
                raise

    async def _hear(self, pieces: AsyncIterator[bytes]) -> bool:
        """Read the next bytes and queue their events; return False once the stream has ended."""
        import httpx

        try:
            piece = await anext(pieces, b"")
        except httpx.TransportError:
            piece = b""
        if not piece:
            await self._hang_up()
            return False
        for frame in self._frames.feed(piece):
            self._tries = 0
            self._last_id = frame.id or self._last_id
            told = self._read(frame.data)
            if told is not None:
                self._ready.append(told)
        return True

    async def _hang_up(self) -> None:
        response, self._response, self._pieces = self._response, None, None
        if response is not None:
            await response.aclose()
