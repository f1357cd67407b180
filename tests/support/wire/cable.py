"""A cable between a client and a server: it can be cut, and stay cut for a while."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from pegboard.testing.closing import stop_accepting

STREAM = b"content-type: text/event-stream"


class Cable:
    """Passes bytes on between its own port and a server's."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._ends: set[asyncio.StreamWriter] = set()
        self._work: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._place = socket.socket()
        """Has the port also while the cable is cut: else another program could get it."""
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]
        self.connections = 0
        self.events_flow = asyncio.Event()
        """While it is not set, what an event stream tells stays on the way."""
        self.events_flow.set()

    @property
    def url(self) -> str:
        """The address of the near end; the server knows it by the name that it has itself."""
        return f"http://127.0.0.1:{self.port}"

    async def plug(self) -> None:
        """Let connections through; the port stays the same."""
        self._server = await asyncio.start_server(self._passed, "127.0.0.1", self.port)

    async def unplug(self) -> None:
        """Cut all connections, and take no new ones."""
        assert self._server is not None
        await stop_accepting(self._server)
        self.events_flow.set()
        self.cut()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._server.wait_closed()

    def give_back(self) -> None:
        """Give the port back."""
        self._place.close()

    def cut(self) -> None:
        """Break all connections at once, as a network does."""
        for end in tuple(self._ends):
            end.transport.abort()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._work.add(task)
        self.connections += 1
        try:
            far = await asyncio.open_connection(self._target.hostname, self._target.port)
            self._ends |= {writer, far[1]}
            await asyncio.gather(self._pumped(reader, far[1], True), self._pumped(far[0], writer))
            self._ends -= {writer, far[1]}
        finally:
            self._work.discard(task)

    async def _pumped(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, renamed: bool = False
    ) -> None:
        near, far = f"127.0.0.1:{self.port}".encode(), f"127.0.0.1:{self._target.port}".encode()
        head = rest = b""
        with suppress(ConnectionError):
            while piece := await source.read(1 << 16):
                if STREAM in head:
                    await self.events_flow.wait()
                else:
                    head = head[-len(STREAM) :] + piece.lower()
                if renamed:
                    piece = (rest + piece).replace(near, far)
                    rest = _begun(piece, near)
                    piece = piece[: len(piece) - len(rest)]
                sink.write(piece)
                await sink.drain()
        sink.close()


def _begun(piece: bytes, word: bytes) -> bytes:
    """Return the end of the piece with which the word may begin."""
    return next((word[:n] for n in range(len(word) - 1, 0, -1) if piece.endswith(word[:n])), b"")


@asynccontextmanager
async def cable(url: str) -> AsyncIterator[Cable]:
    """A cable to the server at this URL."""
    found = Cable(url)
    await found.plug()
    try:
        yield found
    finally:
        await found.unplug()
        found.give_back()
