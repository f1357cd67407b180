"""One socket to a server, with one HTTP/1.1 exchange at a time.

Pegboard has its own connection because of the start-up time: httpcore takes 45 ms, aiohttp 105 ms,
and this module 3 ms. The Python bindings of reqwest leave the socket open when a request is
cancelled early, or wake the loop for every delta. httptools (the C parser of Node) parses, and
asyncio does TLS.
"""

import asyncio
from collections import deque

from httptools import HttpParserError, HttpResponseParser

BUFFER_LIMIT_BYTES = 1 << 20
"""How much of an answer may wait here before the server is made to wait."""
DRAIN_LIMIT_BYTES = 1 << 16
"""How much may come after the part of an answer that was of interest."""
HEAD_LIMIT_BYTES = 1 << 20
"""How long the head of an answer, or its trailers, may be; servers allow 8 to 64 KiB."""
_INFORMATIONAL = range(100, 200)
_CUT_OFF = "the connection closed before the answer was complete"


class BrokenAnswerError(ConnectionError):
    """An error for invalid HTTP, or for a connection that ends during an answer."""


class Connection(asyncio.Protocol):
    """A connected socket: call `send`, then `head`, then `read` until `read` returns nothing.

    Call `abort` to end an exchange that is not read to its end. `reusable` is whether the next
    request may be sent on this socket.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.answered = False
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._unread = 0
        self._head_is_there = False
        self._complete = True
        self._kept = True
        self._draining = False
        self._drained = 0
        self._failure: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def reusable(self) -> bool:
        """Whether the last exchange is complete and the server has not closed the socket."""
        closing = self._transport is None or self._transport.is_closing()
        return self._complete and self._kept and not closing and not self._failure

    @property
    def transport(self) -> asyncio.Transport:
        """The transport for writing; replaced when TLS starts inside a tunnel."""
        assert self._transport
        return self._transport

    def send(self, head: bytes, body: bytes = b"") -> None:
        """Start an exchange: send a whole request."""
        self.status, self.headers, self.answered = 0, {}, False
        self._pieces.clear()
        self._buffered = self._unread = 0
        self._head_is_there = self._complete = self._draining = False
        self._parser = HttpResponseParser(self)
        self.transport.writelines((head, body))

    async def head(self) -> None:
        """Read until `status` and `headers` of the response are known, without a time limit.

        :raises OSError: when the connection breaks before that.
        """
        while not self._head_is_there:
            if self._failure:
                raise self._failure
            await self._wait()

    async def read(self) -> bytes:
        """Return the next bytes of the response body, or b"" at its end, without a time limit.

        :raises OSError: when the connection breaks before the end.
        """
        while not self._pieces:
            if self._complete:
                return b""
            if self._failure:
                raise self._failure
            await self._wait()
        content = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        self.transport.resume_reading()
        return content

    def leave(self) -> None:
        """Ignore the rest of this response; the socket is reusable once the rest has arrived."""
        self._draining, self._drained = True, 0
        self._pieces.clear()
        if not self._complete and self._transport:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the socket at once, even in the middle of a response."""
        self._kept = False
        if self._transport:
            self._transport.abort()

    def tunnel(self, transport: asyncio.Transport) -> None:
        """Continue with this TLS transport, inside the tunnel of a proxy."""
        self._transport = transport
        self._complete = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport; called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; called by asyncio."""
        if self._parser is None or self._complete:
            self.abort()  # nobody asked: what comes cannot be told from a later answer
            return
        self.answered = True
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            self._fail(BrokenAnswerError(f"the server does not speak HTTP ({error})"))
            self.abort()
        if self._unread > HEAD_LIMIT_BYTES and not self._complete:
            size = f"{HEAD_LIMIT_BYTES >> 20} MiB"
            self._fail(BrokenAnswerError(f"the head or the end of the answer exceeds {size}"))
            self.abort()

    def eof_received(self) -> None:
        """Let asyncio close the socket, because the server will send no more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that the socket is closed, and whether this ends or breaks the response."""
        self._kept = False
        if self._head_is_there and exc is None and self._ends_with_connection():
            self._complete = True
        elif not self._complete:
            failure = exc if isinstance(exc, OSError) else BrokenAnswerError(_CUT_OFF)
            self._fail(failure)
        self._wake()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header of the response; ignore trailers after the body (RFC 9110 6.5)."""
        if self._head_is_there:
            return
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Record the status of the response, and that its headers are complete."""
        assert self._parser
        status = self._parser.get_status_code()
        if status not in _INFORMATIONAL:
            self._unread = 0
            self.status = status
            self._head_is_there = True
            self._wake()

    def on_body(self, body: bytes) -> None:
        """Store a chunk of the response body."""
        self._unread = 0
        if self._draining:
            self._drained += len(body)
            if self._drained > DRAIN_LIMIT_BYTES:
                self.abort()
            return
        self._pieces.append(body)
        self._buffered += len(body)
        if self._buffered > BUFFER_LIMIT_BYTES:
            self.transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """Record the end of the response, or of a 1xx response before it."""
        if not self._head_is_there:
            self.headers = {}
            return
        assert self._parser
        self._complete = True
        self._kept = self._parser.should_keep_alive()
        self._wake()

    def _ends_with_connection(self) -> bool:
        return "content-length" not in self.headers and "transfer-encoding" not in self.headers

    def _fail(self, failure: OSError) -> None:
        self._failure = self._failure or failure
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
