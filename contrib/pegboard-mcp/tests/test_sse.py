"""The old transport by server-sent events, which a server has only by `type = "sse"`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pegboard_mcp.tools import SERVERS

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-P", str(HERE / "sdk_server.py"), "http", "sse"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/sse"
        process.kill()


async def test_tools_are_called_over_server_sent_events(served_app, address) -> None:
    server = {"type": "sse", "url": address}
    calls = [[("far_add", {"a": number, "b": 1}) for number in range(5)]]

    async with served_app({"far": server}, *calls) as scripted:
        turn = await scripted.turn()

    assert [each.output for each in turn.calls] == ["1", "2", "3", "4", "5"]


async def test_an_answer_over_server_sent_events_has_a_limit(served_app, address) -> None:
    server = {"type": "sse", "url": address}

    async with served_app({"far": server}, ("far_long", {"size": 20_000_000})) as scripted:
        turn = await scripted.turn()

    assert "answered with more than 16 MiB" in turn.calls[0].error


async def test_the_newer_transport_does_not_fall_back_to_the_old_one(served_app, address) -> None:
    async with served_app({"far": {"type": "remote", "url": address}}) as scripted:
        found = scripted.app.stash.get(SERVERS).named("far")

    assert found.state == "failed"
