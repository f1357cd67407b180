"""The processes of `pegboard mcp serve`: over standard streams, or over HTTP on this machine.

This module imports the MCP SDK.
"""

import asyncio
import hmac
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard import AppOptions
from pegboard.errors import InvalidInputError
from pegboard.plugins import shield
from pegboard.unstable import named_output
from pegboard_mcp.agentserver import AgentServer
from pegboard_mcp.opening import silence_sdk
from pegboard_mcp.projectapps import ProjectApps
from pegboard_mcp.standardstreams import standard_streams

HOST = "127.0.0.1"
VARIABLE = "PEGBOARD_MCP_TOKEN"
TOKEN_BYTES = 32
END_S = 2
"""The time that requests have to end after a signal."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
TOKEN_LETTERS = 16
"""The shortest token that is accepted from the environment."""


async def serve_stdio(root: Path, offered: Sequence[str]) -> None:
    """Serve the client that started this process, until it closes its stream or a signal arrives.

    :raises NotFoundError: when a tool in `offered` does not exist.
    """
    silence_sdk()
    async with standard_streams() as (inbound, outbound):
        with named_output():
            server = await _opened(root, offered)
            protocol = server.protocol
            serving = asyncio.create_task(
                protocol.run(inbound, outbound, protocol.create_initialization_options())
            )
            loop = asyncio.get_running_loop()
            for each in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(each) is not signal.SIG_IGN:  # which `nohup` asks for
                    loop.add_signal_handler(each, serving.cancel)
            try:
                await asyncio.wait({serving})
            finally:
                serving.cancel()
                await shield(server.aclose())


async def serve_http(
    root: Path,
    offered: Sequence[str],
    *,
    port: int,
    token: str,
    announce: Callable[[str, str], None],
) -> None:
    """Serve clients on this machine that have the token, until a signal ends the process.

    If `token` is empty, a token is generated. `announce` receives the address, and the generated
    token.

    :raises InvalidInputError: when the token or the port cannot be used.
    :raises NotFoundError: when a tool that is to be offered does not exist.
    """
    silence_sdk()
    if token and len(token) < TOKEN_LETTERS:
        text = f"{VARIABLE} has {len(token)} characters"
        raise InvalidInputError(f"{text}; set at least {TOKEN_LETTERS}, or none to have one made")
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        text = f"the port {port} of {HOST} cannot be used: {error.strerror}"
        raise InvalidInputError(f"{text}; `--http 0` takes a free one") from error
    with listener:
        server = await _opened(root, offered)
        made = "" if token else secrets.token_urlsafe(TOKEN_BYTES)
        app = _Guarded(server.protocol.streamable_http_app(host=HOST), token or made)
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=END_S)
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(each, _ignore)  # uvicorn raises its signal again at the end
        announce(f"http://{HOST}:{listener.getsockname()[1]}/mcp", made)
        try:
            await uvicorn.Server(config).serve(sockets=[listener])
        finally:
            await shield(server.aclose())


async def _opened(root: Path, offered: Sequence[str]) -> AgentServer:
    server = AgentServer(ProjectApps(root, AppOptions(interactive=True)), offered)
    try:
        await server.check_offered()
    except BaseException:
        await shield(server.aclose())
        raise
    return server


def _ignore() -> None:
    """Do nothing at the signal that uvicorn raises again after its shutdown."""


class _Guarded:
    """An ASGI app that accepts only requests with the right bearer token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                refusal = PlainTextResponse("the token is missing or wrong\n", 401, _CHALLENGE)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
