"""The plugin `mcp`: tools, prompts and resources of MCP servers.

Pegboard reads the tools from a stored catalogue, so its start does not wait for a server. The first
call of a tool starts the tool's server and imports the MCP SDK.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard import Host, Plugin, SessionView, Tool, Workspace, evolve, hookimpl
from pegboard.providers import ToolDefinition
from pegboard.schema.config import Command, Config, Service
from pegboard.schema.message import Turn
from pegboard.schema.part import Part, TextPart
from pegboard.schema.session import PermissionRequest, Verdict


class MCPOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the plugin; `claude` also loads the servers in Claude Code's settings."""

    claude: bool = False


options = MCPOptions
REQUEST_LIMIT_S = 95
"""The time limit of a prompt or a resource, which may have its server started."""
SIGN_IN_LIMIT_S = 330
"""The time limit of what waits for a user in a browser."""


@hookimpl
async def config_load(config: Config) -> Config | None:
    """Add the same rule with the tool's id after each rule about `mcp__SERVER__TOOL`."""
    from pegboard_mcp.rules import with_ids_of_tools

    return with_ids_of_tools(config)


@hookimpl
async def trusted_files(workspace: Workspace) -> Sequence[Path]:
    """Return the files of the project that name servers."""
    from pegboard_mcp.foreign import project_files

    return project_files(workspace)


@hookimpl
async def register_tools(config: Config, plugin: Plugin) -> Sequence[Tool]:
    """Return the MCP tools in the catalogues stored by earlier connections."""
    from pegboard_mcp.offering import known_tools

    return known_tools(config, plugin)


@hookimpl
async def register_commands(config: Config, plugin: Plugin) -> Sequence[Command]:
    """Return a slash command for each MCP prompt in the catalogues of earlier connections."""
    from pegboard_mcp.offering import known_commands

    return known_commands(config, plugin)


@hookimpl
async def tool_definition(tool: ToolDefinition, plugin: Plugin) -> ToolDefinition | None:
    """Add the user's description of the MCP server to a tool's definition."""
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    description = servers.description_of(tool) if servers is not None else ""
    return evolve(tool, source_description=description) if description else None


@hookimpl(timeout_s=REQUEST_LIMIT_S)
async def command_execute_before(
    command: Command, parts: tuple[Part, ...], plugin: Plugin
) -> tuple[Part, ...] | None:
    """Replace the arguments of a prompt's slash command with the messages from the server."""
    if command.source != "mcp":
        return None
    from pegboard_mcp.prompts import prompt_parts
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    return None if servers is None else await prompt_parts(servers, command, parts)


@hookimpl(timeout_s=REQUEST_LIMIT_S)
async def chat_message(message: Turn, plugin: Plugin) -> Turn | None:
    """Wait for servers that are `required`, and add the resources that the message mentions."""
    from pegboard_mcp.resources import with_mentioned
    from pegboard_mcp.servers import opened_servers

    servers = await opened_servers(plugin)
    if servers is None:
        return None
    await servers.await_required()
    if not any("@" in part.text for part in message.parts if isinstance(part, TextPart)):
        return None
    return await with_mentioned(servers, message)


@hookimpl
async def chat_system_transform(
    session: SessionView, system: tuple[str, ...], plugin: Plugin
) -> tuple[str, ...] | None:
    """Add the instructions of MCP servers to the system prompt, if the user has enabled them."""
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    if servers is None or session.purpose != "turn":
        return None
    found = await servers.instructions()
    return (*system, *found) if found else None


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Create the MCP servers; start servers that have an eager start or no stored catalogue."""
    from pegboard_mcp.foreign import claude_tables, project_tables
    from pegboard_mcp.offering import offered
    from pegboard_mcp.servers import OPENED, STARTED, Servers, configured_servers
    from pegboard_mcp.tools import SERVERS

    try:
        extra = [*project_tables(app)]
        if plugin.options.claude:
            extra += claude_tables(Path.home(), app.workspace)
        configs, problems = configured_servers(app.config, extra)
        for each in problems:
            plugin.logger.warning("%s", each)
        servers = Servers(app, plugin, tuple(configs.values()), offered)
        OPENED[plugin] = app.stash.setdefault(SERVERS, lambda: servers)
        if extra:
            await servers.refresh()
        servers.start()
    finally:
        STARTED[plugin].set()


@hookimpl
async def permission_ask(request: PermissionRequest) -> Verdict | None:
    """Ask the user about the first call of each tool."""
    from pegboard_mcp.tools import first_use

    tool = first_use(request)
    if not tool:
        return None
    server = tool.partition(" ")[0]
    advice = f"`pegboard mcp review {server}` approves the server's tools beforehand"
    return Verdict(action="ask", reason=f"This is the first call of the MCP tool {tool}; {advice}.")


@hookimpl(optionalhook=True)
async def services(plugin: Plugin) -> tuple[Service, ...]:
    """Return the MCP servers with their states."""
    from pegboard_mcp.actions import services_of
    from pegboard_mcp.servers import opened_servers

    servers = await opened_servers(plugin)
    return () if servers is None else await services_of(servers)


@hookimpl(optionalhook=True, timeout_s=SIGN_IN_LIMIT_S)
async def service_action(
    kind: str, name: str, action: str, data: Mapping[str, Any], plugin: Plugin
) -> Mapping[str, Any] | None:
    """Carry out an action on an MCP server for a client of Pegboard's server."""
    if kind != "mcp":
        return None
    from pegboard_mcp.actions import act
    from pegboard_mcp.servers import opened_servers

    servers = await opened_servers(plugin)
    return None if servers is None else await act(servers, name, action, data)


@hookimpl(timeout_s=10)
async def shutdown(app: Host) -> None:
    """Stop all MCP servers."""
    from pegboard_mcp.tools import SERVERS

    servers = app.stash.get(SERVERS)
    if servers is not None:
        await servers.aclose()
