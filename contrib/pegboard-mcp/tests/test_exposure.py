"""Two hundred tools of servers and sixty of a plugin: what of them a request has."""

import json
from collections.abc import Sequence

import msgspec
import pytest

from pegboard import Tool, hookimpl

SERVERS = 4
TOOLS = 50
PLUGIN_TOOLS = 60
MOST_TOKENS = 2000
"""More than a request without these tools; measured: 310."""
BYTES_PER_TOKEN = 4
PROPERTIES = {f"argument_{at}": {"type": "string", "description": "d" * 60} for at in range(6)}
SCHEMA = {"type": "object", "properties": PROPERTIES}
FOUND = {"query": "select:s1_t7,plugin_9"}


class Plugin:
    """A plugin with many tools."""

    @hookimpl
    async def register_tools(self) -> Sequence[Tool]:
        return [Tool.raw(f"plugin_{at}", "d" * 200, SCHEMA, work) for at in range(PLUGIN_TOOLS)]


async def work(_context: object, _arguments: object) -> str:
    return "worked"


@pytest.fixture
def servers(raw_server, tmp_path):
    listing = tmp_path / "tools.json"
    tools = [
        {"name": f"t{at}", "description": "d" * 200, "inputSchema": SCHEMA} for at in range(TOOLS)
    ]
    listing.write_text(json.dumps(tools))
    return {f"s{at}": raw_server("file", listing) for at in range(SERVERS)}


def tokens(request) -> int:
    """Return the tokens of the tools and the system prompt of a request, by their bytes."""
    return len(msgspec.json.encode((request.tools, request.system))) // BYTES_PER_TOKEN


async def test_many_tools_add_little_to_a_request_and_are_found_and_called(
    served_app, servers
) -> None:
    async with served_app({}) as scripted:
        without = tokens((await scripted.turn()).requests[0])
    calls: list[object] = [("s1_t7", {"a": "x"}), ("plugin_9", {})]

    async with served_app(servers, ("tool_search", FOUND), calls, plugins=(Plugin(),)) as scripted:
        turn = await scripted.turn()
        known = [each for each in scripted.app.tools.values() if each.id[0] in "sp"]

    first, second, _ = turn.requests
    names = [each.name for each in first.tools]
    assert len(known) >= SERVERS * TOOLS + PLUGIN_TOOLS
    assert len(first.deferred) == SERVERS * TOOLS + PLUGIN_TOOLS
    assert tokens(first) - without <= MOST_TOKENS
    assert [each.name for each in second.tools] == [*names, "s1_t7", "plugin_9"]
    assert msgspec.json.encode(second.tools[: len(names)]) == msgspec.json.encode(first.tools)
    assert [each.output for each in turn.calls[1:]] == ["x", "worked"]


async def test_hidden_tools_are_neither_found_nor_called(served_app, servers) -> None:
    search = ("tool_search", {"query": "select:s1_t7,s2_t7"})
    config = {"exposure": {"s1_*": "hidden"}}

    async with served_app(servers, search, ("s1_t7", {}), config=config) as scripted:
        turn = await scripted.turn()

    assert "s2_t7" in turn.calls[0].output
    assert "s1_t7:" not in turn.calls[0].output
    assert turn.calls[1].tool == "invalid"
