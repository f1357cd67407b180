"""Connections with limits on the size and the duration of each request.

uvicorn's own class limits only the buffered body, and only while the application reads slowly.
"""

import asyncio
import logging
import resource
import time
from typing import Any

from starlette.types import Scope
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD_BYTES = 64 << 10
"""Of a head, and of what stands around a body: the sizes of its chunks, and what follows it."""
HEAD_WITHIN_S = 10.0
"""For a head, and for the rest of a request that is answered already."""
MOST_WAITING = 16
"""Requests on one connection that come before the answer to the first."""
KEPT_FILES = 256
"""Of the files that the process may have open, for all that is no connection."""
ACCEPTED_AT_ONCE = 16
"""In one turn of the loop; some turns pass before they are counted."""
TOLD_EVERY_S = 10.0
_log = logging.getLogger("pegboard.server")
_REFUSED = "connections are refused"
_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_SLOW = b"408 Request Timeout"
_AMBIGUOUS = b"400 Bad Request"
_INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
_INTERIM_EXTENSION = "pegboard.interim"
_REFUSAL = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on the size of requests, and on the time they take."""

    _extra_bytes = 0
    _timer: asyncio.TimerHandle | None = None
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Wait for the request of a new client; refuse the client if there are too many."""
        super().connection_made(transport)
        most = _most_connections()
        if len(self.connections) > most:
            transport.abort()
            reason = f"{_REFUSED}: {most} are open, which is the most; raise `ulimit -n`"
            self.loop.call_exception_handler({"message": reason})
        else:
            self._expect_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a client that has gone."""
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; refuse the request if its head exceeds `LONGEST_HEAD_BYTES`."""
        self._extra_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._extra_bytes > LONGEST_HEAD_BYTES:
            self._refuse(_TOO_LARGE)
        elif not self._is_answering():  # uvicorn's own limit ends with the first byte
            self._expect_more()

    def on_message_begin(self) -> None:
        """Begin the first or a later request on the connection."""
        super().on_message_begin()
        scope = self.scope
        scope["extensions"] = {_INTERIM_EXTENSION: {"send": lambda: self._send_interim(scope)}}
        self._in_head = True
        self._expect_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive one header; ignore the headers that follow a chunked body."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Accept or refuse a request whose headers are complete."""
        is_full = len(self.pipeline) >= MOST_WAITING
        if not self._is_clear() or (
            self._is_answering() and (is_full or self.parser.should_upgrade())
        ):
            self._refuse(_AMBIGUOUS)
            raise RefusedError
        self._in_head = False
        self._extra_bytes = 0
        self._cancel_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a part of a request's body."""
        self._extra_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete the receipt of a request, and reset the count of its bytes."""
        self._extra_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP, unless the connection is already closing."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _is_clear(self) -> bool:
        """Return whether the request states its length and its host without ambiguity.

        Two lengths, or an unknown coding, are ambiguous (RFC 9112 §6.3).
        """
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        is_sized = any(name == b"content-length" for name, _ in self.headers)
        if codings and (
            is_sized
            or self.parser.get_http_version() == "1.0"
            or [each.strip().lower() for each in codings] != [b"chunked"]
        ):
            return False
        # A whole address instead of a path would name another host than the `Host` header.
        return self.url.startswith(b"/")

    def _send_interim(self, scope: HTTPScope) -> None:
        is_waiting = self.cycle.scope is scope and not self.cycle.response_started
        if is_waiting and scope["http_version"] == "1.1" and not self.transport.is_closing():
            self.transport.write(_INTERIM)

    def _is_answering(self) -> bool:
        return (
            self.cycle is not None  # type: ignore[redundant-expr] # it is, before the first request
            and not self.cycle.response_complete
        )

    def _expect_more(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_WITHIN_S, self._refuse, _TOO_SLOW)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes) -> None:
        """Close the connection; if a request waits for a response, send the error status first."""
        if self.transport.is_closing():
            return
        if self._in_head and not self._is_answering():
            self.transport.write(_REFUSAL % status)
        self.transport.close()


def send_interim(scope: Scope) -> None:
    """Send an interim response 102 before the response to a request, if the connection allows it.

    A client of HTTP/1.1 skips it (RFC 9110 §15.2).
    """
    extension = (scope.get("extensions") or {}).get(_INTERIM_EXTENSION)
    if extension is not None:
        extension["send"]()


class RefusedError(Exception):
    """An error after which the server reads no more from the connection."""


class AcceptFailures:
    """A handler of event loop errors, which limits how often failed connections are logged."""

    def __init__(self) -> None:
        self._told_at = -TOLD_EVERY_S

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the event loop; log failed connections at most every ten seconds."""
        message = str(context.get("message"))
        if not message.startswith(("socket.accept()", _REFUSED)):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._told_at >= TOLD_EVERY_S:
            self._told_at = time.monotonic()
            error = context.get("exception")
            _log.error("%s", f"no connection can be taken: {error}" if error else message)


def _most_connections() -> int:
    """Return the highest number of connections, below the process's limit of open files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return files - min(KEPT_FILES, files // 2)
