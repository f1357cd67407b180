"""Routes for MCP servers: their states, their connections and their sign-ins."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.schema.config import Service
from pegboard.schema.wire import Rest
from pegboard_plugins.server import service_action, services
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keymask import without_keys
from pegboard_plugins.server.responses import UnsupportedError, answer, body_of
from pegboard_plugins.server.serverstate import Here

KIND = "mcp"
"""The kind of the services that these routes are about."""
LONGEST_NAME = 80
"""Letters of a client's name that an error repeats."""
_STATUS = {
    "disabled": "disabled",
    "absent": "disabled",
    "starting": "disabled",
    "failed": "failed",
    "changed": "failed",
    "needs_auth": "needs_auth",
    "needs_registration": "needs_client_registration",
}
"""The protocol's words, of which none is for a start; a server in another state is connected, or
will be by its first call."""
_WITH_ERROR = frozenset({"failed", "needs_client_registration"})
routes = APIRouter()


class McpBody(Rest, frozen=True):
    """The request for a new MCP server: the server's name and its settings."""

    name: str
    config: dict[str, Any]


class McpCode(Rest, frozen=True):
    """The code with which an authorization page redirects the browser."""

    code: str


class McpSuccess(Rest, frozen=True):
    """The confirmation that the data of a sign-in were removed."""

    success: bool = True


@routes.get("/mcp", **operation("mcp.status", gives=dict[str, dict[str, str]]))
async def states(app: Here) -> Response:
    """Return the state of each MCP server, by name."""
    return answer(without_keys(app, await _states(app)))


@routes.get(
    "/experimental/resource", **operation("experimental.resource.list", gives=dict[str, Any])
)
async def resources(app: Here) -> Response:
    """Return the resources of all MCP servers, by `server:name`."""
    return answer(without_keys(app, await _ask_plugin(app, "", "resources") or {}))


@routes.post("/mcp", **operation("mcp.add", takes=McpBody, absent=True))
async def add(request: Request, app: Here) -> Response:
    """Connect an MCP server until the App closes, and return the states of all servers."""
    body = await body_of(request, McpBody)
    if await _ask_plugin(app, body.name, "add", body.config) is None:
        name = body.name[:LONGEST_NAME]
        text = f"MCP server {name} cannot be connected: there is no MCP client"
        raise UnsupportedError(f"{text}; `pip install pegboard-mcp` adds one")
    return answer(without_keys(app, await _states(app)))


@routes.post("/mcp/{name}/connect", **operation("mcp.connect", gives=bool))
async def connect(name: str, app: Here) -> Response:
    """Connect to an MCP server now, and start the server if necessary."""
    await _act(app, name, "connect")
    return answer(True)  # noqa: FBT003 - the body


@routes.post("/mcp/{name}/disconnect", **operation("mcp.disconnect", gives=bool))
async def disconnect(name: str, app: Here) -> Response:
    """Disconnect or stop an MCP server until a client connects to it again."""
    await _act(app, name, "disconnect")
    return answer(True)  # noqa: FBT003 - the body


@routes.post("/mcp/{name}/auth", **operation("mcp.auth.start", gives=dict[str, str]))
async def start_sign_in(name: str, app: Here) -> Response:
    """Return the URL at which the user signs in."""
    return answer(await _act(app, name, "auth"))


@routes.delete("/mcp/{name}/auth", **operation("mcp.auth.remove", gives=McpSuccess))
async def sign_out(name: str, app: Here) -> Response:
    """Delete the data of the user's sign-in."""
    await _act(app, name, "logout")
    return answer(McpSuccess())


@routes.post(
    "/mcp/{name}/auth/callback",
    **operation("mcp.auth.callback", takes=McpCode, gives=dict[str, str]),
)
async def finish_sign_in(name: str, request: Request, app: Here) -> Response:
    """Complete the sign-in with the code from the browser's redirect."""
    body = await body_of(request, McpCode)
    await _act(app, name, "auth_callback", {"code": body.code})
    return await _state(app, name)


@routes.post(
    "/mcp/{name}/auth/authenticate",
    **operation("mcp.auth.authenticate", gives=dict[str, str]),
)
async def sign_in(name: str, app: Here) -> Response:
    """Open the browser, and return the server's state when the user has signed in."""
    await _act(app, name, "authenticate")
    return await _state(app, name)


async def _state(app: App, name: str) -> Response:
    return answer(without_keys(app, (await _states(app)).get(name, {"status": "disabled"})))


async def _states(app: App) -> dict[str, dict[str, str]]:
    found = [each.value for each in await app.hooks.collect(services, app=app)]
    return {each.name: _as_protocol(each) for each in found if each.kind == KIND}


def _as_protocol(service: Service) -> dict[str, str]:
    status = _STATUS.get(service.state, "connected")
    error = {"error": service.error or service.state} if status in _WITH_ERROR else {}
    return {"status": status, **error}


async def _act(
    app: App, name: str, action: str, data: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Return the answer of the plugin that has the MCP server.

    :raises NotFoundError: when none has it.
    """
    found = await _ask_plugin(app, name, action, data)
    if found is None:
        raise NotFoundError("MCP server", name[:LONGEST_NAME])
    return found


async def _ask_plugin(
    app: App, name: str, action: str, data: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    return await app.hooks.first(
        service_action, app=app, kind=KIND, name=name, action=action, data=data or {}
    )
