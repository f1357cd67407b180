"""The MCP servers that an editor wants to use, which Pegboard's plugin `mcp` runs if installed."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from pegboard import App, PegboardError
from pegboard.plugins import StashKey
from pegboard_acp.protocol import McpServer
from pegboard_plugins.server import service_action, services

KIND = "mcp"
_ADDED: StashKey[dict[str, McpServer]] = StashKey()
"""The servers that editors have brought to an App, by name."""


def has_client() -> bool:
    """Return whether the plugin for MCP servers is installed."""
    return find_spec("pegboard_mcp") is not None


async def add_servers(app: App, servers: Sequence[McpServer]) -> tuple[str, ...]:
    """Add an editor's MCP servers to the App; return a warning for each rejected server.

    A server in the user's own settings is never replaced.
    """
    added = app.stash.setdefault(_ADDED, dict)
    left_out = []
    for each in servers:
        if added.get(each.name) == each:
            continue
        if each.name not in added and each.name in await _names(app):
            left_out.append(f"the editor's MCP server {each.name} has the name of one of yours")
            continue
        try:
            answer = await app.hooks.first(
                service_action, app=app, kind=KIND, name=each.name, action="add", data=_entry(each)
            )
        except PegboardError as error:
            left_out.append(f"the editor's MCP server {each.name} is not used: {error}")
            continue
        if answer is None:
            text = f"Pegboard does not use the editor's MCP server {each.name}"
            left_out.append(f"{text}; `pip install pegboard-mcp` has it used")
            continue
        added[each.name] = each
    return tuple(left_out)


async def _names(app: App) -> set[str]:
    known = await app.hooks.collect(services, app=app)
    return {each.value.name for each in known if each.value.kind == KIND}


def _entry(server: McpServer) -> dict[str, Any]:
    """Return the server as an entry of `pegboard.toml` that prompts wait for (`required`)."""
    if server.url:
        headers = {each.name: each.value for each in server.headers}
        kind = "sse" if server.type == "sse" else "remote"
        return {"type": kind, "url": server.url, "headers": headers, "required": True}
    environment = {each.name: each.value for each in server.env}
    command = [server.command, *server.args]
    return {"type": "local", "command": command, "environment": environment, "required": True}
