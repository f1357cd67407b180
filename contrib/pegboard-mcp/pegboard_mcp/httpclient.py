"""The HTTP client for remote servers, with the same size limits as for local servers.

The first connection to a remote server imports this module, because it imports the MCP SDK.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2

from pegboard.http import is_loopback
from pegboard_mcp.messages import ValuesError, parse, read_head
from pegboard_mcp.storedauth import missing_scope
from pegboard_mcp.traffic import LINE_BYTES, OUTCOME, RequestOutcome, Traffic, TrafficError

CONNECT_S = 30.0
READ_S = 300.0
"""The longest time without a byte of an open response."""
_UNAUTHORIZED = 401
_EVENTS = "text/event-stream"


class LimitedClient(httpx2.AsyncClient):
    """An HTTP client that limits responses, and records why requests failed.

    Responses are not compressed, so that the limits apply to the bytes that are parsed. Requests to
    this machine do not use a proxy from the environment.
    """

    def __init__(self, url: str, traffic: Traffic, auth: httpx2.Auth | None) -> None:
        super().__init__(
            auth=auth,
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            trust_env=not is_loopback(urlsplit(url).hostname or ""),
            event_hooks={"request": [_want_no_encoding], "response": [self._bound]},
        )
        self._traffic = traffic

    async def send(self, request: httpx2.Request, **facts: Any) -> httpx2.Response:  # noqa: ANN401 - as its base
        """Send a request, and return the response with a size-limited body.

        :raises TransportError: when there is no response, or a compressed one.
        """
        outcome = OUTCOME.get(RequestOutcome())
        try:
            response = await super().send(request, **facts)
        except httpx2.TransportError as error:
            outcome.unreachable = str(error) or type(error).__name__
            raise
        outcome.unreachable = ""
        return response

    async def _bound(self, response: httpx2.Response) -> None:
        traffic, body = self._traffic, response.stream
        outcome = OUTCOME.get(RequestOutcome())
        outcome.is_unauthorized = response.status_code == _UNAUTHORIZED
        outcome.missing_scope = missing_scope(response)
        encoding = response.headers.get("content-encoding") or "identity"
        if encoding != "identity":
            text = f"it answers with the encoding {encoding}, although none is allowed"
            raise httpx2.ReadError(text)
        assert isinstance(body, httpx2.AsyncByteStream)
        if _EVENTS in response.headers.get("content-type", ""):
            headers = {"Content-Type": _EVENTS}
            events = httpx2.Response(200, headers=headers, stream=body, request=response.request)
            response.stream = _Bounded(body, _events(events, traffic), traffic)
        else:
            response.stream = _Bounded(body, _whole(body, traffic), traffic)


async def _want_no_encoding(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"


class _Bounded(httpx2.AsyncByteStream):
    """A response body that ends the connection if the server exceeds a limit."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, pieces: AsyncIterator[bytes], traffic: Traffic
    ) -> None:
        self._inner = inner
        self._pieces = pieces
        self._traffic = traffic

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces:
                yield piece
        except (TrafficError, ValuesError) as error:
            self._traffic.end(str(error))
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _whole(body: httpx2.AsyncByteStream, traffic: Traffic) -> AsyncIterator[bytes]:
    """Yield a complete response body; a placeholder stands for a JSON-RPC answer."""
    parts: list[bytes] = []
    size = 0
    async for chunk in body:
        parts.append(chunk)
        size += len(chunk)
        traffic.check_line(size)
    text = b"".join(parts).decode("utf-8", "replace")
    try:
        text = traffic.stand_in(await parse(text))
    except ValuesError:
        raise
    except ValueError:
        pass  # not a message, as the page of an error
    yield text.encode()


async def _events(response: httpx2.Response, traffic: Traffic) -> AsyncIterator[bytes]:
    """Yield server-sent events, each limited to the size of a message."""
    try:
        async for event in httpx2.EventSource(response, max_event_size=LINE_BYTES):
            is_message = event.event == "message" and event.data
            yield _encoded(event, await _delivered(event.data, traffic) if is_message else None)
    except httpx2.SSEError:
        traffic.check_line(LINE_BYTES + 1)


async def _delivered(text: str, traffic: Traffic) -> str:
    """Return the text that the SDK gets instead of a received message, or "" to drop the message.

    :raises TrafficError: when the server exceeds a limit.
    """
    try:
        head = read_head(text)
        # The SDK takes any answer in the stream of a request for the one to the request.
        if not traffic.admits(head.method, head.id, len(text)) and head.method:
            return ""
        return traffic.stand_in(await parse(text))
    except ValueError:
        traffic.note_junk(text)
        return ""


def _encoded(event: httpx2.ServerSentEvent, message: str | None) -> bytes:
    data = event.data if message is None else message
    fields = [f"event: {event.event}", *(f"data: {line}" for line in data.split("\n"))]
    if event.id:
        fields.append(f"id: {event.id}")
    if event.retry is not None:
        fields.append(f"retry: {event.retry}")
    return ("\n".join(fields) + "\n\n").encode()
