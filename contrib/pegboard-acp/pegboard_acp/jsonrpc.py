"""One end of a JSON-RPC 2.0 connection that sends each message as a line of JSON."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

LINE_LIMIT_BYTES = 64 << 20
"""Of one message: a prompt with pictures in base64."""
_CHUNK_BYTES = 1 << 16
_NO_PARAMS = Raw(b"{}")
_NULL = Raw(b"null")
_CANCEL = "$/cancel_request"
_log = logging.getLogger("pegboard.acp")
_T = TypeVar("_T")

RequestId = int | str | None


class ErrorCode(IntEnum):
    """The error codes of JSON-RPC 2.0 and ACP."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    RESOURCE_NOT_FOUND = -32002


class RpcError(Exception):
    """The error of a failed request, sent to or received from the other end of the connection."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RPCResult(NamedTuple):
    """The result of a JSON-RPC request, and an action to run after the result was sent."""

    value: object
    then: Callable[[], Awaitable[None]] | None = None


Handler = Callable[[str, Raw], Awaitable[RPCResult]]


class _Message(msgspec.Struct):
    id: RequestId | UnsetType = UNSET
    method: str | None = None
    params: Raw = _NO_PARAMS
    result: Raw | UnsetType = UNSET
    error: "_Error | None" = None


class _Error(msgspec.Struct):
    code: int
    message: str = ""
    data: Any = None


class _CancelParams(msgspec.Struct, rename="camel"):
    request_id: RequestId


_decoder = msgspec.json.Decoder(_Message)


class Peer:
    """One end of a JSON-RPC connection, which answers requests and sends requests.

    `handle` is called for each request and notification, in a separate task. The tasks start in the
    order of the messages.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: dict[RequestId, asyncio.Task[None]] = {}
        self._waiting: dict[RequestId, asyncio.Future[Raw]] = {}
        self._last_id = 0

    async def serve(self) -> None:
        """Serve until the other end closes a stream; then cancel the running requests."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch_output())
            async for line in lines(self._reader):
                self._take(line, group)
            await asyncio.sleep(0)  # what needs no waiting is answered
            for task in (watching, *self._tasks):
                task.cancel()

    def notify(self, method: str, params: object) -> None:
        """Write a notification into the output buffer; `drain` waits until the buffer is sent."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def drain(self) -> None:
        """Wait until the output buffer has space, or the other end has closed the connection."""
        with suppress(ConnectionError):
            await self._writer.drain()

    async def request(self, method: str, params: object, result_type: type[_T]) -> _T:
        """Send a request, and wait without a limit for the answer, which may come from a user.

        If the task is cancelled, `$/cancel_request` withdraws the request.

        :raises RpcError: when the answer is an error, or cannot be decoded as `result_type`.
        """
        self._last_id += 1
        name = self._last_id
        answer = self._waiting[name] = asyncio.get_running_loop().create_future()
        self._write({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        try:
            return msgspec.json.decode(await answer, type=result_type)
        except msgspec.MsgspecError as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, f"the answer to {method}: {error}") from error
        except asyncio.CancelledError:
            self.notify(_CANCEL, {"requestId": name})
            raise
        finally:
            self._waiting.pop(name, None)

    async def _watch_output(self) -> None:
        """Stop reading messages when the other end of the connection no longer reads ours."""
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        self._reader.feed_eof()

    def _take(self, line: bytes | None, group: asyncio.TaskGroup) -> None:
        if line is None:
            limit = f"a message has at most {LINE_LIMIT_BYTES >> 20} MiB"
            self._refuse(None, RpcError(ErrorCode.INVALID_REQUEST, limit))
            return
        try:
            str(line, "utf-8")  # also of what is decoded later
            message = _decoder.decode(line)
        except msgspec.ValidationError as error:
            self._refuse(None, RpcError(ErrorCode.INVALID_REQUEST, str(error)))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._refuse(None, RpcError(ErrorCode.PARSE_ERROR, f"not JSON: {error}"))
        else:
            self._dispatch(message, group)

    def _dispatch(self, message: _Message, group: asyncio.TaskGroup) -> None:
        name = message.id
        if message.method is None:
            self._settle(message)
        elif message.method == _CANCEL:
            self._cancel(message.params)
        elif name in self._answering:
            text = f"a request with the id {name!r} is being answered"
            self._refuse(None, RpcError(ErrorCode.INVALID_REQUEST, text))
        else:
            task = group.create_task(self._answer(message.method, message.params, name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if name is not UNSET:
                self._answering[name] = task
                task.add_done_callback(partial(self._on_end, name))

    def _on_end(self, name: RequestId, task: "asyncio.Task[None]") -> None:
        """Answer a cancelled request when its task has ended, even if the task never started."""
        del self._answering[name]
        if task.cancelled():
            self._refuse(name, RpcError(ErrorCode.REQUEST_CANCELLED, "cancelled"))

    async def _answer(self, method: str, params: Raw, name: RequestId | UnsetType) -> None:
        try:
            result = await self._handle(method, params)
        except RpcError as error:
            if name is not UNSET:
                self._refuse(name, error)
            return
        except Exception as error:  # noqa: BLE001 - the outermost frame of one request
            _log.exception("%s failed", method)
            if name is not UNSET:
                text = f"{type(error).__name__}: {error}"
                self._refuse(name, RpcError(ErrorCode.INTERNAL_ERROR, text))
            return
        if name is not UNSET:
            self._write({"jsonrpc": "2.0", "id": name, "result": result.value})
            await self.drain()
        if result.then is not None:
            await result.then()

    def _settle(self, message: _Message) -> None:
        """Pass an answer from the other end to the request that waits for it."""
        waiting = None if message.id is UNSET else self._waiting.get(message.id)
        if waiting is None or waiting.done():
            return  # the request was withdrawn meanwhile
        if message.error is not None:
            error = message.error
            waiting.set_exception(RpcError(error.code, error.message, error.data))
        else:
            waiting.set_result(_NULL if message.result is UNSET else message.result)

    def _cancel(self, params: Raw) -> None:
        with suppress(msgspec.MsgspecError):
            asked = msgspec.json.decode(params, type=_CancelParams)
            if (task := self._answering.get(asked.request_id)) is not None:
                task.cancel()

    def _refuse(self, name: RequestId, error: RpcError) -> None:
        body = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        self._write({"jsonrpc": "2.0", "id": name, "error": body})

    def _write(self, message: dict[str, object]) -> None:
        if not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(message) + b"\n")


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Yield lines without their line ends; yield None for a line over `LINE_LIMIT_BYTES`.

    Empty lines and an incomplete last line are skipped.
    """
    pieces: list[bytes] = []
    size = 0
    while chunk := await reader.read(_CHUNK_BYTES):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            size += len(end)
            line = None if size > LINE_LIMIT_BYTES else b"".join((*pieces, end))
            pieces, size = [], 0
            if line is None or line.strip():
                yield line
        size += len(rest)
        if size <= LINE_LIMIT_BYTES:
            pieces.append(rest)
        else:
            pieces.clear()
