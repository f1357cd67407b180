"""A server on 127.0.0.1 that follows the script of a test, including socket faults."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pegboard.testing.closing import stop_accepting


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status and headers of a scripted answer; by default the server sends 200."""

    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in an answer, in seconds; None waits until the client leaves."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A break of the connection in the middle of an answer."""


Play = Sequence[bytes | Status | Pause | Disconnect]
"""One answer: bytes are a chunk of the body each."""


class ScriptedServer:
    """A server that answers each request with the next scripted answer; the last answer repeats.

    `requests` are the bodies received. `left` is set when a client leaves before the end.
    """

    def __init__(self, *plays: Play, content_type: str = "text/event-stream") -> None:
        self.requests: list[bytes] = []
        self.left = asyncio.Event()
        self._plays = plays
        self._content_type = content_type
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server

    @property
    def url(self) -> str:
        """The server's URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await stop_accepting(self._server)
        for writer in list(self._tasks.values()):
            writer.transport.abort()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = writer
        try:
            while (body := await _request(reader)) is not None:
                self.requests.append(body)
                play = self._plays[min(len(self.requests), len(self._plays)) - 1]
                if not await self._send_answer(play, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            del self._tasks[task]
            writer.transport.abort()

    async def _send_answer(
        self, play: Play, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send an answer; return whether the connection stays open afterwards."""
        head: Status | None = Status()
        if play and isinstance(play[0], Status):
            head, play = play[0], play[1:]
        for piece in play:
            match piece:
                case Disconnect():
                    return False
                case Pause():
                    await self._pause(piece, reader)
                case Status():
                    raise TypeError("the head of an answer stands first")
                case bytes():
                    if head is not None:
                        writer.write(self._head(head))
                        head = None
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    await writer.drain()
        writer.write((self._head(head) if head is not None else b"") + b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _pause(self, pause: Pause, reader: asyncio.StreamReader) -> None:
        try:
            async with asyncio.timeout(pause.seconds):
                if not await reader.read(1):
                    raise ConnectionError
        except TimeoutError:
            return

    def _head(self, status: Status) -> bytes:
        headers = {
            "content-type": self._content_type,
            "transfer-encoding": "chunked",
            **status.headers,
        }
        lines = (f"{name}: {value}" for name, value in headers.items())
        return "\r\n".join((f"HTTP/1.1 {status.code} Scripted", *lines, "", "")).encode()


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """Read the body of the next request, or return None if the client has left."""
    length = 0
    if not (line := await reader.readline()):
        return None
    while line.strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        line = await reader.readline()
    return await reader.readexactly(length)
