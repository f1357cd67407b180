"""The files that Pegboard keeps for an MCP server: catalogue, pins, log and grants."""

import re
from pathlib import Path
from typing import NamedTuple

from pegboard import Plugin
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.grants import GrantFile
from pegboard_mcp.pins import PinFile


class ServerFiles(NamedTuple):
    """The paths of a server's files: catalogue, pins, log and grants.

    The catalogue only caches the tools; the pins (reviewed definitions) decide which are offered.
    """

    catalogue: Path
    pins: PinFile
    log: Path
    grants: GrantFile


def files_of(plugin: Plugin, config: ServerConfig) -> ServerFiles:
    """Return the paths of a server's files, which depend on the server's command or URL."""
    name = re.sub(r"[^\w-]", "_", config.name)
    stem = f"{name}-{config.digest}"
    pins = PinFile(plugin.data_dir / "pins" / f"{stem}.json", f"{config.name} {config.place}")
    return ServerFiles(
        catalogue=plugin.cache_dir / f"{stem}.json",
        pins=pins,
        log=plugin.data_dir / "log" / f"mcp-{name}.log",
        grants=GrantFile(plugin.data_dir / "auth" / f"{stem}.json", config.url),
    )
