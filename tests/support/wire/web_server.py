"""A web server on loopback that answers each path as a test says, byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pegboard.testing.closing import stop_accepting


@dataclass
class Web:
    """What the server was asked, and where it is."""

    port: int = 0
    requests: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


Reply = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def page(body: bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> bytes:
    """A complete answer; `_` in a header's name stands for `-`."""
    lines = [f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return (
        f"HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()
    )


@asynccontextmanager
async def serving(replies: dict[str, Reply]) -> AsyncIterator[Web]:
    """The server, until the end of the block; a path that is not there gets 404."""
    web = Web()
    answering: set[asyncio.Task[None] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        web.connections += 1
        answering.add(asyncio.current_task())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = head[0].split()[1]
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            web.requests.append({"path": path, **fields})
            reply = replies.get(path, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
            else:
                await reply(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            answering.discard(asyncio.current_task())

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web
        await stop_accepting(server)
    left = [task for task in answering if task]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
