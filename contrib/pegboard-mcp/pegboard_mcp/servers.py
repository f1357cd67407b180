"""The servers of an App: their tools and commands, in step with what the servers list."""

import asyncio
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from pegboard import Host, Plugin, Tool, ToolError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Command, Config
from pegboard_mcp.catalogue import Catalogue, read_catalogue
from pegboard_mcp.configuration import ServerConfig, Source, Table, servers_of
from pegboard_mcp.files import files_of
from pegboard_mcp.listing import ServerPrompt, ServerTool
from pegboard_mcp.names import command_name
from pegboard_mcp.prompts import prompt_command
from pegboard_mcp.resources import resource_tools
from pegboard_mcp.server import Server
from pegboard_mcp.tools import pegboard_tools

OPENED: "WeakKeyDictionary[Plugin, Servers]" = WeakKeyDictionary()
"""The servers of each App that is open, for hooks that get no App."""
IS_COMMAND: ContextVar[bool] = ContextVar("pegboard_mcp_command", default=False)
"""True where a command of this plugin has opened the App: then no server starts by itself."""


if TYPE_CHECKING:
    from pegboard_mcp.signin import Show, SignIn


class Servers:
    """All servers of one App."""

    def __init__(self, host: Host, plugin: Plugin, configs: Sequence[ServerConfig]) -> None:
        self._host = host
        self._plugin = plugin
        self._servers: dict[str, Server] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._sign_ins: dict[str, tuple[SignIn, asyncio.Task[None]]] = {}
        for each in configs:
            self._put(each)

    def __iter__(self) -> Iterator[Server]:
        return iter(self._servers.values())

    def _put(self, config: ServerConfig) -> Server:
        server = Server(config, self._host, files_of(self._plugin, config), self._listed)
        self._servers[config.name] = server
        return server

    async def add(self, config: ServerConfig) -> None:
        """Have a server for the life of the App, in the place of one with its name."""
        if config.name in self._servers:
            await self._servers[config.name].aclose()
        self._look_later(self._put(config))

    async def changed(self, server: Server) -> tuple[ServerTool, ...]:
        """Return the tools of a server that are not offered until they are reviewed."""
        if server.catalogue is None:
            return ()
        pins = await asyncio.to_thread(server.files.pins.read)
        return pins.changed(server.catalogue.tools)

    def named(self, name: str) -> Server:
        """Return the server.

        :raises ToolError: when there is none of this name.
        """
        if name not in self._servers:
            meant = nearest_names(name, self._servers, limit=1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise ToolError(f"there is no MCP server {name}{hint}")
        return self._servers[name]

    def start(self) -> None:
        """Ask servers in the background: unknown ones, and those that start with the App."""
        for server in self:
            is_wanted = server.catalogue is None or server.config.start == "eager"
            if is_wanted and server.config.enabled and not IS_COMMAND.get():
                self._look_later(server)

    def _look_later(self, server: Server) -> None:
        task = asyncio.create_task(self.look(server))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    @property
    def is_settled(self) -> bool:
        """Return whether no server is asked in the background any more."""
        return not self._starting

    async def look(self, server: Server) -> None:
        """Have a server list what it has; one that starts with its first call ends again."""
        try:
            await server.connect()
        except ToolError:
            return  # the server's state says why
        if server.config.start == "lazy":
            await server.aclose()

    async def approve(self, name: str, tool: str) -> None:
        """Note that the user has let a tool be called, as it is pinned.

        :raises ToolError: when the tool is no longer the one that is pinned.
        """
        server = self.named(name)
        catalogue = server.catalogue
        pins = await asyncio.to_thread(server.files.pins.read)
        tools = catalogue.tools if catalogue is not None else ()
        found = next((each for each in pins.offered(tools) if each.name == tool), None)
        if found is None:
            text = f"the tool {tool} of the MCP server {name} has changed since it was reviewed"
            raise ToolError(f"{text}; the user can run `pegboard mcp review {name}`")
        if not pins.is_approved(tool):
            await asyncio.to_thread(server.files.pins.approve, [found])

    async def begin_sign_in(self, name: str, show: "Show") -> "tuple[SignIn, asyncio.Task[None]]":
        """Begin a sign-in, which ends one that is under way; the task ends with the sign-in.

        :raises InvalidInputError: for a server without one.
        """
        server = self.named(name)
        oauth = server.config.oauth
        secret = self._plugin.secret(oauth.client_secret_key) if oauth is not None else None
        sign_in = await server.begin_sign_in(secret)
        if name in self._sign_ins:
            self._sign_ins.pop(name)[1].cancel()
        task = asyncio.create_task(sign_in.run(show))
        self._sign_ins[name] = sign_in, task
        return sign_in, task

    def sign_in_of(self, name: str) -> "tuple[SignIn, asyncio.Task[None]] | None":
        """Return the sign-in that is under way."""
        return self._sign_ins.get(name)

    async def aclose(self) -> None:
        """End all servers, in parallel."""
        for task in (*self._starting, *(task for _, task in self._sign_ins.values())):
            task.cancel()
        await asyncio.gather(*(each.aclose() for each in self), return_exceptions=True)

    async def _listed(self, server: Server) -> None:
        assert server.catalogue is not None
        await asyncio.to_thread(server.files.pins.pin_new, server.catalogue.tools)
        await self.refresh()

    def prompt_of(self, command: str) -> tuple[Server, ServerPrompt] | None:
        """Return the prompt that a slash command stands for, with its server."""
        for server in self:
            known = server.catalogue
            for prompt in known.prompts if known is not None else ():
                if command_name(server.config.name, prompt.name) == command:
                    return server, prompt
        return None

    async def refresh(self) -> None:
        """Offer what all servers have now; a turn that runs keeps its own tools."""
        known = [it.catalogue for it in self if it.config.enabled and it.catalogue is not None]
        tools: list[Tool] = [*resource_tools(known)]
        commands: list[Command] = []
        for server in self:
            if server.config.enabled and server.catalogue is not None:
                pins = await asyncio.to_thread(server.files.pins.read)
                tools += pegboard_tools(server.config, pins.offered(server.catalogue.tools))
                prompts = server.catalogue.prompts
                commands += [prompt_command(server.config, each) for each in prompts]
        self._host.replace_tools(self._plugin.name, tools)
        self._host.replace_commands(self._plugin.name, commands)


def configured_servers(
    config: Config, extra: Sequence[tuple[Source, Table]] = ()
) -> tuple[dict[str, ServerConfig], list[str]]:
    """Return the servers of the configuration by name, and a line for each that cannot be used."""
    user = Source(file="the user's settings", is_strict=True)
    project = Source(file="the project's settings", is_project=True, is_strict=True)
    return servers_of([(user, config.mcp), *extra, (project, config.project_mcp)])


def known_servers(config: Config, plugin: Plugin) -> list[tuple[ServerConfig, Catalogue]]:
    """Return the servers that have listed before, with their catalogues on disk."""
    found = []
    for server in configured_servers(config)[0].values():
        catalogue = read_catalogue(files_of(plugin, server).catalogue) if server.enabled else None
        if catalogue is not None:
            found.append((server, catalogue))
    return found


def known_tools(config: Config, plugin: Plugin) -> tuple[Tool, ...]:
    """Return the tools that are offered from the catalogues on disk, with no server started."""
    known = known_servers(config, plugin)
    found: list[Tool] = [*resource_tools(each for _, each in known)]
    for server, catalogue in known:
        try:
            pins = files_of(plugin, server).pins.read()
        except (OSError, msgspec.MsgspecError):
            continue  # nothing is offered that cannot be compared
        found += pegboard_tools(server, pins.offered(catalogue.tools))
    return tuple(found)


def known_commands(config: Config, plugin: Plugin) -> tuple[Command, ...]:
    """Return the slash commands of the prompts that the catalogues on disk have."""
    known = known_servers(config, plugin)
    return tuple(prompt_command(server, it) for server, each in known for it in each.prompts)
