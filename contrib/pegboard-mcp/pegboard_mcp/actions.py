"""What clients of Pegboard's server see of the servers, and have them do."""

from collections.abc import Mapping
from typing import Any

from pegboard.schema.config import Service
from pegboard_mcp.configuration import Source, server_of
from pegboard_mcp.server import Server
from pegboard_mcp.servers import Servers


def services_of(servers: Servers) -> tuple[Service, ...]:
    """Return the servers with what has become of them."""
    return tuple(_service(servers, each) for each in servers)


def _service(servers: Servers, server: Server) -> Service:
    name, state = server.config.name, server.state
    if changed := servers.changed(name):
        names = ", ".join(each.name for each in changed)
        text = f"changed since their review: {names}; `pegboard mcp review {name}` shows how"
        return Service(kind="mcp", name=name, state="changed", error=text)
    return Service(
        kind="mcp", name=name, state="ready" if state == "idle" else state, error=server.error
    )


async def act(
    servers: Servers, name: str, action: str, data: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Have a server do something, None where there is no such server or action.

    :raises PegboardError: when it fails.
    """
    if action == "add":
        await servers.add(server_of(Source(file="a client"), name, data))
        return {}
    if action == "resources":
        return {key: value for each in servers for key, value in _resources(each)}
    if name not in {each.config.name for each in servers}:
        return None
    server = servers.named(name)
    match action:
        case "connect":
            await server.connect()
        case "disconnect":
            await server.disconnect()
        case _:
            return None
    return {}


def _resources(server: Server) -> list[tuple[str, dict[str, Any]]]:
    name = server.config.name
    found = server.catalogue.resources if server.catalogue is not None else ()
    return [
        (
            f"{name}:{each.name or each.uri}",
            {
                "name": each.name or each.uri,
                "uri": each.uri,
                "description": each.description,
                "mimeType": each.mime_type,
                "client": name,
            },
        )
        for each in found
    ]
