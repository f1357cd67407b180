"""Connections: their requests' heads are bounded in size and time, so that a trickle holds none."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD_BYTES = 64 << 10
HEAD_WITHIN_S = 10.0
_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_SLOW = b"408 Request Timeout"
_AMBIGUOUS = b"400 Bad Request"
_REFUSAL = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on the size and the time of a request's head."""

    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """A client has connected; its request is due."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come; those of a head are counted."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > LONGEST_HEAD_BYTES:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins, maybe on a connection that has had others."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._in_head = False
        self._head_bytes = 0
        self._cancel_timer()
        names = [name for name, _ in self.headers]
        two_lengths = b"content-length" in names and b"transfer-encoding" in names
        # A whole address instead of a path would name another host than the `Host` header.
        if two_lengths or not self.url.startswith(b"/"):
            self._refuse(_AMBIGUOUS)
            return
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._in_head = True
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_WITHIN_S, self._refuse, _TOO_SLOW)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(_REFUSAL % status)
            self.transport.close()
