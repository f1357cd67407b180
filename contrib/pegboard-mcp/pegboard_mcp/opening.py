"""The start of an MCP server: the transport, and the protocol's handshake over the transport.

The first start of a server imports this module, because it imports the MCP SDK.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from mcp.shared.exceptions import MCPError

from pegboard.processes import Enclosed
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.connection import ServerConnection, Wishes, connected, refusal
from pegboard_mcp.grants import GrantFile
from pegboard_mcp.stdio import process_streams
from pegboard_mcp.traffic import OUTCOME, RequestOutcome, Traffic


class Ground(NamedTuple):
    """The surroundings of a server's process: sandbox, variables, folder, log and OAuth grants."""

    enclosed: Enclosed
    env: Mapping[str, str]
    directory: Path
    log: Callable[[str], None]
    grants: GrantFile


@asynccontextmanager
async def opened(
    config: ServerConfig, ground: Ground, wishes: Wishes
) -> AsyncIterator[ServerConnection]:
    """Start a server, yield the connection to it, and stop the server afterwards.

    :raises OSError: when the server's program cannot be started.
    :raises ToolError: when the program does not exist, or the sandbox is not available.
    :raises RequestError: when the server's answer violates the protocol.
    """
    silence_sdk()
    traffic = Traffic(ground.log)
    if config.url:
        from pegboard_mcp.remote import http_streams  # only what speaks HTTP pays for it
        from pegboard_mcp.storedauth import StoredAuth

        auth = StoredAuth(ground.grants, config.url) if config.oauth is not None else None
        transport = http_streams(config, traffic, auth)
        outcome = RequestOutcome()
        OUTCOME.set(outcome)  # of the handshake; this task is the server's own
        try:
            async with connected(config.name, transport, traffic, wishes) as connection:
                yield connection
        except (MCPError, ExceptionGroup, RuntimeError) as error:
            raise refusal(config.name, outcome, error) from error
        return
    cwd = ground.directory / config.cwd
    env = {**ground.env, **config.environment}
    reads = tuple(map(Path, config.reads))
    enclosed = ground.enclosed(
        config.command, cwd=cwd, env=env, reads=reads, network=config.network
    )
    async with enclosed as argv:
        transport = process_streams(argv, cwd=cwd, env=env, traffic=traffic)
        async with connected(config.name, transport, traffic, wishes) as connection:
            yield connection


def silence_sdk() -> None:
    """Disable the SDK's log, which would contain answers of servers and authorization servers."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
