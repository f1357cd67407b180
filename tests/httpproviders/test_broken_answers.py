"""Answers of status 200 that break off, are in other bytes, or are no answers."""

import gzip
import json

import pytest

from pegboard.errors import ProviderError
from pegboard.providers import TextDelta, TextStart
from support.models import model_server as ms
from support.models.provider_run import events_of, failure_of, provider_at, request_for, text_of


def _json(status: int, body: object, **headers: str) -> list[ms.Piece]:
    content = json.dumps(body).encode()
    head = {"content-type": "application/json", "content-length": str(len(content)), **headers}
    return [ms.Status(code=status, headers=head), content]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([ms.Wire(b"")], id="P13 before the first event"),
        pytest.param([ms.text("Hel"), ms.Cut()], id="P14 in text"),
        pytest.param([*ms.tool_call("read", '{"a":1}'), ms.Cut()], id="P15 in arguments"),
        pytest.param([ms.text("Hel")], id="P16 a clean end without a last event"),
        pytest.param(
            [ms.Status(headers={"connection": "close"}), *ms.text("Hel")],
            id="P16 the end of the connection is the end of the body",
        ),
        pytest.param(
            [ms.Wire(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\ndata: {}")],
            id="less than the announced length",
        ),
        pytest.param([ms.Wire(b"SSH-2.0-OpenSSH_9\r\n")], id="another protocol"),
        pytest.param([ms.text("Hel"), b'data: {"choices": [{\n\n'], id="P19 broken JSON"),
        pytest.param([b'data: "text"\n\n'], id="P19 JSON of another shape"),
        pytest.param(
            [ms.Status(headers={"content-encoding": "gzip"}), *ms.say("hi")],
            id="P33 not compressed, as it claims",
        ),
    ],
)
async def test_an_answer_that_breaks_off_is_a_failure_worth_a_retry(pieces: ms.Answer) -> None:
    assert (await failure_of(pieces)).retryable


@pytest.mark.parametrize("encoding", ["br", "zstd"])
async def test_p33_an_encoding_that_was_not_asked_for_is_final(encoding: str) -> None:
    head = ms.Status(headers={"content-encoding": encoding})

    error = await failure_of([head, *ms.say("hi")])

    assert not error.retryable
    assert f"compressed with {encoding}" in str(error)


@pytest.mark.parametrize(
    "event",
    [
        b'event: error\ndata: {"message": "boom"}\n\n',
        b"event: error\ndata: boom\n\n",
        b'data: {"choices": [{"error": {"message": "boom"}, "finish_reason": "error"}]}\n\n',
    ],
)
async def test_an_error_in_a_stream_keeps_its_text(event: bytes) -> None:
    assert str(await failure_of(ms.text("Hel"), event)) == "test: boom"


async def test_html_that_calls_itself_a_stream_is_named_as_what_it_is() -> None:
    error = await failure_of([b"<html><title>Log in</title></html>"])

    assert not error.retryable
    assert "'Log in'" in str(error)


async def test_an_empty_answer_is_named_as_what_it_is() -> None:
    error = await failure_of([ms.Status(headers={"content-length": "0"})])

    assert error.retryable
    assert str(error) == "test: the server sent an empty answer"


async def test_another_status_of_success_shows_no_raw_events() -> None:
    error = await failure_of([ms.Status(code=206), *ms.say("hi")])

    assert str(error) == "test: HTTP status 206 (206)"


async def test_p17_silence_is_a_failure_and_comments_are_silence() -> None:
    pings = [piece for _ in range(40) for piece in (b": ping\n\n", ms.Pause(0.05))]

    error = await failure_of(ms.text("Hel"), pings, ms.Pause(), idle_timeout_s=1)

    assert error.retryable
    assert "nothing came for 1 s" in str(error)


async def test_p18_a_slow_trickle_works() -> None:
    stream = b"".join(
        piece if isinstance(piece, bytes) else ms._event(piece) for piece in ms.say("hi")
    )
    drops = [part for place in range(len(stream)) for part in (stream[place : place + 1],)]
    async with ms.ModelServer(ms.in_order([[drop, ms.Pause(0.001)] for drop in drops])) as server:
        provider = provider_at(server.url)

        events = await events_of(provider, request_for(provider.resolve("m"), idle_timeout_s=30))

        assert text_of(events) == "hi"
        await provider.aclose()


async def test_p22_an_event_over_16_mb_is_afailed() -> None:
    error = await failure_of([b"data: ", *[b"x" * (1 << 20)] * 18])

    assert error.retryable
    assert "16 MB" in str(error)


async def test_p33_gzip_is_read() -> None:
    stream = b"".join(
        piece if isinstance(piece, bytes) else ms._event(piece) for piece in ms.say("hello")
    )
    packed = gzip.compress(stream)
    head = ms.Status(headers={"content-encoding": "gzip"})
    async with ms.ModelServer(ms.in_order([head, packed[:20], packed[20:]])) as server:
        provider = provider_at(server.url)

        events = await events_of(provider, request_for(provider.resolve("m")))

        assert text_of(events) == "hello"
        await provider.aclose()


async def test_p33_the_name_of_an_encoding_may_be_in_capitals() -> None:
    stream = b"".join(
        piece if isinstance(piece, bytes) else ms._event(piece) for piece in ms.say("hello")
    )
    head = ms.Status(headers={"content-encoding": "GZIP"})
    async with ms.ModelServer(ms.in_order([head, gzip.compress(stream)])) as server:
        provider = provider_at(server.url)

        events = await events_of(provider, request_for(provider.resolve("m")))

        assert text_of(events) == "hello"
        await provider.aclose()


async def test_p33_a_gzip_bomb_is_stopped() -> None:
    bomb = gzip.compress(b"\n" * (64 << 20))
    head = ms.Status(headers={"content-encoding": "gzip"})

    assert "gzip bomb" in str(await failure_of(head, bomb))


async def test_p34_a_login_page_is_named_as_what_it_is() -> None:
    head = ms.Status(headers={"content-type": "text/html"})

    error = await failure_of(head, b"<html><title>Log in</title></html>")

    assert not error.retryable
    assert "'Log in'" in str(error)
    assert "provider.test.options.baseURL" in str(error)


async def test_p34_json_that_is_no_answer_is_named() -> None:
    error = await failure_of(_json(200, {"message": "welcome to the API"}))

    assert "welcome to the API" in str(error)


async def test_text_before_a_failure_was_seen() -> None:
    async with ms.ModelServer(ms.in_order([ms.text("Hello"), ms.Cut()])) as server:
        provider = provider_at(server.url)
        stream = provider.stream(request_for(provider.resolve("m")))

        assert await anext(stream) == TextStart("text-1")
        assert await anext(stream) == TextDelta("text-1", "Hello")
        with pytest.raises(ProviderError):
            await anext(stream)
