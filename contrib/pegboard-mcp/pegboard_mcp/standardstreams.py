"""The transport of `pegboard mcp serve` over the process's standard input and output.

It replaces the SDK's transport, which reads in a thread that no signal can end. This module imports
the MCP SDK.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from pegboard.errors import InvalidInputError
from pegboard_mcp.traffic import LINE_BYTES


@asynccontextmanager
async def standard_streams() -> AsyncIterator[TransportStreams]:
    """Yield the MCP message streams on standard input and output, and reserve these for MCP.

    What other code prints meanwhile goes to standard error.

    :raises InvalidInputError: when the standard streams are not pipes or sockets.
    """
    reader, writer = await _taken()
    inbound_in, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, outbound_out = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = (
        asyncio.create_task(_read(reader, inbound_in)),
        asyncio.create_task(_write(writer, outbound_out)),
    )
    try:
        yield inbound, outbound
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (inbound_in, inbound, outbound, outbound_out):
            stream.close()


async def _taken() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for name, number in (("input", 0), ("output", 1)):
        mode = os.fstat(number).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            text = f"standard {name} is not a pipe: another agent starts `pegboard mcp serve`"
            raise InvalidInputError(f"{text} and speaks with it; `--http PORT` serves without one")
    sys.stdout.flush()
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(target, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _read(
    reader: asyncio.StreamReader, inbound: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    """Pass on the client's messages until standard input ends or a line is too long."""
    with suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while line := await reader.readline():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as error:
                await inbound.send(error)
            else:
                await inbound.send(SessionMessage(message))
    inbound.close()


async def _write(
    writer: asyncio.StreamWriter, outbound: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    with suppress(ConnectionError):  # the client's end is seen where it is read
        async for each in outbound:
            line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(line.encode("utf-8", "replace") + b"\n")
            await writer.drain()
