"""Servers over HTTP on this machine, of both eras."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pegboard_mcp.tools import SERVERS

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    command = [sys.executable, "-P", str(HERE / "sdk_server.py"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


async def test_a_tool_of_a_remote_server_is_called(served_app, http_server) -> None:
    server = {"type": "remote", "url": http_server}

    async with served_app({"far": server}, ("far_add", {"a": 2, "b": 3})) as scripted:
        turn = await scripted.turn()
        version = scripted.app.stash.get(SERVERS).named("far").catalogue.version

    assert turn.call("far_add").output == "5"
    assert version == "2026-07-28"


async def test_the_handshake_of_the_older_era_is_spoken_too(
    served_app, http_server, tmp_path
) -> None:
    server = {"type": "remote", "url": http_server}
    async with served_app({"far": server}):
        pass
    catalogue = next((tmp_path / "cache").rglob("far-*.json"))
    catalogue.write_text(catalogue.read_text().replace('"2026-07-28"', '"2025-11-25"', 1))

    async with served_app({"far": server}, ("far_add", {"a": 2, "b": 3})) as scripted:
        turn = await scripted.turn()
        version = scripted.app.stash.get(SERVERS).named("far").catalogue.version

    assert turn.call("far_add").output == "5"
    assert version == "2025-11-25"


async def test_an_answer_over_http_has_a_limit(served_app, http_server) -> None:
    server = {"type": "remote", "url": http_server}

    async with served_app({"far": server}, ("far_long", {"size": 20_000_000})) as scripted:
        turn = await scripted.turn()

    assert "answered with more than 16 MiB" in turn.calls[0].error


async def test_a_server_that_is_not_there_is_named(served_app) -> None:
    server = {"type": "remote", "url": "http://127.0.0.1:9/mcp"}

    async with served_app({"far": server}) as scripted:
        found = scripted.app.stash.get(SERVERS).named("far")

    assert found.state == "failed"
    assert "connect" in found.error.lower()


@pytest.mark.parametrize("url", ["http://example.com/mcp", "ftp://127.0.0.1/mcp"])
async def test_a_url_is_https_or_of_this_machine(served_app, url) -> None:
    async with served_app({"far": {"type": "remote", "url": url}}) as scripted:
        assert [*scripted.app.stash.get(SERVERS)] == []


async def test_an_argument_that_is_a_header_too_arrives_from_a_catalogue(
    served_app, http_server, tmp_path
) -> None:
    server = {"type": "remote", "url": http_server}
    async with served_app({"far": server}):
        pass
    catalogue = next((tmp_path / "cache").rglob("far-*.json"))
    catalogue.write_text(json.dumps({**json.loads(catalogue.read_text()), "fresh_s": 3600}))

    async with served_app({"far": server}, ("far_shard", {"region": "north"})) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].output == "north"
