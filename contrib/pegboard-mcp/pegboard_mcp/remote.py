"""The transport over streamable HTTP, with limits on what a server answers.

This module is imported at the first connection to a remote server, since it imports the SDK.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from pegboard.http import is_loopback
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.storedauth import missing_scope
from pegboard_mcp.traffic import LINE_BYTES, Traffic

CONNECT_S = 30.0
READ_S = 300.0
"""The longest time without a byte of an open response."""
_UNAUTHORIZED = 401


@asynccontextmanager
async def http_streams(
    config: ServerConfig, traffic: Traffic, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of messages with a remote server.

    The SDK follows redirects within the origin of the URL alone, so no header leaves it.
    """
    is_local = is_loopback(urlsplit(config.url).hostname or "")
    inner = httpx2.AsyncHTTPTransport(trust_env=not is_local)

    def made(*_: object, **_facts: object) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=_LimitedTransport(inner, traffic),
            headers=config.headers,
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            auth=auth,
            trust_env=not is_local,
        )

    async with AsyncExitStack() as leaving:
        if config.transport == "sse":  # which enters its client itself
            transport = sse_client(config.url, httpx_client_factory=made, sse_read_timeout=READ_S)
        else:
            client = await leaving.enter_async_context(made())
            transport = streamable_http_client(
                config.url, http_client=client, max_sse_event_size=LINE_BYTES
            )
        inbound, outbound = await leaving.enter_async_context(transport)
        try:
            yield _Screened(inbound, traffic), _Noted(outbound, traffic)
        finally:
            traffic.end()


class _Screened:
    """The messages from a server, screened as those of a process are."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    @property
    def last_context(self) -> object:
        """The context of the newest message, for the SDK."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        message = await self._inner.receive()
        if isinstance(message, SessionMessage):
            message.message = self._traffic.screened(message.message)
        return message

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            self._traffic.end("closed the connection")
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Noted:
    """The messages to a server, of which the traffic takes note."""

    def __init__(self, inner: WriteStream[SessionMessage], traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def send(self, item: SessionMessage, /) -> None:
        self._traffic.note_sent(item.message)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _LimitedTransport(httpx2.AsyncBaseTransport):
    """Requests whose answers are bounded; it notes when the server wants authorization."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            self._traffic.note_unreachable(str(error) or type(error).__name__)
            raise
        self._traffic.is_unauthorized = response.status_code == _UNAUTHORIZED
        self._traffic.missing_scope = missing_scope(response)
        self._traffic.note_unreachable("")
        if "text/event-stream" not in response.headers.get("content-type", ""):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _LimitedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedStream(httpx2.AsyncByteStream):
    """A body of at most as many bytes as a line of a process may have."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > LINE_BYTES:
                raise httpx2.ReadError(f"answered with more than {LINE_BYTES >> 20} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
