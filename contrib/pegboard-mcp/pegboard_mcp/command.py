"""`pegboard mcp`: show, add, review and call the MCP servers of the project and the user."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from pegboard import App, AppOptions
from pegboard.app import UserFolders
from pegboard.cli import Group, open_app, run_async
from pegboard.display import escape_controls
from pegboard.errors import InvalidInputError, NotFoundError, ToolError
from pegboard.plugins import nearest_names
from pegboard.unstable import refuse_within_tool
from pegboard_mcp.actions import open_browser, services_of, sign_in
from pegboard_mcp.configuration import Source, server_of
from pegboard_mcp.reviewing import review_server
from pegboard_mcp.server import Server
from pegboard_mcp.servers import IS_COMMAND, Servers
from pegboard_mcp.tools import SERVERS
from pegboard_plugins.shared.frontend import update_user_config

SETUP_LIMIT_S = 10.0
CONFIG_SUFFIXES = (".json", ".jsonc", ".toml")


@click.group(cls=Group)
def mcp() -> None:
    """Show and add MCP servers, review and call their tools, or serve Pegboard by MCP."""


@mcp.command("list")
@click.option("--connect", is_flag=True, help="Start the servers, all at the same time.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.pass_obj
def list_servers(directory: Path, *, connect: bool, style: str) -> None:
    """List the servers with their states."""
    rows = run_async(_rows(directory, connect=connect))
    if style == "json":
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo("There are no MCP servers; `pegboard mcp add NAME -- COMMAND` adds one.")
    for row in rows if style == "text" else ():
        about = f"{row['name']}  {row['state']}  {row['tools']} tools  {row['place']}"
        click.echo(escape_controls(f"{about}  {row['error']}".rstrip()))


@mcp.command()
@click.argument("name")
@click.pass_obj
def get(directory: Path, name: str) -> None:
    """Show the server NAME with its tools, prompts and resources."""
    for line in run_async(_description(directory, name)):
        click.echo(escape_controls(line))


@mcp.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("target", nargs=-1, required=True, metavar="URL | -- COMMAND...")
@click.option("--env", "variables", multiple=True, metavar="K=V", help="For its process.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="For its requests.")
@click.option("--no-connect", is_flag=True, help="Do not start it now.")
@click.pass_obj
def add(  # noqa: PLR0913, PLR0917 - a command's options
    directory: Path,
    name: str,
    target: tuple[str, ...],
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    no_connect: bool,  # noqa: FBT001 - click gives options by keyword
) -> None:
    """Add the server NAME to your own settings, with its URL or its start command."""
    entry: dict[str, Any]
    if len(target) == 1 and target[0].startswith(("http://", "https://")):
        entry = {"type": "remote", "url": target[0]}
        if headers:
            entry["headers"] = _pairs(headers)
    else:
        entry = {"type": "local", "command": list(target)}
        if variables:
            entry["environment"] = _pairs(variables)
    _add(directory, name, entry, is_connecting=not no_connect)


@mcp.command("add-json")
@click.argument("name")
@click.argument("entry", metavar="JSON")
@click.option("--no-connect", is_flag=True, help="Do not start it now.")
@click.pass_obj
def add_json(directory: Path, name: str, entry: str, *, no_connect: bool) -> None:
    """Add the server NAME with a JSON entry from another program's settings."""
    try:
        value = json.loads(entry)
    except ValueError as error:
        raise InvalidInputError(f"{entry[:80]!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"{entry[:80]!r} is not an object of JSON, as `.mcp.json` has it")
    _add(directory, name, value, is_connecting=not no_connect)


@mcp.command()
@click.argument("name")
@click.pass_obj
def remove(directory: Path, name: str) -> None:
    """Remove the server NAME from your own settings."""
    server = run_async(_config(directory, name))
    if server.is_project:
        text = f"the MCP server {name} stands in the project's files"
        raise InvalidInputError(f"{text}; `mcp.{name}.enabled = false` in yours switches it off")
    update_user_config(_config_dir(), {"mcp": {name: None}}, env=os.environ)
    click.echo(f"removed {name}")


@mcp.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Take all of it without a question.")
@click.pass_obj
def review(directory: Path, name: str, *, yes: bool) -> None:
    """Show new and changed tools of the server NAME, and ask whether to accept them."""
    run_async(_review(directory, name, yes=yes))


@mcp.command()
@click.argument("name")
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="JSON")
@click.pass_obj
def call(directory: Path, name: str, tool: str, arguments: str) -> None:
    """Call TOOL of the server NAME, and print its result."""
    try:
        values = json.loads(arguments)
    except ValueError as error:
        raise InvalidInputError(f"{arguments[:80]!r} is not JSON: {error}") from error
    click.echo(escape_controls(run_async(_called(directory, name, tool, values))))


@mcp.command()
@click.argument("name")
@click.pass_obj
def auth(directory: Path, name: str) -> None:
    """Sign in to the remote server NAME, in your browser."""
    run_async(_signed_in(directory, name))
    click.echo(escape_controls(f"signed in to {name}"))


mcp.add_command(auth, "login")


@mcp.command()
@click.argument("name")
@click.pass_obj
def logout(directory: Path, name: str) -> None:
    """Sign out of the server NAME, and delete its stored tokens."""
    was_there = run_async(_signed_out(directory, name))
    click.echo(
        escape_controls(f"signed out of {name}" if was_there else f"{name} has no sign-in stored")
    )


@mcp.command()
@click.argument("name")
@click.pass_obj
def debug(directory: Path, name: str) -> None:
    """Start the server NAME, and print each step, without secrets."""
    for line in run_async(_debugged(directory, name)):
        click.echo(escape_controls(line))


@mcp.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder that sessions work in or below, instead of the project.",
)
@click.option("--tools", default="", metavar="NAMES", help="Offer these tools, too, as a,b.")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve HTTP on this port of this machine; 0 takes a free one.",
)
@click.pass_obj
def serve(directory: Path, *, root: Path | None, tools: str, port: int | None) -> None:
    """Offer the agent to other agents, by MCP on standard input and output.

    With --http, clients must send a token: the value of PEGBOARD_MCP_TOKEN, or else the token that
    this command generates and prints.
    """
    from pegboard_mcp import serving  # the SDK's server, which other commands do not need

    refuse_within_tool("pegboard mcp serve")
    offered = [each.strip() for each in tools.split(",") if each.strip()]
    if port is None:
        run_async(serving.serve_stdio(root or directory, offered))
        return

    def announce(address: str, token: str) -> None:
        click.echo(f"listening on {address}", err=True)
        if token:
            click.echo(f"token {token}", err=True)

    token = os.environ.get(serving.VARIABLE, "")
    run_async(
        serving.serve_http(root or directory, offered, port=port, token=token, announce=announce)
    )


@asynccontextmanager
async def _servers(directory: Path) -> AsyncIterator[tuple[App, Servers]]:
    """Open an App and yield it with its MCP servers; no server starts automatically."""
    IS_COMMAND.set(True)
    options = AppOptions(interactive=sys.stdin.isatty())
    async with open_app(directory, options) as app, asyncio.timeout(None) as limit:
        limit.reschedule(asyncio.get_running_loop().time() + SETUP_LIMIT_S)
        while (servers := app.stash.get(SERVERS)) is None:  # noqa: ASYNC110 - a hook sets it
            await asyncio.sleep(0.005)
        limit.reschedule(None)
        yield app, servers


def _named(servers: Servers, name: str) -> Server:
    names = [each.config.name for each in servers]
    if name not in names:
        raise NotFoundError("MCP server", name, suggestions=nearest_names(name, names))
    return servers.named(name)


async def _rows(directory: Path, *, connect: bool) -> list[dict[str, Any]]:
    async with _servers(directory) as (app, servers):
        for path in app.untrusted:
            if path.suffix in CONFIG_SUFFIXES:
                text = "servers in it do not run; `pegboard trust allow` shows what is in it"
                click.echo(escape_controls(f"{path} is not trusted, so {text}"), err=True)
        if connect:
            await asyncio.gather(*(servers.look(each) for each in servers if each.config.enabled))
        return [
            {
                "name": service.name,
                "state": service.state,
                "tools": len(server.catalogue.tools) if server.catalogue else 0,
                "place": server.config.place,
                "source": server.config.source,
                "error": service.error,
            }
            for service, server in zip(await services_of(servers), servers, strict=True)
        ]


async def _config(directory: Path, name: str) -> Any:  # noqa: ANN401 - its type is the server's
    async with _servers(directory) as (_app, servers):
        return _named(servers, name).config


async def _description(directory: Path, name: str) -> list[str]:
    async with _servers(directory) as (_app, servers):
        server = _named(servers, name)
        config, known = server.config, server.catalogue
        lines = [
            f"{name}  {server.state}",
            f"  at       {config.place}",
            f"  from     {config.source}",
            f"  log      {server.files.log}",
        ]
        if known is None:
            return [*lines, "  it has not listed its tools yet; `pegboard mcp list --connect`"]
        lines.append(f"  version  {known.version}  {known.server_name} {known.server_version}")
        lines += [f"  note     {note}" for note in known.notes]
        lines += [
            f"  tool     {each.name}: {_first_line(each.description)}" for each in known.tools
        ]
        lines += [f"  prompt   {each.name}: {each.description}" for each in known.prompts]
        found = (*known.resources, *known.templates)
        return [*lines, *(f"  resource {each.uri}: {each.name}" for each in found)]


def _add(directory: Path, name: str, entry: Mapping[str, Any], *, is_connecting: bool) -> None:
    server = server_of(Source(file="the command line"), name, entry)
    update_user_config(_config_dir(), {"mcp": {name: dict(entry)}}, env=os.environ)
    click.echo(f"added {name}: {server.place}")
    if is_connecting:
        for line in run_async(_first_look(directory, name)):
            click.echo(escape_controls(line))


async def _first_look(directory: Path, name: str) -> list[str]:
    """Connect to a new server to store its tools in the catalogue; return lines for the user."""
    async with _servers(directory) as (_app, servers):
        server = _named(servers, name)
        await servers.look(server)
        if server.catalogue is None:
            return [f"{server.error}; `pegboard mcp debug {name}` says more"]
        tools = server.catalogue.tools
        return [f"  {each.name}: {_first_line(each.description)}" for each in tools]


async def _review(directory: Path, name: str, *, yes: bool) -> None:
    async with _servers(directory) as (_app, servers):
        server = _named(servers, name)
        await servers.look(server)
        await review_server(server, yes=yes)


async def _called(directory: Path, name: str, tool: str, arguments: Mapping[str, Any]) -> str:
    async with _servers(directory) as (_app, servers):
        server = _named(servers, name)

        async def send(connection: Any) -> str:  # noqa: ANN401 - its module imports the SDK
            from pegboard_mcp.content import tool_result  # the SDK is there once a server runs

            return tool_result(name, tool, await connection.call(tool, arguments)).output

        return await server.request(send)


async def _signed_in(directory: Path, name: str) -> None:
    async def show(address: str) -> None:
        click.echo(f"Open this address to sign in to {name}:")
        click.echo(escape_controls(address))
        if sys.stdin.isatty():
            await open_browser(address)

    async with _servers(directory) as (_app, servers):
        _named(servers, name)
        await sign_in(servers, name, show)


async def _signed_out(directory: Path, name: str) -> bool:
    async with _servers(directory) as (_app, servers):
        return _named(servers, name).files.grants.remove()


async def _debugged(directory: Path, name: str) -> list[str]:
    async with _servers(directory) as (_app, servers):
        server = _named(servers, name)
        config = server.config
        lines = [
            f"server     {config.place}",
            f"from       {config.source}",
            f"variables  {', '.join((*config.environment, *config.env)) or 'none of its own'}",
            f"headers    {', '.join(config.headers) or 'none of its own'}",
        ]
        try:
            await server.connect()
        except ToolError as error:
            lines += [f"failed     {error}", f"log        {server.files.log}"]
            return lines
        known = server.catalogue
        assert known is not None
        lines += [
            f"connected  version {known.version}, {known.server_name} {known.server_version}",
            f"lists      {len(known.tools)} tools, {len(known.prompts)} prompts",
            f"           {len(known.resources) + len(known.templates)} resources",
        ]
        return [*lines, *(f"note       {note}" for note in known.notes)]


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidInputError(f"{word.partition('=')[0]!r} is not NAME=VALUE")
        found[name] = value
    return found


def _config_dir() -> Path:
    return UserFolders.of(os.environ).config


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:100]
