"""MCP tools as Pegboard tools: the ids, permissions and calls of the tools."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pegboard import Tool, ToolContext, ToolError, ToolResult
from pegboard.errors import InvalidInputError
from pegboard.permissions import matches_pattern
from pegboard.plugins import StashKey
from pegboard.schema.session import PermissionRequest
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.files import files_of
from pegboard_mcp.listing import ServerTool
from pegboard_mcp.names import tool_ids

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from pegboard import PermissionContext
    from pegboard_mcp.connection import ServerConnection
    from pegboard_mcp.servers import Servers

PROGRESS_S = 0.25
"""The shortest time between two lines of progress."""
CALL_MARGIN_S = 10.0
SERVERS: "StashKey[Servers]" = StashKey()
MARK = "mcp"
"""The key of a permission request's metadata under which the server and its tool stand."""


def wanted_tools(config: ServerConfig, tools: Sequence[ServerTool]) -> tuple[ServerTool, ...]:
    """Return the tools that the server's `tools` and `without` patterns select."""
    return tuple(
        each
        for each in tools
        if any(matches_pattern(pattern, each.name) for pattern in config.tools)
        and not any(matches_pattern(pattern, each.name) for pattern in config.without)
    )


def pegboard_tools(config: ServerConfig, tools: Sequence[ServerTool]) -> tuple[Tool, ...]:
    """Return the server's tools for the model, without tools that Pegboard cannot represent."""
    wanted = wanted_tools(config, tools)
    ids = tool_ids(config.name, [each.name for each in wanted])
    found = []
    for each in wanted:
        try:
            found.append(_tool(config, each, ids[each.name]))
        except InvalidInputError:
            continue
    return tuple(found)


def _tool(config: ServerConfig, tool: ServerTool, name: str) -> Tool:
    return Tool.raw(
        name,
        tool.description or tool.title or f"{tool.name} of the MCP server {config.name}",
        tool.parameters,
        partial(_call, config.name, tool),
        timeout_s=config.connect_timeout_s + config.call_timeout_s + CALL_MARGIN_S,
        requires=partial(_require, config, tool, name),
        exposure=config.exposure,
        source=config.name,
    )


async def _require(
    config: ServerConfig,
    tool: ServerTool,
    permission: str,
    context: "PermissionContext",
    /,
    **arguments: object,
) -> None:
    """Request permission for a call, even if the server hints that the tool is read-only."""
    pins = await asyncio.to_thread(files_of(context.plugin, config).pins.read)
    facts = {"server": config.name, "tool": tool.name, "first_use": not pins.is_approved(tool.name)}
    if tool.annotations:
        facts["annotations"] = str(tool.annotations)
    metadata = {MARK: facts, "arguments": arguments}
    await context.require(permission, ("*",), always=("*",), metadata=metadata)


def first_use(request: PermissionRequest) -> str:
    """Return `server tool` if the request is for the first call of an MCP tool, else ""."""
    facts = request.metadata.get(MARK)
    if not isinstance(facts, Mapping) or not facts.get("first_use"):
        return ""
    return f"{facts.get('server')} {facts.get('tool')}"


async def _call(
    server: str, tool: ServerTool, context: ToolContext, arguments: Mapping[str, Any]
) -> ToolResult:
    servers = context.stash.get(SERVERS)
    if servers is None:
        raise ToolError(f"the MCP server {server} is not set up yet; call the tool again")
    found = servers.named(server)
    if found.config.is_project and not context.trusted:
        text = f"the MCP server {server} is the project's, which is not trusted"
        raise ToolError(f"{text}; the user can run `pegboard trust allow`")
    await servers.approve(server, tool.name)

    async def send(connection: "ServerConnection") -> ToolResult:
        from pegboard_mcp.content import tool_result  # the SDK is there once a server runs

        result = await connection.call(
            tool.name,
            arguments,
            digest=tool.digest,
            progress=_progress(context),
            ask_user=_asking(context),
        )
        return tool_result(server, tool.name, result)

    return await found.request(send, can_ask=context.session.interactive)


def _asking(context: ToolContext) -> "Callable[..., Awaitable[Any]] | None":
    return context.ask_user if context.session.interactive else None


def _progress(context: ToolContext) -> "ProgressFnT":
    drawn_at = 0.0

    async def show(progress: float, total: float | None, message: str | None) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - drawn_at < PROGRESS_S:
            return
        drawn_at = now
        share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        context.progress(title=f"{message[:200]} ({share})" if message else share)

    return show
