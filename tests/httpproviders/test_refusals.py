"""What the provider makes of servers that fail: one rule of the fault table each."""

import gzip
import json
import socket
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

import model_server as ms
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import StreamFinish, TextDelta, TextStart, ToolCall
from provider_run import events_of, provider_at, request_for, text_of


async def _failure(*answer: ms.Answer, idle_timeout_s: float = 5, **facts: object) -> ProviderError:
    """The error of one request, which no call may come before."""
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url, **facts)
        request = request_for(provider.resolve("m"), idle_timeout_s=idle_timeout_s)
        events = []
        try:
            async for event in provider.stream(request):
                events.append(event)  # noqa: PERF401 - what came before the error is looked at
        except ProviderError as error:
            assert not any(isinstance(event, ToolCall | StreamFinish) for event in events)
            return error
        finally:
            await provider.aclose()
    pytest.fail(f"no error, but {events}")


def _json(status: int, body: object, **headers: str) -> list[ms.Piece]:
    content = json.dumps(body).encode()
    head = {"content-type": "application/json", "content-length": str(len(content)), **headers}
    return [ms.Status(code=status, headers=head), content]


def in_base64(text: str) -> str:
    """As a server repeats a header of basic authentication."""
    return b64encode(f"u:{text}".encode()).decode()


def in_lines(text: str) -> str:
    """As a server repeats what it cuts into lines."""
    return "\n  ".join(text[at : at + 6] for at in range(0, len(text), 6))


def _unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_p1_a_port_of_this_machine_that_nobody_listens_on_is_told_at_once(host: str) -> None:
    port = _unused_port()
    provider = provider_at(f"http://{host}:{port}/v1", start="serve it")

    with pytest.raises(ProviderError) as caught:
        await events_of(provider, request_for(provider.resolve("m")))

    assert not caught.value.retryable
    assert str(caught.value) == f"test: nothing listens at {host}:{port}; start it with `serve it`"


async def test_p1_another_machine_that_refuses_can_be_tried_again_and_is_named() -> None:
    proxy = f"http://127.0.0.1:{_unused_port()}"
    provider = provider_at("http://model.example/v1", {"http_proxy": proxy})

    with pytest.raises(ProviderError, match=r"cannot reach model\.example") as caught:
        await events_of(provider, request_for(provider.resolve("m")))

    assert caught.value.retryable


async def test_p2_a_name_that_does_not_resolve_can_be_tried_again() -> None:
    provider = provider_at("http://no-such-host.invalid/v1")

    with pytest.raises(ProviderError, match=r"no-such-host\.invalid") as caught:
        await events_of(provider, request_for(provider.resolve("m")))

    assert caught.value.retryable


async def test_p3_no_head_of_an_answer_in_time() -> None:
    error = await _failure(ms.Pause(), timeout_s=0.2)

    assert error.retryable
    assert "no answer began within 0.2 s" in str(error)


async def test_p4_to_p7_a_rate_limit_keeps_the_headers_for_the_engine() -> None:
    headers = {"retry-after": "2", "x-ratelimit-reset-requests": "1m30s", "set-cookie": "a=b"}

    error = await _failure(ms.failure(429, "slow down", headers=headers))

    assert (error.status, error.retryable, error.wait_s) == (429, True, 2)
    assert error.headers["retry-after"] == "2"
    assert error.headers["x-ratelimit-reset-requests"] == "1m30s"
    assert "set-cookie" not in error.headers


async def test_a_word_in_the_place_of_a_key_does_not_hide_what_the_server_says() -> None:
    said = "This model's maximum context length is 100 tokens"

    error = await _failure(ms.failure(400, said), key="context")

    assert isinstance(error, ContextOverflowError)
    assert said in str(error)


async def test_p9_a_used_up_quota_is_final() -> None:
    error = await _failure(ms.failure(429, "You exceeded it", code="insufficient_quota"))

    assert (error.status, error.retryable) == (429, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
async def test_p10_a_failing_server_can_be_tried_again(status: int) -> None:
    error = await _failure(ms.failure(status, "try later"))

    assert (error.status, error.retryable) == (status, True)
    assert "try later" in str(error)


async def test_p10_a_page_of_html_is_not_shown_raw() -> None:
    page = b"<!DOCTYPE html><html><title>Bad Gateway</title><body>long</body></html>"
    head = ms.Status(code=502, headers={"content-type": "text/html"})

    error = await _failure(head, page)

    assert error.retryable
    assert "an HTML page titled 'Bad Gateway'" in str(error)
    assert "<body>" not in str(error)


async def test_p11_a_content_policy_is_final_whatever_the_status() -> None:
    error = await _failure(ms.failure(500, "blocked", code="content_policy_violation"))

    assert not error.retryable


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_p12_a_refused_request_is_final(status: int) -> None:
    error = await _failure(ms.failure(status, "no such thing"))

    assert (type(error), error.status, error.retryable) == (ProviderError, status, False)


@pytest.mark.parametrize("status", [401, 403])
async def test_p12_a_refused_key_says_where_it_belongs_and_never_the_key(status: int) -> None:
    error = await _failure(
        ms.failure(status, "wrong key sk-secret"), env=("TEST_KEY",), key="sk-secret"
    )

    assert isinstance(error, ProviderAuthError)
    assert "TEST_KEY" in str(error)
    assert "provider.test.options.apiKey" in str(error)
    assert "sk-secret" not in str(error) + error.body


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
        pytest.param(
            [ms.Status(headers={"content-encoding": "br"}), *ms.say("hi")],
            id="P33 an encoding that was not asked for",
        ),
    ],
)
async def test_an_answer_that_breaks_off_is_a_failure_worth_a_retry(pieces: ms.Answer) -> None:
    assert (await _failure(pieces)).retryable


async def test_p17_silence_is_a_failure_and_comments_are_silence() -> None:
    pings = [piece for _ in range(20) for piece in (b": ping\n\n", ms.Pause(0.05))]

    error = await _failure(ms.text("Hel"), pings, ms.Pause(), idle_timeout_s=0.3)

    assert error.retryable
    assert "nothing came for 0.3 s" in str(error)


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


async def test_p22_an_event_over_16_mb_is_a_failure() -> None:
    error = await _failure([b"data: ", *[b"x" * (1 << 20)] * 18])

    assert error.retryable
    assert "16 MB" in str(error)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "Overloaded", "type": "overloaded_error"}, ProviderError, True),
        ({"message": "down", "code": 503}, ProviderError, True),
        ({"message": "slow", "code": "429"}, ProviderError, True),
        ({"message": "no", "type": "invalid_request_error"}, ProviderError, False),
        ({"message": "no", "code": "content_policy_violation"}, ProviderError, False),
        ({"message": "no", "code": "insufficient_quota"}, ProviderError, False),
        ({"message": "no", "code": 401}, ProviderAuthError, False),
        ({"code": "context_length_exceeded"}, ContextOverflowError, False),
        ("something broke", ProviderError, True),
    ],
)
async def test_p30_an_error_in_the_stream_is_like_its_http_twin(
    error: object, kind: type[ProviderError], retryable: bool
) -> None:
    failed = await _failure(ms.text("Hel"), {"error": error})

    assert type(failed) is kind
    assert failed.retryable == retryable


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 128000 tokens."),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (2000) exceeds the maximum number of tokens allowed (1000)."),
        (
            400,
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        ),
        (400, "the request exceeds the available context size, try increasing it"),
        (500, "input is too long for the model's context"),
        (413, "Payload Too Large"),
    ],
)
async def test_p31_a_request_that_is_too_long_in_each_provider_s_words(
    status: int, message: str
) -> None:
    assert isinstance(await _failure(ms.failure(status, message)), ContextOverflowError)


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


async def test_p33_a_gzip_bomb_is_stopped() -> None:
    bomb = gzip.compress(b"\n" * (64 << 20))
    head = ms.Status(headers={"content-encoding": "gzip"})

    assert "gzip bomb" in str(await _failure(head, bomb))


async def test_p34_a_login_page_is_named_as_what_it_is() -> None:
    head = ms.Status(headers={"content-type": "text/html"})

    error = await _failure(head, b"<html><title>Log in</title></html>")

    assert not error.retryable
    assert "'Log in'" in str(error)
    assert "provider.test.options.baseURL" in str(error)


async def test_p34_json_that_is_no_answer_is_named() -> None:
    error = await _failure(_json(200, {"message": "welcome to the API"}))

    assert "welcome to the API" in str(error)


async def test_p35_a_redirect_is_not_followed() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("stolen"))) as other:
        head = {"location": f"{other.url}/chat/completions", "content-length": "0"}

        error = await _failure(ms.Status(code=307, headers=head), key="sk-secret")

        assert other.requests == []
    assert other.url in str(error)
    assert not error.retryable


async def test_a_missing_key_is_said_before_anything_is_sent() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url, env=("TEST_KEY", "OTHER_KEY"))

        with pytest.raises(ProviderAuthError, match="set TEST_KEY or OTHER_KEY, or set `provider"):
            await events_of(provider, request_for(provider.resolve("m")))

        assert server.connections == 0


async def test_a_header_with_a_line_break_is_refused() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url, headers={"x-a": "b\r\nx-c: d"})

        with pytest.raises(ProviderError, match="line break"):
            await events_of(provider, request_for(provider.resolve("m")))

        assert server.connections == 0


async def test_text_before_a_failure_was_seen() -> None:
    async with ms.ModelServer(ms.in_order([ms.text("Hello"), ms.Cut()])) as server:
        provider = provider_at(server.url)
        stream = provider.stream(request_for(provider.resolve("m")))

        assert await anext(stream) == TextStart("text-1")
        assert await anext(stream) == TextDelta("text-1", "Hello")
        with pytest.raises(ProviderError):
            await anext(stream)


async def test_a_refused_key_inside_the_stream_says_where_it_belongs() -> None:
    error = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}

    failure = await _failure(ms.text("Hel"), error, env=("TEST_KEY",), key="sk-secret")

    assert isinstance(failure, ProviderAuthError)
    assert "TEST_KEY" in str(failure)


KEY = 'planted-01+secret/"value'


@pytest.mark.parametrize("spelled", [str, json.dumps, quote, quote_plus, in_base64, in_lines])
@pytest.mark.parametrize("status", [200, 302, 400, 401, 429, 500])
async def test_a_key_that_a_server_repeats_is_in_no_error(
    spelled: Callable[[str], str], status: int
) -> None:
    text = f"You sent {spelled(KEY)} and x-own {spelled('own-header-value')}."
    headers = {"location": f"/next?key={quote(KEY)}", "x-echo": quote(KEY)}
    event = b"data: " + json.dumps({"error": {"message": text}}).encode() + b"\n\n"
    streams = {"content-type": "text/event-stream"}
    answer = [ms.Status(code=200, headers=streams), event]

    error = await _failure(
        *(answer if status == 200 else _json(status, {"error": {"message": text}}, **headers)),
        key=KEY,
        headers={"x-own": "own-header-value"},
    )

    told = f"{error}{error.body}{dict(error.headers or {})}{error.__cause__}"
    for secret in (KEY, "own-header-value"):
        assert spelled(secret).strip('"') not in told
        assert secret not in told
    assert quote(KEY) not in told
