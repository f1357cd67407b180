"""The cost of servers at the start of an App: catalogues on disk, and no server, SDK or network."""

import json
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pegboard_mcp
import pytest
from pegboard_mcp import catalogue

from pegboard import App, AppOptions
from pegboard.testing import ScriptedApp

ServedApp = Callable[..., AbstractAsyncContextManager[ScriptedApp]]

SERVERS = 5
TOOLS = 10
TRIES = 7
MOST = 2.0
"""Times the start without servers; measured: 1.2 with 50 tools, 5 ms."""
MOST_HELD = 1.5
"""Times the lists of a server as read once; measured: 1.2."""
PROPERTIES = {f"argument_{at}": {"type": "string", "description": "d" * 40} for at in range(8)}


def listed_tools() -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": PROPERTIES}
    return [
        {"name": f"t{at}", "description": "d" * 200, "inputSchema": schema} for at in range(TOOLS)
    ]


def catalogue_bytes() -> int:
    """Measure the memory that values of catalogues take."""
    chosen = tracemalloc.Filter(inclusive=True, filename_pattern=catalogue.__file__)
    return sum(each.size for each in tracemalloc.take_snapshot().filter_traces([chosen]).traces)


async def test_five_known_servers_cost_little_of_a_start(
    served_app: ServedApp, raw_server: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    tools = listed_tools()
    listing = tmp_path / "tools.json"
    listing.write_text(json.dumps(tools))
    servers = {f"s{at}": raw_server("file", listing) for at in range(SERVERS)}
    async with served_app(servers) as scripted:
        assert len([each for each in scripted.app.tools if "_t" in each]) >= SERVERS * TOOLS
    folders: dict[str, Any] = {
        f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")
    }

    async def start_s(config: dict[str, object], *plugins: object) -> float:
        """Measure this process's time; a clock on the wall includes other processes."""
        before = time.process_time()
        options = AppOptions(plugins=plugins, config=config, **folders)
        async with App.open(tmp_path / "project", options):
            return time.process_time() - before

    without = [await start_s({}) for _ in range(TRIES)]
    with_servers = [await start_s({"mcp": servers}, pegboard_mcp) for _ in range(TRIES)]

    assert min(with_servers) < MOST * min(without)


async def test_an_app_holds_what_a_server_has_listed_once(
    served_app: ServedApp,
    raw_server: Callable[..., dict[str, Any]],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    listing = tmp_path / "tools.json"
    listing.write_text(json.dumps(listed_tools()))
    servers = {"raw": raw_server("file", listing)}
    async with served_app(servers):
        pass
    (path,) = (tmp_path / "cache").rglob("raw-*.json")
    request.addfinalizer(tracemalloc.stop)
    tracemalloc.start()
    alone = catalogue.read_catalogue(path)
    once = catalogue_bytes()
    assert alone is not None

    async with served_app(servers) as scripted:
        held = catalogue_bytes() - once

        assert "raw_t0" in scripted.app.tools
    assert 0 < held < MOST_HELD * once
