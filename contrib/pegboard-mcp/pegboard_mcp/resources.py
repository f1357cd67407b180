"""The resources of MCP servers: tools that list and read resources, and `@server:uri` mentions."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from pegboard import PermissionContext, Tool, ToolContext, ToolError, ToolResult, tool
from pegboard.schema.message import Turn
from pegboard.schema.part import Part, TextPart
from pegboard_mcp.catalogue import Catalogue
from pegboard_mcp.tools import SERVERS

if TYPE_CHECKING:
    from pegboard_mcp.connection import ServerConnection
    from pegboard_mcp.server import Server
    from pegboard_mcp.servers import Servers

MENTIONS = 8
"""The most resources that one message reads."""
_MENTION = re.compile(r"(?<![\w@])@(?P<server>[A-Za-z0-9][\w.-]*):(?P<uri>[^\s<>\"']+)")
_SENTENCE_END = ".,;:!?)"


@tool(effect="reads", requires=False)
async def mcp_list(context: ToolContext, server: str = "") -> str:
    """List the resources of MCP servers, by their URIs.

    Args:
        server: the name of one server; without it, all servers are listed.
    """
    servers = _opened(context)
    chosen = [servers.named(server)] if server else [*servers]
    lines = [line for each in chosen for line in _lines(each)]
    return "\n".join(lines) or "There are no resources."


async def _require_read(context: PermissionContext, server: str, uri: str) -> None:
    await context.require("mcp_read", (f"{server}:{uri}",), always=(f"{server}:*",))


@tool(effect="reads", requires=_require_read)
async def mcp_read(context: ToolContext, server: str, uri: str) -> ToolResult:
    """Read a resource of an MCP server.

    Args:
        server: the name of the server.
        uri: the URI as `mcp_list` gives it; replace each `{name}` in a template by a value.
    """
    found = _opened(context).named(server)
    if found.config.is_project and not context.trusted:
        raise ToolError(f"the MCP server {server} is the project's, which is not trusted")
    return await read_resource(found, uri)


def resource_tools(known: Iterable[Catalogue]) -> tuple[Tool, ...]:
    """Return the tools for resources, or () if no server has resources."""
    return (mcp_list, mcp_read) if any(it.resources or it.templates for it in known) else ()


async def read_resource(server: "Server", uri: str) -> ToolResult:
    """Return the content of a resource.

    :raises ToolError: when the server does not return the resource.
    """

    async def send(connection: "ServerConnection") -> ToolResult:
        from pegboard_mcp.content import resource_result  # the SDK is there once a server runs

        return resource_result(uri, await connection.read(uri))

    return await server.request(send)


async def with_mentioned(servers: "Servers", message: Turn) -> Turn | None:
    """Add the content of mentioned resources to a message; None if no resource is mentioned."""
    parts: list[Part] = []
    count = 0
    for part in message.parts:
        if isinstance(part, TextPart) and not part.synthetic:
            texts = []
            for server, uri in _mentions(servers, part.text)[: MENTIONS - count]:
                count += 1
                texts.append(await _block(server, uri))
            text = "\n\n".join((part.text, *texts))
            parts.append(msgspec.structs.replace(part, text=text) if texts else part)
        else:
            parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts)) if count else None


def _mentions(servers: "Servers", text: str) -> "list[tuple[Server, str]]":
    by_name = {each.config.name: each for each in servers if each.config.enabled}
    found = {
        (match["server"], match["uri"].rstrip(_SENTENCE_END)) for match in _MENTION.finditer(text)
    }
    return [(by_name[name], uri) for name, uri in sorted(found) if name in by_name]


async def _block(server: "Server", uri: str) -> str:
    """Return the content of a resource in a tag with its server and URI."""
    try:
        content = (await read_resource(server, uri)).output
    except ToolError as error:
        content = f"It cannot be read: {error}"
    return f'<resource server="{server.config.name}" uri="{uri}">\n{content}\n</resource>'


def _opened(context: ToolContext) -> "Servers":
    servers = context.stash.get(SERVERS)
    if servers is None:
        raise ToolError("the MCP servers are not set up yet; call the tool again")
    return servers


def _lines(server: "Server") -> list[str]:
    known = server.catalogue
    found = (*known.resources, *known.templates) if known is not None else ()
    return [
        f"{server.config.name}  {each.uri}  {each.name}  {each.description}".rstrip()
        for each in found
    ]
