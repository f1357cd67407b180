"""What the event loop itself spends on a server's messages, in processor time of its thread."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.remote import http_streams
from pegboard_mcp.stdio import process_streams
from pegboard_mcp.traffic import Traffic

STALL_S = 0.25
PART = 0.25
"""Of the time that parsing takes: reading and the look at the head; measured: 0.02."""
REFUSING = 0.5
"""Of the time that parsing takes: reading and counting; measured: 0.1."""
ITEMS = 400_000
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}
FLOOD = f"for _ in range(60_000): print({json.dumps(NOTE)!r})"
LARGE = f"""
import json, sys
sys.stdin.readline()
result = {{"content": [], "structuredContent": {{"a": [{{"k": 1}}] * {ITEMS}}}}}
print(json.dumps({{"jsonrpc": "2.0", "id": 1, "result": result}}), flush=True)
sys.stdin.read()
"""
REQUEST = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": "t"})


class LoopTime:
    """The most processor time that the thread of the loop has used in one round of the loop."""

    def __init__(self) -> None:
        self.most_s = 0.0
        self._last_s = time.thread_time()
        self._next = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        now_s = time.thread_time()
        self.most_s = max(self.most_s, now_s - self._last_s)
        self._last_s = now_s
        self._next = asyncio.get_running_loop().call_soon(self._look)

    def end(self) -> float:
        """Stop looking and return the time."""
        self._next.cancel()
        return self.most_s


async def most_of_a_round_s(program: str, traffic: Traffic, folder: Path) -> float:
    """Have the program answer a call, or be ended for what it writes."""
    command = (sys.executable, "-c", program)
    async with process_streams(command, cwd=folder, env={}, traffic=traffic) as (inbound, outbound):
        spent = LoopTime()
        await outbound.send(SessionMessage(REQUEST))
        try:
            await inbound.receive()
        except anyio.EndOfStream:
            assert traffic.reason.startswith("sent more than")
        return spent.end()


def parsing_time_s() -> float:
    """Measure the processor time that the SDK's parser takes for the large answer."""
    result = {"content": [], "structuredContent": {"a": [{"k": 1}] * ITEMS}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
    before_s = time.thread_time()
    jsonrpc_message_adapter.validate_json(line, by_name=False)
    return time.thread_time() - before_s


async def test_a_flood_of_log_messages_stalls_no_round_of_the_loop(tmp_path: Path) -> None:
    traffic = Traffic(lambda _: None)

    most_s = await most_of_a_round_s(FLOOD, traffic, tmp_path)

    assert traffic.reason.startswith("sent more than")
    assert most_s < STALL_S


async def test_a_large_answer_is_not_parsed_in_the_thread_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_mcp.messages.MESSAGE_VALUES", 10 * ITEMS)
    traffic = Traffic(lambda _: None)

    parsing_s = parsing_time_s()
    most_s = await most_of_a_round_s(LARGE, traffic, tmp_path)

    assert traffic.reason == "ended"  # as the end of the connection says
    assert most_s < PART * parsing_s


@pytest.mark.parametrize("style", ["json", "events", "sse"])
async def test_a_large_answer_over_http_is_not_parsed_in_the_thread_of_the_loop(
    bridged: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    monkeypatch.setattr("pegboard_mcp.messages.MESSAGE_VALUES", 10 * ITEMS)
    transport: Literal["http", "sse"] = "sse" if style == "sse" else "http"
    config = ServerConfig(name="raw", url=bridged(style, "values")["url"], transport=transport)
    asked = {"a": json.dumps({"item": {"k": 1}, "times": ITEMS})}
    params = {"name": "t", "arguments": asked}
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)

    parsing_s = parsing_time_s()
    async with http_streams(config, Traffic(lambda _: None), None) as (inbound, outbound):
        spent = LoopTime()
        await outbound.send(SessionMessage(request))
        answer = await inbound.receive()
        most_s = spent.end()

    assert isinstance(answer, SessionMessage)
    assert isinstance(answer.message, JSONRPCResponse)
    assert len(answer.message.result["structuredContent"]["list"]) == ITEMS
    assert most_s < PART * parsing_s


async def test_an_answer_with_too_many_values_is_not_parsed_in_any_thread(tmp_path: Path) -> None:
    parsing_s = parsing_time_s()
    command, traffic = (sys.executable, "-c", LARGE), Traffic(lambda _: None)

    async with process_streams(command, cwd=tmp_path, env={}, traffic=traffic) as (answers, asked):
        before_s = time.process_time()
        await asked.send(SessionMessage(REQUEST))
        await answers.receive()
        spent_s = time.process_time() - before_s

    assert spent_s < REFUSING * parsing_s
