"""The flow of bytes through a proxy: 64 KiB at a time, as fast as the slower connection allows."""

import asyncio
import re

import msgspec

from pegboard_plugins.sandbox.proxyrequest import Body, RequestRefusedError

CHUNK_BYTES = 64 << 10
CLOSE_S = 10.0
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class Stream(msgspec.Struct, frozen=True):
    """A connection to one of the two sides of a proxy: a reader and a writer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def close(self) -> None:
        """Send all bytes and close the connection; abort it after a time limit, or if cancelled."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            self.cut()
        self.writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.writer.wait_closed()
        except (TimeoutError, asyncio.CancelledError) as error:
            self.writer.transport.abort()
            if isinstance(error, asyncio.CancelledError):
                raise
        except OSError:
            pass  # it broke off

    def cut(self) -> None:
        """Abort the connection if it is still open."""
        if not self.writer.transport.is_closing():
            self.writer.transport.abort()


class Carrying:
    """The traffic between two connections, which ends after `idle_s` seconds without a byte."""

    def __init__(self, near: Stream, far: Stream, *, idle_s: float) -> None:
        self._near = near
        self._far = far
        self._idle_s = idle_s
        self._limit = asyncio.timeout(idle_s)

    async def tunnel(self) -> None:
        """Carry bytes in both directions until both have ended."""
        try:
            async with self._limit, asyncio.TaskGroup() as group:
                group.create_task(self._rest(self._near.reader, self._far.writer))
                group.create_task(self._rest(self._far.reader, self._near.writer))
        except* OSError:  # a connection broke off, or was idle: TimeoutError is one
            pass

    async def exchange(self, body: Body) -> None:
        """Forward a request's body, and the response until the server closes the connection."""
        sending = asyncio.create_task(self._send(body))
        try:
            async with self._limit:
                await self._rest(self._far.reader, self._near.writer)
        except OSError:  # likewise
            pass
        finally:
            sending.cancel()
            await asyncio.wait({sending})  # it ends at its next await

    async def _send(self, body: Body) -> None:
        reader, writer = self._near.reader, self._far.writer
        try:
            if body is None:
                await self._chunks(reader, writer)
            else:
                await self._exactly(body, reader, writer)
            if await reader.read(1):
                # Another request would be sent to this host, whatever its own is.
                self._far.cut()
        except (OSError, RequestRefusedError, asyncio.IncompleteReadError):
            self._far.cut()

    async def _rest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            await self._put(chunk, writer)
        if writer.can_write_eof():
            writer.write_eof()

    async def _exactly(
        self, count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while count:
            chunk = await reader.read(min(count, CHUNK_BYTES))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", count)
            count -= len(chunk)
            await self._put(chunk, writer)

    async def _chunks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on a chunked body with new chunk heads, and without trailers."""
        while True:
            found = _CHUNK.fullmatch(await _line(reader))
            if found is None:
                raise RequestRefusedError(400, "the body is not chunked as it says")
            size = int(found[1], 16)
            if size == 0:
                while await _line(reader) != b"\r\n":
                    pass
                await self._put(b"0\r\n\r\n", writer)
                return
            await self._put(b"%x\r\n" % size, writer)
            await self._exactly(size, reader, writer)
            if await reader.readexactly(2) != b"\r\n":
                raise RequestRefusedError(400, "a chunk is longer than it says")
            await self._put(b"\r\n", writer)

    async def _put(self, chunk: bytes, writer: asyncio.StreamWriter) -> None:
        self._alive()
        writer.write(chunk)
        await writer.drain()

    def _alive(self) -> None:
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + self._idle_s)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError as error:
        raise RequestRefusedError(400, "a line of the body is too long") from error
