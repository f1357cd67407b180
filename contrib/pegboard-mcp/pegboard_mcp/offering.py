"""The tools and slash commands of MCP servers, at first from catalogues stored on disk."""

import asyncio
from collections.abc import Iterable

import msgspec

from pegboard import Plugin, Tool
from pegboard.schema.config import Command, Config
from pegboard_mcp.catalogue import Catalogue, read_catalogue
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.files import files_of
from pegboard_mcp.prompts import prompt_command
from pegboard_mcp.resources import resource_tools
from pegboard_mcp.server import Server
from pegboard_mcp.servers import KNOWN, STARTED, configured_servers
from pegboard_mcp.tools import pegboard_tools


async def offered(servers: Iterable[Server]) -> tuple[list[Tool], list[Command]]:
    """Return the tools and slash commands that the servers currently have."""
    used = [(it, it.catalogue) for it in servers if it.config.enabled]
    known = [(server, catalogue) for server, catalogue in used if catalogue is not None]
    tools: list[Tool] = [*resource_tools(catalogue for _, catalogue in known)]
    commands: list[Command] = []
    for server, catalogue in known:
        pins = await asyncio.to_thread(server.files.pins.read)
        tools += pegboard_tools(server.config, pins.offered(catalogue.tools))
        commands += [prompt_command(server.config, each) for each in catalogue.prompts]
    return tools, commands


def known_servers(config: Config, plugin: Plugin) -> list[tuple[ServerConfig, Catalogue]]:
    """Return each server that has a stored catalogue, with the catalogue."""
    found = []
    read = KNOWN.get(plugin, {})
    for server in configured_servers(config)[0].values():
        path = files_of(plugin, server).catalogue
        if server.enabled and (catalogue := read.get(path) or read_catalogue(path)) is not None:
            found.append((server, catalogue))
    return found


def known_tools(config: Config, plugin: Plugin) -> tuple[Tool, ...]:
    """Return the tools in the catalogues stored on disk, without starting a server."""
    STARTED[plugin] = asyncio.Event()
    KNOWN.pop(plugin, None)
    known = known_servers(config, plugin)
    KNOWN[plugin] = {files_of(plugin, server).catalogue: each for server, each in known}
    found: list[Tool] = [*resource_tools(each for _, each in known)]
    for server, catalogue in known:
        try:
            pins = files_of(plugin, server).pins.read()
        except (OSError, msgspec.MsgspecError):
            continue  # nothing is offered that cannot be compared
        found += pegboard_tools(server, pins.offered(catalogue.tools))
    return tuple(found)


def known_commands(config: Config, plugin: Plugin) -> tuple[Command, ...]:
    """Return the slash commands for the MCP prompts in the catalogues stored on disk."""
    known = known_servers(config, plugin)
    return tuple(prompt_command(server, it) for server, each in known for it in each.prompts)
