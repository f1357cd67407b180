"""The MCP servers as services that clients of Pegboard's HTTP server can list and control."""

import asyncio
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pegboard import ToolError
from pegboard.errors import InvalidInputError
from pegboard.schema.config import Service
from pegboard_mcp.configuration import Source, server_of
from pegboard_mcp.failure import AuthorizationError
from pegboard_mcp.server import Server
from pegboard_mcp.servers import Servers

if TYPE_CHECKING:
    from pegboard_mcp.signin import Show


async def services_of(servers: Servers) -> tuple[Service, ...]:
    """Return the MCP servers with their states, for clients of Pegboard's HTTP server."""
    return tuple([await _service(servers, each) for each in servers])


async def _service(servers: Servers, server: Server) -> Service:
    name, state = server.config.name, server.state
    if changed := await servers.changed(server):
        names = ", ".join(changed)
        text = f"changed since their review: {names}; `pegboard mcp review {name}` shows how"
        return Service(kind="mcp", name=name, state="changed", error=text)
    return Service(
        kind="mcp", name=name, state="ready" if state == "idle" else state, error=server.error
    )


async def act(
    servers: Servers, name: str, action: str, data: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Carry out an action on an MCP server; return None for an unknown server or action.

    :raises PegboardError: when the action fails.
    """
    if action == "add":
        await servers.add(server_of(Source(file="a client"), name, data))
        return {}
    if action == "resources":
        return {key: value for each in servers for key, value in _resources(each)}
    if name not in {each.config.name for each in servers}:
        return None
    server = servers.named(name)
    match action:
        case "connect":
            with suppress(ToolError):  # its state says why
                await server.connect()
        case "disconnect":
            await server.disconnect()
        case "logout":
            server.files.grants.remove()
            await server.aclose()
        case "auth":
            return await _begin(servers, name)
        case "auth_callback":
            await _finish(servers, name, str(data.get("code") or ""))
        case "authenticate":
            await sign_in(servers, name, open_browser)
        case _:
            return None
    return {}


async def sign_in(servers: Servers, name: str, show: "Show") -> None:
    """Sign the user in to a server, then connect to it; `show` displays the sign-in address.

    :raises InvalidInputError: when the sign-in fails.
    """
    _, task = await servers.begin_sign_in(name, show)
    await _signed_in(servers, name, task)


async def open_browser(address: str) -> None:
    """Open an address in the user's browser."""
    await asyncio.to_thread(webbrowser.open, address)


async def _begin(servers: Servers, name: str) -> Mapping[str, Any]:
    """Start a sign-in, and return the address that the client shows to the user."""
    found, task = await servers.begin_sign_in(name, _show_nothing)
    either: set[asyncio.Future[Any]] = {task, found.address}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not found.address.done():
        await _signed_in(servers, name, task)
        return {}
    return {"authorizationUrl": found.address.result(), "oauthState": found.state}


async def _finish(servers: Servers, name: str, code: str) -> None:
    """Complete a sign-in with the client's code, unless the code has arrived already."""
    under_way = servers.sign_in_of(name)
    if under_way is None:
        raise InvalidInputError(f"no sign-in to {name} is under way; begin one first")
    found, task = under_way
    found.answer(code, found.state)
    await _signed_in(servers, name, task)


async def _signed_in(servers: Servers, name: str, task: "asyncio.Task[None]") -> None:
    try:
        await task
    except AuthorizationError as error:
        raise InvalidInputError(str(error)) from error
    await servers.named(name).connect()


async def _show_nothing(_address: str) -> None:
    """Do nothing, because the HTTP client itself displays the sign-in address."""


def _resources(server: Server) -> list[tuple[str, dict[str, Any]]]:
    name = server.config.name
    found = server.catalogue.resources if server.catalogue is not None else ()
    return [
        (
            f"{name}:{each.name or each.uri}",
            {
                "name": each.name or each.uri,
                "uri": each.uri,
                "description": each.description,
                "mimeType": each.mime_type,
                "client": name,
            },
        )
        for each in found
    ]
