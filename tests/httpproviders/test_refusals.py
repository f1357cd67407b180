"""What the provider makes of servers that fail: one rule of the fault table each."""

import json
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from support.models import model_server as ms
from support.models.provider_run import events_of, failure_of, provider_at, request_for


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


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that is taken, so that nothing can listen there."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_p1_a_port_of_this_machine_that_nobody_listens_on_is_told_at_once(
    host: str, unused_port: int
) -> None:
    provider = provider_at(f"http://{host}:{unused_port}/v1", start="serve it")

    with pytest.raises(ProviderError) as caught:
        await events_of(provider, request_for(provider.resolve("m")))

    assert not caught.value.retryable
    place = f"{host}:{unused_port}"
    assert str(caught.value) == f"test: nothing listens at {place}; start it with `serve it`"


async def test_p1_another_machine_that_refuses_can_be_tried_again_and_is_named(
    unused_port: int,
) -> None:
    proxy = f"http://127.0.0.1:{unused_port}"
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
    error = await failure_of(ms.Pause(), timeout_s=1)

    assert error.retryable
    assert "no answer began within 1 s" in str(error)


async def test_p4_to_p7_a_rate_limit_keeps_the_headers_for_the_engine() -> None:
    headers = {"retry-after": "2", "x-ratelimit-reset-requests": "1m30s", "set-cookie": "a=b"}

    error = await failure_of(ms.failure(429, "slow down", headers=headers))

    assert (error.status, error.retryable, error.wait_s) == (429, True, 2)
    assert error.headers["retry-after"] == "2"
    assert error.headers["x-ratelimit-reset-requests"] == "1m30s"
    assert "set-cookie" not in error.headers


async def test_a_word_in_the_place_of_a_key_does_not_hide_what_the_server_says() -> None:
    said = "This model's maximum context length is 100 tokens"

    error = await failure_of(ms.failure(400, said), key="context")

    assert isinstance(error, ContextOverflowError)
    assert said in str(error)


async def test_p9_a_used_up_quota_is_final() -> None:
    error = await failure_of(ms.failure(429, "You exceeded it", code="insufficient_quota"))

    assert (error.status, error.retryable) == (429, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
async def test_p10_a_failing_server_can_be_tried_again(status: int) -> None:
    error = await failure_of(ms.failure(status, "try later"))

    assert (error.status, error.retryable) == (status, True)
    assert "try later" in str(error)


async def test_p10_a_page_of_html_is_not_shown_raw() -> None:
    page = b"<!DOCTYPE html><html><title>Bad Gateway</title><body>long</body></html>"
    head = ms.Status(code=502, headers={"content-type": "text/html"})

    error = await failure_of(head, page)

    assert error.retryable
    assert "an HTML page titled 'Bad Gateway'" in str(error)
    assert "<body>" not in str(error)


async def test_p11_a_content_policy_is_final_whatever_the_status() -> None:
    error = await failure_of(ms.failure(500, "blocked", code="content_policy_violation"))

    assert not error.retryable


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_p12_a_refused_request_is_final(status: int) -> None:
    error = await failure_of(ms.failure(status, "no such thing"))

    assert (type(error), error.status, error.retryable) == (ProviderError, status, False)


@pytest.mark.parametrize("status", [401, 403])
async def test_p12_a_refused_key_says_where_it_belongs_and_never_the_key(status: int) -> None:
    error = await failure_of(
        ms.failure(status, "wrong key sk-secret"), env=("TEST_KEY",), key="sk-secret"
    )

    assert isinstance(error, ProviderAuthError)
    assert "TEST_KEY" in str(error)
    assert "provider.test.options.apiKey" in str(error)
    assert "sk-secret" not in str(error) + error.body


@pytest.mark.parametrize(
    ("status", "value", "retryable"),
    [(400, "true", True), (500, "false", False), (500, "", True), (400, "maybe", False)],
)
async def test_a_server_may_say_whether_to_try_again(
    status: int, value: str, *, retryable: bool
) -> None:
    headers = {"x-should-retry": value} if value else {}

    error = await failure_of(ms.failure(status, "no", headers=headers))

    assert error.retryable == retryable


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
    failed = await failure_of(ms.text("Hel"), {"error": error})

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
    assert isinstance(await failure_of(ms.failure(status, message)), ContextOverflowError)


async def test_p35_a_redirect_is_not_followed() -> None:
    async with ms.ModelServer(ms.in_order(ms.say("stolen"))) as other:
        head = {"location": f"{other.url}/chat/completions", "content-length": "0"}

        error = await failure_of(ms.Status(code=307, headers=head), key="sk-secret")

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


async def test_a_refused_key_inside_the_stream_says_where_it_belongs() -> None:
    error = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}

    failure = await failure_of(ms.text("Hel"), error, env=("TEST_KEY",), key="sk-secret")

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

    error = await failure_of(
        *(answer if status == 200 else _json(status, {"error": {"message": text}}, **headers)),
        key=KEY,
        headers={"x-own": "own-header-value"},
    )

    told = f"{error}{error.body}{dict(error.headers or {})}{error.__cause__}"
    for secret in (KEY, "own-header-value"):
        assert spelled(secret).strip('"') not in told
        assert secret not in told
    assert quote(KEY) not in told
