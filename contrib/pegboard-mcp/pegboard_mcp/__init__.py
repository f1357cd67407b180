"""The plugin `mcp`: tools, prompts and resources of MCP servers.

Tools are offered from a catalogue on disk, so that no start waits for a server. A server is started
by the first call of one of its tools, and the SDK is imported then.
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
    """The options of the plugin; `claude` has the servers of Claude Code's settings, too."""

    claude: bool = False


options = MCPOptions
REQUEST_LIMIT_S = 95
"""The time limit of a prompt or a resource, which may have its server started."""
SIGN_IN_LIMIT_S = 330
"""The time limit of what waits for a user in a browser."""


@hookimpl
async def config_load(config: Config) -> Config | None:
    """Return the configuration with `mcp__SERVER__TOOL` in rules also spelt as tools' ids."""
    from pegboard_mcp.rules import with_ids_of_tools

    return with_ids_of_tools(config)


@hookimpl
async def trusted_files(workspace: Workspace) -> Sequence[Path]:
    """Return the files of the project that name servers."""
    from pegboard_mcp.foreign import project_files

    return project_files(workspace)


@hookimpl
async def register_tools(config: Config, plugin: Plugin) -> Sequence[Tool]:
    """Return the tools that the catalogues on disk have."""
    from pegboard_mcp.offering import known_tools

    return known_tools(config, plugin)


@hookimpl
async def register_commands(config: Config, plugin: Plugin) -> Sequence[Command]:
    """Return the slash commands of the prompts that the catalogues on disk have."""
    from pegboard_mcp.offering import known_commands

    return known_commands(config, plugin)


@hookimpl
async def tool_definition(tool: ToolDefinition, plugin: Plugin) -> ToolDefinition | None:
    """Return the tool with its server's description."""
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    description = servers.description_of(tool) if servers is not None else ""
    return evolve(tool, source_description=description) if description else None


@hookimpl(timeout_s=REQUEST_LIMIT_S)
async def command_execute_before(
    command: Command, parts: tuple[Part, ...], plugin: Plugin
) -> tuple[Part, ...] | None:
    """Return the messages of a server's prompt instead of the command's arguments."""
    if command.source != "mcp":
        return None
    from pegboard_mcp.prompts import prompt_parts
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    return None if servers is None else await prompt_parts(servers, command, parts)


@hookimpl(timeout_s=REQUEST_LIMIT_S)
async def chat_message(message: Turn, plugin: Plugin) -> Turn | None:
    """Wait for required servers, and add the resources that the message mentions."""
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
    """Add the instructions of servers to the system prompt, where the user wants that."""
    from pegboard_mcp.servers import OPENED

    servers = OPENED.get(plugin)
    if servers is None or session.purpose != "turn":
        return None
    found = await servers.instructions()
    return (*system, *found) if found else None


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Set up the servers; start only servers that are not known yet."""
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
    """Let the user be asked about the first call of each tool."""
    from pegboard_mcp.tools import first_use

    tool = first_use(request)
    if not tool:
        return None
    server = tool.partition(" ")[0]
    advice = f"`pegboard mcp review {server}` approves the server's tools beforehand"
    return Verdict(action="ask", reason=f"This is the first call of the MCP tool {tool}; {advice}.")


@hookimpl(optionalhook=True)
async def services(plugin: Plugin) -> tuple[Service, ...]:
    """Return the servers with their states."""
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
    """End all servers."""
    from pegboard_mcp.tools import SERVERS

    servers = app.stash.get(SERVERS)
    if servers is not None:
        await servers.aclose()
