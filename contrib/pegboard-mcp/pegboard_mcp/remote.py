"""The HTTP transports, with limits on a server's responses.

The first connection to a remote server imports this module, because it imports the MCP SDK.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
import httpx2
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.httpclient import READ_S, LimitedClient
from pegboard_mcp.traffic import LINE_BYTES, NotedStream, Traffic


@asynccontextmanager
async def http_streams(
    config: ServerConfig, traffic: Traffic, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """Connect to a remote server, and yield the streams of messages.

    The SDK follows redirects only within the origin of the URL, so no header reaches another host.
    """

    def made(*_: object, **_facts: object) -> httpx2.AsyncClient:
        client = LimitedClient(config.url, traffic, auth)
        client.headers.update(config.headers)
        return client

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
            yield _Screened(inbound, traffic), NotedStream(outbound, traffic)
        finally:
            traffic.end()


class _Screened:
    """The stream of messages from a remote server, checked in the same way as a local server's."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    @property
    def last_context(self) -> object:
        """The context of the newest message; the SDK reads this attribute of a stream."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        message = await self._inner.receive()
        if isinstance(message, SessionMessage):
            message.message = self._traffic.screened(self._traffic.taken(message.message))
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
