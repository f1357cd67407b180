"""The transport over the standard streams of a server process, with limits on what it may send.

The SDK's transport has no line limit and decodes strictly. The first start of a server imports this
module, because it imports the MCP SDK.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from pegboard_mcp.messages import parse, read_head
from pegboard_mcp.traffic import NotedStream, Traffic, TrafficError

CHUNK_BYTES = 1 << 16
EOF_WAIT_S = 1.5
TERM_WAIT_S = 1.0
DRAIN_WAIT_S = 1.0
"""For a process that has left the server's group, and still has its output open."""


@asynccontextmanager
async def process_streams(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], traffic: Traffic
) -> AsyncIterator[TransportStreams]:
    """Run a server, yield its message streams, and afterwards end all processes of the server.

    :raises OSError: when the program cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=dict(env), start_new_session=True
    )
    inbound_in, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, outbound_out = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = (
        asyncio.create_task(_read(process, inbound_in, traffic)),
        asyncio.create_task(_write(process, outbound_out)),
        asyncio.create_task(_log(process, traffic)),
    )
    try:
        yield inbound, NotedStream(outbound, traffic)
    finally:
        with anyio.CancelScope(shield=True):
            traffic.end()
            await _end(process)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _drain(process)
            for stream in (inbound_in, inbound, outbound, outbound_out):
                stream.close()


async def _read(
    process: Process,
    inbound: MemoryObjectSendStream[SessionMessage | Exception],
    traffic: Traffic,
) -> None:
    """Pass on the server's messages until the server ends or exceeds a limit."""
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        try:
            while chunk := await process.stdout.read(CHUNK_BYTES):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    await _deliver(b"".join((*parts, line)), inbound, traffic)
                    parts, size = [], 0
                parts.append(rest)
                size += len(rest)
                traffic.check_line(size)
        except TrafficError as error:
            traffic.end(str(error))
            _kill(process, signal.SIGKILL)
        else:
            traffic.end("ended")
    inbound.close()


async def _deliver(
    line: bytes, inbound: MemoryObjectSendStream[SessionMessage | Exception], traffic: Traffic
) -> None:
    if not (line := line.strip()):
        return
    text = line.decode("utf-8", "replace")
    try:
        head = read_head(text)
        if not traffic.admits(head.method, head.id, len(line)):
            return
        message = await parse(text)
    except ValueError:
        traffic.note_junk(text)
        return
    await inbound.send(SessionMessage(traffic.screened(message)))


async def _write(process: Process, outbound: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    async for each in outbound:
        line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            process.stdin.write(line.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()
        except ConnectionError:
            return  # its end is seen where it is read


async def _log(process: Process, traffic: Traffic) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(CHUNK_BYTES):
        traffic.log(chunk.decode("utf-8", "replace"))


async def _end(process: Process) -> None:
    """Stop a server process: close its input, then terminate it, then kill its process group."""
    assert process.stdin is not None
    process.stdin.close()
    for limit_s, ending in ((EOF_WAIT_S, signal.SIGTERM), (TERM_WAIT_S, signal.SIGKILL)):
        try:
            async with asyncio.timeout(limit_s):
                await process.wait()
            break
        except TimeoutError:
            _kill(process, ending)
    _kill(process, signal.SIGKILL)  # what it has left in its group
    await process.wait()


async def _drain(process: Process) -> None:
    """Read the rest of a process's output, since asyncio closes a pipe only after its end."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_WAIT_S):
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(CHUNK_BYTES):
                    pass


def _kill(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
