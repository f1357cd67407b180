"""Servers over HTTP that misbehave: the limits of a process's lines hold for their answers."""

import asyncio
import json

import pytest
from settled import settled
from test_faults import CALL, server_of

STYLES = ("json", "events", "sse")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("mode", ["hang_start", "hang_list"])
async def test_a_silent_server_fails_within_its_limit(served_app, bridged, style, mode) -> None:
    async with served_app({"raw": bridged(style, mode, connect_timeout_s=1)}) as scripted:
        server = server_of(scripted)
        turn = await scripted.turn()

    assert server.state == "failed"
    assert "it was silent for 1 s" in server.error
    assert turn.text == "done"


@pytest.mark.parametrize("style", STYLES)
async def test_a_call_without_an_answer_fails_at_its_limit_and_the_server_stays(
    served_app, bridged, style
) -> None:
    server = bridged(style, "hang_call", call_timeout_s=0.5)

    async with served_app({"raw": server}, CALL) as scripted:
        turn = await scripted.turn()
        state = server_of(scripted).state

    assert "did not answer within 0.5 s" in turn.calls[0].error
    assert state == "running"


@pytest.mark.parametrize("style", STYLES)
async def test_a_connection_that_ends_during_a_call_is_an_error_of_the_call(
    served_app, bridged, style
) -> None:
    async with served_app({"raw": bridged(style, "die_call")}, CALL) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].error
    assert turn.text == "done"


@pytest.mark.parametrize("style", ["events", "sse"])
async def test_events_that_are_not_messages_are_skipped(served_app, bridged, style) -> None:
    async with served_app({"raw": bridged(style, "garbage")}, CALL) as scripted:
        turn = await scripted.turn()
        log = server_of(scripted).files.log.read_text()

    assert turn.calls[0].output == "x"
    assert log.count("that are not messages") == 1


@pytest.mark.parametrize("style", STYLES)
async def test_bytes_that_are_not_utf8_are_replaced(served_app, bridged, style) -> None:
    async with served_app({"raw": bridged(style, "badutf")}, CALL) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].output == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("style", "mode", "words"),
    [
        *((style, "big", "answered with more than 16 MiB") for style in STYLES),
        *((style, "noline", "answered with more than 16 MiB") for style in STYLES),
        ("events", "flood", "unasked messages in a second"),
        ("sse", "flood", "unasked messages in a second"),
    ],
)
async def test_a_server_that_sends_too_much_is_left(
    served_app, bridged, style, mode, words
) -> None:
    async with served_app({"raw": bridged(style, mode)}, CALL) as scripted:
        turn = await scripted.turn()
        await settled(lambda: server_of(scripted).state != "running")

    assert words in turn.calls[0].error


@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_with_too_many_values_is_refused_and_the_connection_goes_on(
    served_app, bridged, style
) -> None:
    wanted = [{"times": 1}, {"item": {"k": 1}, "times": 400_000}, {"times": 1}]
    script = [("raw_t", {"a": json.dumps(each)}) for each in wanted]

    async with served_app({"raw": bridged(style, "values")}, *script, "done") as scripted:
        first, objects, last = (await scripted.turn()).calls

    text = "the MCP server raw cannot answer: its message has 800009 values, and 50000 are allowed"
    assert text in objects.error
    assert json.loads(first.output)["pid"] == json.loads(last.output)["pid"]


@pytest.mark.parametrize("style", STYLES)
async def test_a_large_answer_within_the_limits_arrives_whole(served_app, bridged, style) -> None:
    asked = json.dumps({"text": 'a, {[" \\\n', "item": 1, "times": 40_000})

    async with served_app({"raw": bridged(style, "values")}, ("raw_t", {"a": asked})) as scripted:
        call = (await scripted.turn()).calls[0]

    assert not call.error


async def test_a_compressed_answer_is_refused_since_its_size_is_not_known(
    served_app, bridged
) -> None:
    async with served_app({"raw": bridged("gzip")}) as scripted:
        server = server_of(scripted)

    assert server.state == "failed"
    assert "it answers with the encoding gzip, although none is allowed" in server.error


async def test_a_remote_server_is_reached_through_the_proxy_of_the_environment(
    served_app, monkeypatch
) -> None:
    asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set_result((await reader.readline()).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        async with served_app({"raw": {"url": "https://mcp.example.com/mcp"}}) as scripted:
            state = server_of(scripted).state

    assert asked.result() == "CONNECT mcp.example.com:443 HTTP/1.1\r\n"
    assert state == "failed"
