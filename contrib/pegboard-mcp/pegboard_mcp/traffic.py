"""The traffic of a server connection: pending requests, limits, and why the connection ended."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from mcp.client._transport import WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from pegboard_mcp.listing import LIST_TOOLS, read_tools, time_to_live_s

LINE_BYTES = 16 << 20
UNASKED_BYTES = 16 << 20
"""The most that a server may write between two answers."""
NOTIFICATIONS_PER_S = 1000
_UNHEARD = "notifications/message"
"""Log messages: this client does not offer to take them."""
_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_PARSED = "parsed"
RAW = "pegboard.dev/raw"
"""The key of the `_meta` of a list for its items as the server sent them, and their lifetime."""
_ITEMS_PER_PAGE = 4 * LIST_TOOLS


class TrafficError(Exception):
    """A server has exceeded a limit on its messages.

    The message completes a sentence that begins with the server's name.
    """


class RequestOutcome:
    """The outcome of a request: whether the request was sent, and the HTTP error, if any."""

    def __init__(self) -> None:
        self.was_sent = False
        self.is_unauthorized = False
        self.missing_scope: str | None = None
        self.unreachable = ""


OUTCOME: ContextVar[RequestOutcome] = ContextVar("pegboard_mcp_outcome")
"""The outcome of the request under way; the SDK sends a request in the context of its caller."""


class Traffic:
    """The traffic of a connection; `ended` is set when the connection has ended."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self.ended = asyncio.Event()
        self.reason = ""
        self.log = log
        self._pending: dict[int | str, str] = {}
        self._parsed: dict[str, JSONRPCResponse] = {}
        self._unasked_bytes = 0
        self._second = 0
        self._in_second = 0
        self._is_junk_noted = False

    def end(self, reason: str = "") -> None:
        """Record the end of the connection; only the first reason counts."""
        self.reason = self.reason or reason
        self.ended.set()

    def note_sent(self, message: JSONRPCMessage) -> None:
        """Record a message to the server; a request is pending from then on."""
        if isinstance(message, JSONRPCRequest):
            self._pending[message.id] = message.method

    def check_line(self, size: int) -> None:
        """Check the length of an incoming line, which may be incomplete.

        :raises TrafficError: when the line is too long.
        """
        if size > LINE_BYTES:
            raise TrafficError(f"answered with more than {LINE_BYTES >> 20} MiB")

    def note_junk(self, text: str) -> None:
        """Log a line that is not a message; before the first such line, log an explanation."""
        if not self._is_junk_noted:
            self._is_junk_noted = True
            self.log("[the server writes lines to its standard output that are not messages]\n")
        self.log(f"{text}\n")
        self._count(len(text))

    def admits(self, method: str, number: int | str | None, size: int) -> bool:
        """Return whether to deliver a message to the SDK.

        :raises TrafficError: when the server has sent too many unrequested messages.
        """
        if not method and number in self._pending:
            self._unasked_bytes = 0
            return True
        self._count(size)
        return bool(method) and method != _UNHEARD

    def _count(self, size: int) -> None:
        self._unasked_bytes += size
        second = int(time.monotonic())
        self._in_second = self._in_second + 1 if second == self._second else 1
        self._second = second
        if self._in_second > NOTIFICATIONS_PER_S:
            raise TrafficError(f"sent more than {NOTIFICATIONS_PER_S} unasked messages in a second")
        if self._unasked_bytes > UNASKED_BYTES:
            raise TrafficError(f"sent more than {UNASKED_BYTES >> 20} MiB that nothing asked for")

    def stand_in(self, message: JSONRPCMessage) -> str:
        """Return the JSON text for the SDK to parse; an answer is replaced by a short placeholder.

        The SDK parses HTTP responses in the event loop's thread, where a long answer would block.
        `taken` returns the answer for its placeholder.
        """
        if isinstance(message, JSONRPCResponse):
            token = secrets.token_hex()
            self._parsed[token] = message
            message = JSONRPCResponse(jsonrpc="2.0", id=message.id, result={_PARSED: token})
        return message.model_dump_json(by_alias=True, exclude_unset=True)

    def taken(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """Return the answer that a placeholder of `stand_in` stands for, or else `message`."""
        if isinstance(message, JSONRPCResponse):
            answer = self._parsed.pop(str(message.result.get(_PARSED)), None)
            if answer is not None:
                return answer.model_copy(update={"id": message.id})
        return message

    def screened(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """Reduce a list in an answer to the items that the SDK can parse.

        The SDK rejects a whole list because of one invalid item.
        """
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            method = self._pending.pop(message.id, "")
            if isinstance(message, JSONRPCResponse) and (key := _LISTS.get(method)):
                self._screen(key, message.result)
        return message

    def _screen(self, key: str, result: dict[str, Any]) -> None:
        items = result.get(key)
        raw = items[:_ITEMS_PER_PAGE] if isinstance(items, list) else []
        lifetime_s = time_to_live_s(result.get("ttlMs"))
        result["_meta"] = {RAW: (raw, lifetime_s)}
        result["ttlMs"] = int((lifetime_s or 0) * 1000)
        result["cacheScope"] = "private"
        if not isinstance(result.get("nextCursor"), str):
            result.pop("nextCursor", None)
        result[key] = []
        if key == "tools":
            usable = read_tools(raw).tools
            result[key] = [{"name": it.name, "inputSchema": it.parameters} for it in usable]


class NotedStream:
    """The stream of messages to the server, which records each message in `traffic` first."""

    def __init__(self, inner: WriteStream[SessionMessage], traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        self._traffic.note_sent(item.message)
        await self._inner.send(item)
        if isinstance(item.message, JSONRPCRequest):
            OUTCOME.get(RequestOutcome()).was_sent = True

    async def aclose(self) -> None:
        """Close the wrapped stream."""
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
