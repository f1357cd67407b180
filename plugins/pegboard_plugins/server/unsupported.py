"""Routes of the protocol that are not supported: each answers with an error that says so."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from starlette.responses import Response

from pegboard.errors import NotFoundError
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import UnsupportedError
from pegboard_plugins.server.serverstate import Here

_ABSENT = (
    ("POST", "/experimental/worktree", "worktree.create", "worktrees"),
    ("DELETE", "/experimental/worktree", "worktree.remove", "worktrees"),
    ("POST", "/experimental/worktree/reset", "worktree.reset", "worktrees"),
)
_OF_A_SERVER = (
    ("POST", "/mcp/{name}/connect", "mcp.connect"),
    ("POST", "/mcp/{name}/disconnect", "mcp.disconnect"),
    ("POST", "/mcp/{name}/auth", "mcp.auth.start"),
    ("DELETE", "/mcp/{name}/auth", "mcp.auth.remove"),
    ("POST", "/mcp/{name}/auth/callback", "mcp.auth.callback"),
    ("POST", "/mcp/{name}/auth/authenticate", "mcp.auth.authenticate"),
)


def unsupported_routes() -> APIRouter:
    """The router of all unsupported routes."""
    routes = APIRouter()
    for method, path, name, thing in _ABSENT:
        known = operation(name, absent=True)
        routes.add_api_route(path, _refusal(thing), methods=[method], **known)
    for method, path, name in _OF_A_SERVER:
        routes.add_api_route(path, _no_server, methods=[method], **operation(name))
    return routes


def _refusal(thing: str) -> Callable[[Here], Awaitable[Response]]:
    async def refuse(_app: Here) -> Response:
        raise UnsupportedError(f"this server has no {thing}")

    refuse.__doc__ = f"No answer but an error: the server has no {thing}."
    return refuse


async def _no_server(name: str, _app: Here) -> Response:
    """No answer but an error: no MCP server has this name."""
    raise NotFoundError("MCP server", name[:80])
