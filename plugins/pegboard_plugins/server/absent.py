"""Routes of the protocol behind which there is nothing: an error that says so, never a lie."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from starlette.responses import Response

from pegboard_plugins.server.answers import UnsupportedError
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.house import Here

_ABSENT: tuple[tuple[str, str, str, str], ...] = (
    ("POST", "/mcp/{name}/connect", "mcp.connect", "MCP servers"),
    ("POST", "/mcp/{name}/disconnect", "mcp.disconnect", "MCP servers"),
    ("POST", "/mcp/{name}/auth", "mcp.auth.start", "MCP servers"),
    ("DELETE", "/mcp/{name}/auth", "mcp.auth.remove", "MCP servers"),
    ("POST", "/mcp/{name}/auth/callback", "mcp.auth.callback", "MCP servers"),
    ("POST", "/mcp/{name}/auth/authenticate", "mcp.auth.authenticate", "MCP servers"),
    ("POST", "/experimental/worktree", "worktree.create", "worktrees"),
    ("DELETE", "/experimental/worktree", "worktree.remove", "worktrees"),
    ("POST", "/experimental/worktree/reset", "worktree.reset", "worktrees"),
)


def absent_routes() -> APIRouter:
    """The router of all of them."""
    routes = APIRouter()
    for method, path, name, thing in _ABSENT:
        routes.add_api_route(path, _refusal(thing), methods=[method], **operation(name))
    return routes


def _refusal(thing: str) -> Callable[[Here], Awaitable[Response]]:
    async def refuse(_app: Here) -> Response:
        raise UnsupportedError(f"this server has no {thing}")

    refuse.__doc__ = f"No answer but an error: the server has no {thing}."
    return refuse
