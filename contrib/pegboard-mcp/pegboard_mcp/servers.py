"""The MCP servers of an App, with tools and commands that follow the servers' lists."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pegboard import Host, Plugin, Tool, ToolError
from pegboard.plugins import nearest_names
from pegboard.providers import ToolDefinition
from pegboard.schema.config import Command, Config
from pegboard_mcp.catalogue import Catalogue, read_catalogue
from pegboard_mcp.configuration import ServerConfig, Source, Table, servers_of
from pegboard_mcp.files import files_of
from pegboard_mcp.listing import ServerPrompt
from pegboard_mcp.names import command_name
from pegboard_mcp.server import Server

TOOLS_CHANGED = "mcp.tools.changed"
"""The event of a server that lists other tools than before."""
DESCRIPTION_LETTERS = 120
"""Of a server's description, where a model searches for tools."""
OPENED: "WeakKeyDictionary[Plugin, Servers]" = WeakKeyDictionary()
"""The servers of each App that is open, for hooks that get no App."""
STARTED: "WeakKeyDictionary[Plugin, asyncio.Event]" = WeakKeyDictionary()
"""Set when the servers of an App are set up."""
KNOWN: "WeakKeyDictionary[Plugin, dict[Path, Catalogue]]" = WeakKeyDictionary()
"""The catalogues that an App has read for its tools, until its servers are set up."""
IS_COMMAND: ContextVar[bool] = ContextVar("pegboard_mcp_command", default=False)
"""True where a command of this plugin has opened the App: then no server starts by itself."""


if TYPE_CHECKING:
    from pegboard_mcp.signin import Show, SignIn


Offer = Callable[[Iterable[Server]], Awaitable[tuple[Sequence[Tool], Sequence[Command]]]]
"""Gives the tools and slash commands that servers have."""


class Servers:
    """The MCP servers of an App; `offer` creates tools and commands from the servers' lists."""

    def __init__(
        self, host: Host, plugin: Plugin, configs: Sequence[ServerConfig], offer: Offer
    ) -> None:
        self._host = host
        self._offer = offer
        self._plugin = plugin
        self._servers: dict[str, Server] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._sign_ins: dict[str, tuple[SignIn, asyncio.Task[None]]] = {}
        self._digests: dict[str, tuple[str, ...]] = {}
        self._refreshing = asyncio.Lock()
        for each in configs:
            self._put(each)
        KNOWN.pop(plugin, None)

    def __iter__(self) -> Iterator[Server]:
        return iter(tuple(self._servers.values()))

    def _put(self, config: ServerConfig) -> Server:
        files = files_of(self._plugin, config)
        known = KNOWN.get(self._plugin, {}).get(files.catalogue) or read_catalogue(files.catalogue)
        server = Server(config, self._host, files, self._listed, known)
        self._servers[config.name] = server
        self._digests[config.name] = _digests(server.catalogue)
        return server

    async def add(self, config: ServerConfig) -> None:
        """Add a server for as long as the App is open, in place of a server with the same name."""
        if config.name in self._servers:
            await self._servers[config.name].aclose()
        await asyncio.wait({self._look_later(self._put(config))})

    async def changed(self, server: Server) -> tuple[str, ...]:
        """Return the names of changed tools, and "its instructions" if the instructions changed."""
        known = server.catalogue
        if known is None:
            return ()
        pins = await asyncio.to_thread(server.files.pins.read)
        names = tuple(each.name for each in pins.changed(known.tools))
        is_other = server.config.instructions and pins.instructions not in (
            *(None, known.instructions),
        )
        return (*names, "its instructions") if is_other else names

    async def instructions(self) -> tuple[str, ...]:
        """Return the server instructions that the user wants in the system prompt.

        Instructions that have changed since their review are left out.
        """
        found = []
        for server in self:
            known = server.catalogue
            if not (server.config.enabled and server.config.instructions and known is not None):
                continue
            pins = await asyncio.to_thread(server.files.pins.read)
            if known.instructions and pins.instructions == known.instructions:
                name = server.config.name
                found.append(f"Instructions of the MCP server {name}:\n{known.instructions}")
        return tuple(found)

    def description_of(self, tool: ToolDefinition) -> str:
        """Return the user's description of the server to which the tool belongs, or ""."""
        server = self._servers.get(tool.source)
        own = self._host.tools.get(tool.name)
        if server is None or own is None or own.source != tool.source:
            return ""
        return server.config.description[:DESCRIPTION_LETTERS]

    async def await_required(self) -> None:
        """Wait until each required server has listed its tools.

        :raises ToolError: when a required server has not listed its tools.
        """
        missing = [it for it in self if it.is_missing]
        await asyncio.gather(*(self._looking(each) for each in missing))
        if failed := [each for each in missing if each.is_missing]:
            text = "; ".join(each.error or f"{each.config.name} did not start" for each in failed)
            raise ToolError(f"a required MCP server has no tools: {text}")

    def named(self, name: str) -> Server:
        """Return the server with this name.

        :raises ToolError: when no server has this name.
        """
        if name not in self._servers:
            meant = nearest_names(name, self._servers, limit=1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise ToolError(f"there is no MCP server {name}{hint}")
        return self._servers[name]

    def start(self) -> None:
        """Connect in the background to servers without a catalogue or with an eager start."""
        for server in self:
            is_wanted = server.catalogue is None or server.config.start == "eager"
            if is_wanted and server.config.enabled and not IS_COMMAND.get():
                self._look_later(server)

    def _look_later(self, server: Server) -> "asyncio.Task[None]":
        name = server.config.name
        task = asyncio.create_task(self.look(server))
        self._starting[name] = task

        def forget(_: object) -> None:
            if self._starting.get(name) is task:
                del self._starting[name]

        task.add_done_callback(forget)
        return task

    async def _looking(self, server: Server) -> None:
        """Wait until the background task of a server has connected and read the server's lists."""
        await asyncio.wait({self._starting.get(server.config.name) or self._look_later(server)})

    @property
    def is_settled(self) -> bool:
        """Return whether no background connection is running."""
        return not self._starting

    async def look(self, server: Server) -> None:
        """Connect to a server to read its lists; then stop the server if its start is lazy."""
        try:
            await server.connect()
        except ToolError:
            return  # the server's state says why
        if server.config.start == "lazy":
            await server.rest()

    async def approve(self, name: str, tool: str) -> None:
        """Store that the user has allowed a call of the tool with the tool's pinned definition.

        :raises ToolError: when the tool's definition differs from the pinned one.
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
        """Start a sign-in instead of an earlier one; return the sign-in with the task that runs it.

        :raises InvalidInputError: when the server has no sign-in.
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
        """Return the latest sign-in to the server with its task; None if there was no sign-in."""
        return self._sign_ins.get(name)

    async def aclose(self) -> None:
        """Stop all servers concurrently."""
        for task in (*self._starting.values(), *(task for _, task in self._sign_ins.values())):
            task.cancel()
        await asyncio.gather(*(each.aclose() for each in self), return_exceptions=True)

    async def _listed(self, server: Server) -> None:
        known = server.catalogue
        assert known is not None
        await asyncio.to_thread(server.files.pins.pin_new, known.tools, known.instructions)
        await self.refresh()
        before, digests = self._digests[server.config.name], _digests(known)
        self._digests[server.config.name] = digests
        if digests != before:
            self._host.publish(TOOLS_CHANGED, {"server": server.config.name})

    def prompt_of(self, command: str) -> tuple[Server, ServerPrompt] | None:
        """Return the server and prompt behind a slash command; None if it is not an MCP prompt."""
        for server in self:
            known = server.catalogue
            for prompt in known.prompts if known is not None else ():
                if command_name(server.config.name, prompt.name) == command:
                    return server, prompt
        return None

    async def refresh(self) -> None:
        """Offer the current tools and commands of all servers; a running turn keeps its own."""
        async with self._refreshing:  # an older state would replace a newer one
            await self._refresh()

    async def _refresh(self) -> None:
        tools, commands = await self._offer(self)
        self._host.replace_tools(self._plugin.name, tools)
        self._host.replace_commands(self._plugin.name, commands)


async def opened_servers(plugin: Plugin) -> Servers | None:
    """Wait until an App's servers are set up, and return them; None if the setup failed."""
    if (started := STARTED.get(plugin)) is not None:
        await started.wait()
    return OPENED.get(plugin)


def _digests(catalogue: Catalogue | None) -> tuple[str, ...]:
    return tuple(each.digest for each in catalogue.tools) if catalogue is not None else ()


def configured_servers(
    config: Config, extra: Sequence[tuple[Source, Table]] = ()
) -> tuple[dict[str, ServerConfig], list[str]]:
    """Return the configured servers by name, and a message for each unusable entry."""
    user = Source(file="the user's settings", is_strict=True)
    project = Source(file="the project's settings", is_project=True, is_strict=True)
    return servers_of([(user, config.mcp), *extra, (project, config.project_mcp)])
