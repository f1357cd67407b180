"""Sockets: when they are used again, when they are closed, and what they go through."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.errors import ProviderError
from pegboard.http.connection import HEAD_LIMIT_BYTES
from pegboard.http.httpprovider import COMPATIBLE, endpoints
from pegboard.providers import StreamFinish, TextDelta
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.openai_compatible import provider as chat_provider
from pegboard_plugins.openai_compatible.quirks import Quirks
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import events_of, provider_at, request_for, text_of

LIMIT_S = 30
"""The server would wait for ever."""


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - the server under test has no event for it
            await asyncio.sleep(0.002)


async def test_steps_share_a_socket() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url)
        for _ in range(3):
            await events_of(provider, request_for(provider.resolve("m")))

        assert (len(server.requests), server.connections) == (3, 1)
        await provider.aclose()


async def test_a_1xx_before_the_answer_is_passed_over() -> None:
    head = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    )
    body = b"".join(p if isinstance(p, bytes) else ms._event(p) for p in ms.say("hi"))
    async with ms.ModelServer(ms.in_order([ms.Wire(head + body)])) as server:
        provider = provider_at(server.url)

        assert text_of(await events_of(provider, request_for(provider.resolve("m")))) == "hi"
        await provider.aclose()


async def test_p40_a_socket_that_the_server_closed_while_idle_is_replaced() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url)
        await events_of(provider, request_for(provider.resolve("m")))
        server.drop_idle()

        events = await events_of(provider, request_for(provider.resolve("m")))

        assert text_of(events) == "hi"
        assert (len(server.requests), server.connections) == (2, 2)
        await provider.aclose()


async def test_p40_a_socket_that_closes_under_the_request_is_replaced_once() -> None:
    """The server reads the second request on the first socket, and closes without a word."""
    answers = ms.in_order(ms.say("hi"), [ms.Cut()], ms.say("again"))
    async with ms.ModelServer(answers) as server:
        provider = provider_at(server.url)
        await events_of(provider, request_for(provider.resolve("m")))

        events = await events_of(provider, request_for(provider.resolve("m")))

        assert text_of(events) == "again"
        assert (len(server.requests), server.connections) == (3, 2)
        await provider.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([ms.Pause()], id="before the head"),
        pytest.param([ms.Status(), b": ping\n\n", ms.Pause()], id="before the first event"),
        pytest.param([ms.text("Hello"), ms.Pause()], id="in text"),
        pytest.param([ms.tool_call("read", '{"a":'), ms.Pause()], id="in arguments"),
        pytest.param([ms.text("Hello"), ms.chunk({}, "stop"), ms.Pause()], id="before the usage"),
    ],
)
async def test_p41_cancelling_closes_the_socket_at_once(answer: ms.Answer) -> None:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url)
        task = asyncio.create_task(events_of(provider, request_for(provider.resolve("m"))))
        await _until(lambda: len(server.requests) == 1)
        await asyncio.sleep(0.03)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await _until(lambda: server.disconnects == 1)
        await provider.aclose()


async def test_p41_closing_the_iterator_closes_the_socket_at_once() -> None:
    async with ms.ModelServer(ms.in_order([ms.text("Hello"), ms.Pause()])) as server:
        provider = provider_at(server.url)
        stream = provider.stream(request_for(provider.resolve("m")))
        async for event in stream:
            if isinstance(event, TextDelta):
                break

        await stream.aclose()

        await _until(lambda: server.disconnects == 1)
        await provider.aclose()


async def test_the_usage_may_be_missing_when_the_connection_breaks_after_the_end() -> None:
    answer = [ms.text("Hello"), ms.chunk({}, "stop"), ms.Cut()]
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url)

        events = await events_of(provider, request_for(provider.resolve("m")))

        assert events[-1] == StreamFinish("stop")
        await provider.aclose()


async def test_a_socket_whose_answer_has_not_passed_is_not_used_again() -> None:
    answer = [*ms.say("hi"), ms.Pause()]
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url)
        await events_of(provider, request_for(provider.resolve("m")))
        await events_of(provider, request_for(provider.resolve("m")))

        assert server.connections == 2
        await provider.aclose()


async def test_many_requests_at_once() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hello"))) as server:
        provider = provider_at(server.url)

        answers = await asyncio.gather(
            *(events_of(provider, request_for(provider.resolve("m"))) for _ in range(20))
        )

        assert {text_of(events) for events in answers} == {"hello"}
        await provider.aclose()


async def test_a_slow_reader_makes_the_server_wait_and_gets_everything() -> None:
    answer = [ms.chunk({"content": "x" * 100_000}) for _ in range(100)]
    async with ms.ModelServer(ms.in_order([answer, ms.finish()])) as server:
        provider = provider_at(server.url)
        length = 0
        async for event in provider.stream(request_for(provider.resolve("m"))):
            await asyncio.sleep(0.001)
            length += len(event.text) if isinstance(event, TextDelta) else 0

        assert length == 10_000_000
        await provider.aclose()


async def test_tls_with_a_certificate_of_one_s_own(tls: ssl.SSLContext, certificate: Path) -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi")), tls=tls) as server:
        provider = provider_at(server.url, {"SSL_CERT_FILE": str(certificate)})
        for _ in range(2):
            assert text_of(await events_of(provider, request_for(provider.resolve("m")))) == "hi"

        assert server.connections == 1
        await provider.aclose()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_p2_a_certificate_that_is_not_trusted_is_final(tls: ssl.SSLContext) -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi")), tls=tls) as server:
        provider = provider_at(server.url)

        with pytest.raises(
            ProviderError, match=r"self.signed certificate.*SSL_CERT_FILE"
        ) as caught:
            await events_of(provider, request_for(provider.resolve("m")))

        assert not caught.value.retryable
        assert server.requests == []


@pytest.mark.parametrize(
    "options", [{"headers": {"x-team": "{env:HOUSE_TEAM}"}}, {"baseURL": "http://{env:HOUSE_TEAM}"}]
)
async def test_a_variable_that_is_not_set_is_named_before_any_connection(
    options: dict[str, object],
) -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        settings = ProviderConfig(options={"baseURL": server.url, **options})
        [endpoint] = endpoints(
            Config(provider={"house": settings}), {}, known={}, npm=(COMPATIBLE,)
        )
        provider = chat_provider(endpoint, Quirks(), environ={}, keys=keys_of())

        with pytest.raises(ProviderError, match="the variable HOUSE_TEAM is not set"):
            await events_of(provider, request_for(provider.resolve("m")))

    assert server.requests == []


_OK = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (_OK, b"x-field: value\r\n" * 4096),
        (_OK + b"x-field: ", b"value" * 8192),
        (_OK + b"\r\n0\r\n", b"x-trailer: value\r\n" * 4096),
        (_OK + b"\r\n1;", b"extension=1;" * 4096),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4096),
    ],
    ids=["fields", "a field", "trailers", "chunk extensions", "1xx"],
)
async def test_a_head_or_trailers_without_end_are_given_up(begin: bytes, piece: bytes) -> None:
    pieces = [piece] * (4 * HEAD_LIMIT_BYTES // len(piece))
    answer = [ms.Wire(begin), *map(ms.Wire, pieces), ms.Pause()]
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url, timeout_s=30)

        with pytest.raises(ProviderError, match="exceeds 1 MiB") as caught:
            await events_of(provider, request_for(provider.resolve("m"), idle_timeout_s=30))
        await provider.aclose()

    assert caught.value.retryable
