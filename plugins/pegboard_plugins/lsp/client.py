"""The client of a language server: pygls for the protocol, over a bounded transport.

The transport of pygls takes messages of any length, waits for answers without a limit, and ignores
invalid messages.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from concurrent.futures import InvalidStateError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import cattrs
from lsprotocol import types
from lsprotocol.converters import get_converter
from lsprotocol.validators import UINTEGER_MAX_VALUE
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient
from pygls.protocol import JsonRPCProtocol, JsonRPCRequestMessage

from pegboard import ToolError

START_S = 45.0
REQUEST_S = 15.0
PATIENCE_S = 3.0
"""The longest that diagnostics are waited for."""
STOP_S = 1.0
LIMIT_BYTES = 16 << 20
"""The longest message that is taken."""
UNSENT_BYTES = 16 << 20
"""How much may wait for a server that does not read."""
_SHORT_BYTES = 64 << 10
"""Longer messages become values in a thread: so much takes 10 ms."""
_NOT_VALID = (OSError, ValueError, RecursionError, asyncio.LimitOverrunError)


class ServerGoneError(ToolError):
    """An error for a server that has ended, or that violates the protocol."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the language server is gone: {reason}")


class LSPClient(LanguageClient):
    """Typed requests to a language server, each with a time limit.

    Methods with a name that ends in `_async` raise ToolError if the server refuses the request,
    answers late, or sends an invalid answer. All methods raise ServerGoneError if the server has
    ended or broken the protocol.
    """

    protocol: "Protocol"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # pygls asks for a server's protocol, which would end this process where it is told `exit`.
        super().__init__("pegboard", "", Protocol, _converter)  # type: ignore[arg-type]
        self._reader = reader
        self._outlet = _Outlet(writer)
        self.protocol.set_writer(self._outlet)

    async def run(self) -> None:
        """Receive messages until the server closes its output or sends an invalid message."""
        _keep_quiet()
        reason = "it was stopped"
        try:
            # No limit of time: a server is silent until it is asked.
            while True:
                await self.protocol.take(await self._body())
        except (asyncio.IncompleteReadError, BrokenPipeError):
            reason = "it has ended"
        except _NOT_VALID as error:
            reason = f"it sent no valid message ({error})"
        finally:
            self._outlet.close(reason)
            self.protocol.give_up(reason)

    async def _body(self) -> bytes:
        head = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(
            line.lower().split(":", 1) for line in head.decode("ascii").splitlines() if ":" in line
        )
        length = int(fields.get("content-length", "-1"))
        if not 0 <= length <= LIMIT_BYTES:
            raise ValueError(f"of {length} bytes")
        return await self._reader.readexactly(length)


class Protocol(JsonRPCProtocol):
    """The client side of the Language Server Protocol, with pygls' messages.

    `unanswered` counts requests without an answer in time; any message from the server resets it.
    """

    unanswered = 0

    def get_message_type(self, method: str) -> type[Any] | None:
        """Return the type of a request or notification."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> type[Any] | None:
        """Return the type of the answer to a request."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification to the server.

        :raises ServerGoneError: when the server has ended.
        """
        try:
            super().notify(method, params)
        except BrokenPipeError as error:
            raise ServerGoneError(str(error)) from error

    async def send_request_async(
        self, method: str, params: object = None, msg_id: int | str | None = None
    ) -> Any:  # noqa: ANN401 - the client's methods say what each request gives
        """Send a request and return its answer; the class `LSPClient` describes the errors."""
        number = msg_id or str(uuid4())
        limit_s = _limit_s(method)
        try:
            async with asyncio.timeout(limit_s):
                return await super().send_request_async(method, params, number)
        except BrokenPipeError as error:
            raise ServerGoneError(str(error)) from error
        except JsonRpcException as error:
            raise ToolError(f"the language server refused {method}: {error.message}") from error
        except TimeoutError as error:
            self.unanswered += limit_s >= REQUEST_S
            self.notify(types.CANCEL_REQUEST, types.CancelParams(number))
            text = f"the language server did not answer {method} within {limit_s:g} s"
            raise ToolError(text) from error
        finally:
            self._request_futures.pop(number, None)
            self._result_types.pop(number, None)

    async def take(self, body: bytes) -> None:
        """Handle a message from the server.

        :raises ValueError: for an invalid message.
        """
        self.unanswered = 0
        if len(body) > _SHORT_BYTES:
            message = await asyncio.to_thread(self._structured, body)
        else:
            message = self._structured(body)
        if message is not None:
            # The answer may come just when nobody waits for it any longer.
            with suppress(InvalidStateError):
                self.handle_message(message)

    def give_up(self, reason: str) -> None:
        """Fail the requests that have no answer yet, with this reason."""
        for future in self._request_futures.values():
            if not future.done():
                future.set_exception(ServerGoneError(reason))

    def _send_response(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - pygls calls it
        with suppress(BrokenPipeError):  # whoever reads learns that the server is gone
            super()._send_response(*args, **named)

    def _structured(self, body: bytes) -> Any:  # noqa: ANN401 - pygls gives messages no type
        message = json.loads(body)
        if not isinstance(message, dict) or "jsonrpc" not in message:
            raise ValueError("not of JSON-RPC 2.0")
        try:
            return self.structure_message(message)
        except JsonRpcException:
            return _unlike_the_protocol(message)


class _Outlet:
    """The writer that pygls sends messages with.

    It raises BrokenPipeError if the server has ended, or does not read what is sent.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._reason = ""

    def write(self, data: bytes) -> None:
        transport = self._writer.transport
        if self._reason or transport.is_closing():
            raise BrokenPipeError(self._reason or "it has ended")
        if transport.get_write_buffer_size() > UNSENT_BYTES:
            raise BrokenPipeError("it does not read what it is sent")
        self._writer.write(data)

    def close(self, reason: str = "it was stopped") -> None:
        self._reason = self._reason or reason
        self._writer.close()


def _keep_quiet() -> None:
    """Keep pygls' warnings, for example about unknown messages, from the terminal."""
    log = logging.getLogger("pygls")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


def _unlike_the_protocol(message: Mapping[str, Any]) -> object | None:
    """Return what pygls handles in place of an invalid message; None if the message has no id.

    This is an untyped request, or an error in place of an answer.
    """
    if "id" not in message:
        return None
    if "method" in message:
        params = message.get("params")
        return JsonRPCRequestMessage(message["id"], message["method"], "2.0", params)
    text = str(message.get("error", "its answer cannot be read"))
    error = types.ResponseError(types.ErrorCodes.ParseError, text)
    return types.ResponseErrorMessage(message["id"], error)


def _converter() -> cattrs.Converter:
    """Return lsprotocol's converter, extended for two irregularities of real servers."""
    converter = get_converter()
    converter.register_structure_hook(types.Position, _position)
    converter.register_structure_hook(types.ServerCapabilities, _capabilities)
    return converter


def _capabilities(given: Mapping[str, Any], _: type[Any]) -> types.ServerCapabilities:
    """Parse only the capabilities that Pegboard uses; others may be invalid (lsprotocol#462)."""
    pulls = isinstance(given.get("diagnosticProvider"), Mapping)
    return types.ServerCapabilities(
        position_encoding=given.get("positionEncoding"),
        diagnostic_provider=types.DiagnosticOptions(False, False) if pulls else None,  # noqa: FBT003
    )


def _position(given: Mapping[str, float], _: type[Any]) -> types.Position:
    """Parse a position; a number that is too large means the end."""
    line, character = (
        int(min(max(given[name], 0), UINTEGER_MAX_VALUE)) for name in ("line", "character")
    )
    return types.Position(line, character)


def _limit_s(method: str) -> float:
    match method:
        case types.INITIALIZE:
            return START_S
        case types.SHUTDOWN:
            return STOP_S
        case types.TEXT_DOCUMENT_DIAGNOSTIC:
            return PATIENCE_S
        case _:
            return REQUEST_S
