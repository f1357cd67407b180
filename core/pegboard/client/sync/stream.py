"""Events as a server tells them, without a gap."""

from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pegboard.client.address import START
from pegboard.client.events import FrameReader, Resync
from pegboard.client.sync.link import Link
from pegboard.errors import ServerError, ServerUnreachableError, TimeLimitError

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
GIVE_UP_S = 60.0
"""How long a server may be away; then the stream ends with the error."""
_AWAY = (None, 502, 503, 504)
"""What a server that starts again, or a proxy before it, answers: nothing, or one of these."""
_Told = TypeVar("_Told")


class EventStream(Generic[_Told]):
    """The events from here on, in order, until it is closed.

    Entering it, as with `with`, waits until the server listens: what happens after that is
    told. When the connection is lost, the stream comes back by itself and goes on behind the last
    event; a `Resync` says that events were lost on the way. A wait that is cancelled loses
    nothing either. There is no limit to how long nothing may happen.
    """

    def __init__(
        self, link: Link, path: str, read: Callable[[bytes], _Told | Resync | None]
    ) -> None:
        self._link = link
        self._path = path
        self._read = read
        self._ready: deque[_Told | Resync] = deque()
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] | None = None
        self._frames = FrameReader()
        self._last_id: str | None = None
        self._begun = self._closed = False
        self._tries = 0
        self._lost_at = 0.0

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Told | Resync:
        """The next event.

        :raises ServerUnreachableError: when the server is away for a minute.
        :raises ServerError: when it does not let the client come back.
        """
        if not self._begun:
            self._begin()
        while not self._ready:
            if self._closed:
                raise StopIteration
            if self._pieces is None:
                self._come_back()
            else:
                self._hear(self._pieces)
        return self._ready.popleft()

    def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._ready.clear()
        self._hang_up()

    def _begin(self) -> None:
        """Connect, and wait for the server's first word; it comes at once."""
        if not self._hear(self._connect()):
            url = self._link.address.url
            raise ServerUnreachableError(f"the event stream of {url} ended before it began")
        self._begun = True

    def _connect(self) -> Iterator[bytes]:
        headers = {"last-event-id": self._last_id} if self._last_id is not None else {}
        self._response = self._link.stream(self._path, headers)
        self._pieces = self._response.iter_bytes()
        self._frames = FrameReader()
        if self._begun and self._last_id is None:
            self._ready.append(Resync())
        return self._pieces

    def _come_back(self) -> None:
        """Try once more, after a pause that grows with each try."""
        if self._tries == 0:
            self._lost_at = monotonic()
        elif monotonic() - self._lost_at > GIVE_UP_S:
            url = self._link.address.url
            raise ServerUnreachableError(f"the server at {url} is away for too long; {START}")
        sleep(min(FIRST_PAUSE_S * 2**self._tries, LONGEST_PAUSE_S))
        self._tries += 1
        try:
            self._connect()
        except TimeLimitError:
            pass
        except ServerError as error:
            if error.status not in _AWAY:
                raise

    def _hear(self, pieces: Iterator[bytes]) -> bool:
        """Take in what comes next; False, and hung up, when nothing comes any more."""
        import httpx

        try:
            piece = next(pieces, b"")
        except httpx.TransportError:
            piece = b""
        if not piece:
            self._hang_up()
            return False
        for frame in self._frames.feed(piece):
            self._tries = 0
            self._last_id = frame.id or self._last_id
            told = self._read(frame.data)
            if told is not None:
                self._ready.append(told)
        return True

    def _hang_up(self) -> None:
        response, self._response, self._pieces = self._response, None, None
        if response is not None:
            response.close()
