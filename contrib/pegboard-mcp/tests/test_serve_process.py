"""`pegboard mcp serve` as a process, over standard streams and over HTTP."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from client_user import ERAS, answering
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from settled import settled

from support.processes.forks import PIPE, run, start

TOKEN = "t0ken-t0ken-t0ken-t0ken"
Connected = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def started(command: tuple[str, ...], surroundings: Mapping[str, str]) -> Connected:
    """Connect a client of the SDK with a server that it starts."""

    @asynccontextmanager
    async def opened(*words: str, **settings: Any) -> AsyncIterator[Client]:
        parameters = StdioServerParameters(
            command=command[0], args=[*command[1:], *words], env=dict(surroundings)
        )
        async with Client(stdio_client(parameters), **settings) as client:
            yield client

    return opened


def test_an_unknown_tool_ends_the_start(command, surroundings) -> None:
    process = subprocess.run(
        [*command, "--tools", "raed"],
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
        input="",
    )

    assert process.returncode == 1
    assert "Did you mean read?" in process.stderr


def test_without_a_client_the_command_says_what_it_is_for(command, surroundings) -> None:
    process = run(command, cwd=Path.cwd(), env=surroundings)

    assert process.returncode == 1
    assert process.stderr.startswith("standard input is not a pipe: another agent starts")


@ERAS
async def test_a_client_starts_the_server_and_answers_what_it_asks(started, mode) -> None:
    user = answering({"reply": "once"})

    async with started("--tools", "read", mode=mode, elicitation_callback=user) as client:
        tools = {each.name for each in (await client.list_tools()).tools}
        prompt = {"prompt": "%bash echo x > made.txt;;%say done"}
        result = await client.call_tool("pegboard", prompt)

    assert tools == {"pegboard", "pegboard_reply", "read"}
    assert result.structured_content["changed"] == ["made.txt"]


async def test_nothing_remains_when_the_server_is_told_to_end(
    command, surroundings, project
) -> None:
    allowed = json.loads(surroundings["PEGBOARD_CONFIG_CONTENT"]) | {"permission": {"*": "allow"}}
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**surroundings, "PEGBOARD_CONFIG_CONTENT": json.dumps(allowed)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    call = {"name": "pegboard", "arguments": {"prompt": "%bash echo $$ > pid; exec sleep 300"}}
    for message in handshake(call):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    pid_file = project / "pid"
    await settled(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    process.terminate()

    assert await asyncio.wait_for(process.wait(), 60) == 0
    await settled(lambda: not Path(f"/proc/{int(pid_file.read_text())}").exists())


def handshake(call: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the messages of a client that begins and makes a call."""
    about = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    return (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )


@pytest.fixture
def http_server(command: tuple[str, ...], surroundings: Mapping[str, str]) -> Iterator[str]:
    env = {**surroundings, "PEGBOARD_MCP_TOKEN": TOKEN}
    with start([*command, "--http", "0"], cwd=Path.cwd(), env=env, stderr=PIPE) as process:
        assert process.stderr is not None
        yield process.stderr.readline().decode().removeprefix("listening on ").strip()
        process.terminate()
        assert process.wait(60) in (0, -15)


@asynccontextmanager
async def over_http(address: str, token: str, **settings: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(address, http_client=http), **settings) as client,
    ):
        yield client


@ERAS
async def test_a_prompt_over_http_asks_and_is_answered(http_server, mode) -> None:
    user = answering({"reply": "once"})

    async with over_http(http_server, TOKEN, mode=mode, elicitation_callback=user) as client:
        prompt = {"prompt": "%bash echo x > made.txt;;%say done"}
        result = await client.call_tool("pegboard", prompt)

    assert result.structured_content["changed"] == ["made.txt"]


async def test_http_is_closed_without_the_token_and_to_other_hosts(http_server) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    token = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        answers = [
            await client.post(http_server, json=body, headers=headers)
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {**token, "Host": "evil.example"},
                {**token, "Origin": "https://evil.example"},
            )
        ]

    assert [each.status_code for each in answers] == [401, 401, 421, 403]


async def test_our_own_client_calls_our_server(served_app, http_server) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    server = {"type": "remote", "url": http_server, "headers": headers}
    calls = [
        ("inner_pegboard", {"prompt": "%write made.txt x;;%say done"}),
        ("inner_pegboard", {"prompt": "%say x", "cwd": ".."}),
    ]

    async with served_app({"inner": server}, *calls) as scripted:
        turn = await scripted.turn()

    assert "done" in turn.calls[0].output
    assert "is outside" in turn.calls[1].error
