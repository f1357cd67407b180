"""An HTTP proxy on loopback, which connects every name to this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pegboard.testing.closing import stop_accepting


@dataclass(slots=True)
class HttpProxy:
    """`requests` are the first lines and the logins of what was asked."""

    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address with a login."""
        return f"http://me:pass%20word@127.0.0.1:{self.port}"


LOGIN = "proxy-authorization: Basic bWU6cGFzcyB3b3Jk"
"""What the login of the URL is in a request."""


@asynccontextmanager
async def http_proxy(*, status: int = 200) -> AsyncIterator[HttpProxy]:
    """Run a proxy, which answers every request with another status than 200 if one is given."""
    proxy = HttpProxy()
    tasks: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        login = [line for line in lines if line.lower().startswith("proxy-authorization")]
        proxy.requests.extend([lines[0], *login])
        method, target, _ = lines[0].split(" ")
        if status != 200:
            writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())
            writer.close()
            return
        place = target if method == "CONNECT" else target.split("/")[2]
        _, _, port = place.rpartition(":")
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            up_writer.write(head.replace(f"http://{place}".encode(), b"", 1))
        await asyncio.gather(pipe(reader, up_writer), pipe(up_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        await stop_accepting(server)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        await server.wait_closed()
