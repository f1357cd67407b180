"""JSON-RPC with a language server over its standard input and output.

Our own, because pygls' client leaves the server's stderr unread until it blocks, takes messages
of any length, and costs 0.4 s to import; of the protocol a dozen messages are needed.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec

from pegboard import ToolError

LIMIT_BYTES = 32 << 20
"""The longest message that is taken."""
UNSENT_BYTES = 16 << 20
"""How much may wait for a server that does not read."""
_NO_METHOD = -32601


class ServerGoneError(ToolError):
    """The server has ended, or speaks something else than the protocol."""


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""
    code: int = 0


class _Message(msgspec.Struct, frozen=True):
    """A request, a notification or an answer."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Failure | None = None


class Connection:
    """Requests to a server, and what it says on its own; `run` reads until the server ends.

    `notified` hears method and parameters. `answers` are our answers to the server's requests,
    by method; it gets an error for any other.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        notified: Callable[[str, msgspec.Raw], None],
        answers: Mapping[str, Callable[[msgspec.Raw], object]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._notified = notified
        self._answers = answers
        self._ids = count(1)
        self._waiting: dict[int | str, asyncio.Future[_Message]] = {}
        self._ended = ""

    async def run(self) -> None:
        """Nothing, when the server has closed its output or sent what is no message."""
        try:
            # No limit of time: a server is silent until it is asked.
            while True:
                self._take(await self._message())
        except asyncio.IncompleteReadError:
            self._end("it has ended")
        except (OSError, ValueError, asyncio.LimitOverrunError, msgspec.MsgspecError) as error:
            self._end(f"it sent no valid message ({error})")
        except ServerGoneError:  # while a request of the server's was answered
            self._end("it has ended")
        finally:
            self._end("it was stopped")

    async def request(self, method: str, params: object, *, timeout_s: float) -> msgspec.Raw:
        """The result as JSON.

        :raises ServerGoneError: when the server ends before.
        :raises ToolError: for an error of the server's, and no answer in time.
        """
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(timeout_s):
                message = await answer
        except TimeoutError as error:
            self._send({"method": "$/cancelRequest", "params": {"id": number}})
            text = f"the language server did not answer {method} within {timeout_s:g} s"
            raise ToolError(text) from error
        finally:
            self._waiting.pop(number, None)
        if message.error is not None:
            raise ToolError(f"the language server refused {method}: {message.error.message}")
        result: msgspec.Raw = message.result
        return result

    def notify(self, method: str, params: object) -> None:
        """Tell the server something.

        :raises ServerGoneError: when it is gone.
        """
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._ended or self._writer.transport.is_closing():
            raise ServerGoneError(f"the language server is gone: {self._ended or 'it has ended'}")
        if self._writer.transport.get_write_buffer_size() > UNSENT_BYTES:
            raise ServerGoneError("the language server does not read what it is sent")
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _message(self) -> _Message:
        head = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(
            line.lower().split(":", 1) for line in head.decode("ascii").splitlines() if ":" in line
        )
        length = int(fields.get("content-length", "-1"))
        if not 0 <= length <= LIMIT_BYTES:
            raise ValueError(f"of {length} bytes")
        return msgspec.json.decode(await self._reader.readexactly(length), type=_Message)

    def _take(self, message: _Message) -> None:
        if message.method is None:
            waiting = self._waiting.get(message.id) if message.id is not None else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif message.id is None:
            self._notified(message.method, message.params)
        else:
            self._answer(message.id, message.method, message.params)

    def _answer(self, number: int | str, method: str, params: msgspec.Raw) -> None:
        known = self._answers.get(method)
        if known is None:
            self._send({"id": number, "error": {"code": _NO_METHOD, "message": "not offered"}})
        else:
            self._send({"id": number, "result": known(params)})

    def _end(self, reason: str) -> None:
        self._ended = self._ended or reason
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(
                    ServerGoneError(f"the language server is gone: {self._ended}")
                )
        self._writer.close()
