"""Standard input and output, reserved for the messages between editor and agent."""

import asyncio
import os
import stat
import sys

from pegboard import InvalidInputError


async def take_standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the standard streams, for use by the editor's connection alone.

    From now on, all other output goes to standard error, and other code reads an empty standard
    input. Plugins and their programs therefore cannot break the protocol.

    :raises InvalidInputError: when the standard streams are not pipes or sockets.
    """
    for name, number in (("input", 0), ("output", 1)):
        mode = os.fstat(number).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise InvalidInputError(
                f"standard {name} is not a pipe: an editor starts `pegboard acp` and speaks with"
                " it; `pegboard` alone is the chat in a terminal"
            )
    sys.stdout.flush()
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(target, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
