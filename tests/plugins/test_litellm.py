import asyncio
import importlib.util
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError, ToolSchemaError
from pegboard.providers import (
    Call,
    Media,
    ModelMessage,
    Reasoning,
    ReasoningDelta,
    Result,
    StreamFinish,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.litellm import LiteLLM, model_resolve, register_providers
from pegboard_plugins.litellm.messages import messages_of
from pegboard_plugins.litellm.variables import KEY_VARIABLES
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import events_of, request_for, text_of, user
from support.tools.media_files import media, png
from support.wire.http_proxy import http_proxy

MODEL = "openai/gpt-4o"


pytestmark = pytest.mark.filterwarnings("ignore")  # litellm's own; each release has others


@asynccontextmanager
async def _served(
    *answers: ms.Answer, key: str = "sk-1"
) -> AsyncIterator[tuple[ms.ModelServer, LiteLLM]]:
    async with ms.ModelServer(ms.in_order(*answers)) as server:
        settings = ProviderConfig(options={"baseURL": server.url, "apiKey": key})
        provider = LiteLLM({"openai": settings}, keys_of({"openai": settings}))
        yield server, provider
        await provider.aclose()


async def _failure(provider: LiteLLM, *, idle_timeout_s: float = 5) -> ProviderError:
    request = request_for(provider.resolve(MODEL), idle_timeout_s=idle_timeout_s)
    with pytest.raises(ProviderError) as caught:
        await events_of(provider, request)
    return caught.value


async def test_a_whole_answer() -> None:
    answer = [
        *ms.reasoning("Hm."),
        *ms.text("Hello."),
        *ms.tool_call("read", '{"a":1}'),
        *ms.finish("tool_calls", usage=ms.usage(100, 20, cached=40, reasoned=5)),
    ]
    async with _served(answer) as (server, provider):
        events = await events_of(provider, request_for(provider.resolve(MODEL), temperature=0.0))

    assert ReasoningDelta("reasoning-1", "Hm.") in events
    assert text_of(events) == "Hello."
    assert events[-2:] == [
        ToolCall("call_read_0", "read", '{"a":1}'),
        StreamFinish("tool-calls", Usage(input=60, output=15, reasoning=5, cache_read=40)),
    ]
    assert server.requests[0]["temperature"] == 0.0
    assert server.headers[0]["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(
    "last",
    [
        '{"choices": [], "usage": {"prompt_tokens": 1e400, "completion_tokens": 2}}',
        '{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2.5}}',
        '{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1%s}}' % ("0" * 18),
        "1",
        '"ping"',
    ],
)
async def test_a_whole_answer_is_not_lost_for_what_follows_its_end(last: str) -> None:
    call = ms.tool_call("read", '{"a":1}')
    answer = [*ms.text("hi"), *call, ms.chunk({}, "tool_calls"), b"data: %b\n\n" % last.encode()]
    async with _served(answer) as (server, provider):
        events = await events_of(provider, request_for(provider.resolve(MODEL)))

    assert text_of(events) == "hi"
    assert ToolCall("call_read_0", "read", '{"a":1}') in events
    assert isinstance(events[-1], StreamFinish)
    assert events[-1].reason == "tool-calls"
    assert len(server.requests) == 1


async def test_no_option_of_an_agent_has_the_key_sent_elsewhere() -> None:
    elsewhere = {
        "api_base": "http://127.0.0.1:9",
        "base_url": "http://127.0.0.1:9",
        "fallbacks": [{"model": MODEL, "api_base": "http://127.0.0.1:9"}],
        "extra_headers": {"Authorization": "Bearer other"},
        "seed": 3,
    }
    async with _served([*ms.text("Hello."), *ms.finish("stop")]) as (server, provider):
        request = request_for(provider.resolve(MODEL), options=elsewhere)
        events = await events_of(provider, request)

    assert text_of(events) == "Hello."
    assert server.headers[0]["authorization"] == "Bearer sk-1"
    assert server.requests[0]["seed"] == 3


async def test_a_call_is_not_made_when_the_answer_was_cut() -> None:
    async with _served([ms.tool_call("read", '{"a":1}'), ms.finish("length")]) as (_, provider):
        events = await events_of(provider, request_for(provider.resolve(MODEL)))

    assert not any(isinstance(event, ToolCall) for event in events)
    assert isinstance(events[-1], StreamFinish)
    assert events[-1].reason == "length"


async def test_refusals_are_told_apart_and_tried_once() -> None:
    too_long = "This model's maximum context length is 10 tokens"
    async with _served(
        ms.failure(429, "slow down", headers={"retry-after": "7"}),
        ms.failure(503, "busy"),
        ms.failure(404, "no such model"),
        ms.failure(401, "wrong key"),
        ms.failure(400, too_long, code="context_length_exceeded"),
    ) as (server, provider):
        slow, busy, missing, refused, long = [await _failure(provider) for _ in range(5)]

        assert len(server.requests) == 5
    assert (slow.status, slow.retryable, slow.wait_s) == (429, True, 7)
    assert (busy.status, busy.retryable) == (503, True)
    assert (missing.status, missing.retryable) == (404, False)
    assert isinstance(refused, ProviderAuthError)
    assert "The key is from `provider.openai.options.apiKey`: change it there" in str(refused)
    assert isinstance(long, ContextOverflowError)


async def test_a_tool_that_is_refused_is_named_with_the_keyword() -> None:
    refusal = "Invalid schema for function 'read': 'oneOf' is not allowed at the top level"
    async with _served(ms.failure(400, refusal)) as (_, provider):
        error = await _failure(provider)

    assert isinstance(error, ToolSchemaError)
    assert (error.tools, error.keyword) == (("read",), "oneOf")


async def test_a_key_that_a_server_repeats_is_in_no_error() -> None:
    key = 'planted-01+secret/"value'
    text = f"You sent {key}, which is {quote(key)}, {json.dumps(key)} and {key.encode().hex()}."
    refusals = [ms.failure(status, text, headers={"x-echo": quote(key)}) for status in (401, 503)]
    async with _served(*refusals, key=key) as (_, provider):
        failures = [await _failure(provider) for _ in refusals]

    told = "".join(f"{each}{each.headers}{each.__cause__}" for each in failures)
    assert "planted" not in told
    assert key.encode().hex() not in told
    assert told.count("[secret]") >= 8


@pytest.mark.parametrize("end", [[ms.Cut()], [], [ms.Pause()]], ids=["cut", "no end", "silence"])
async def test_an_answer_that_breaks_off_is_worth_a_retry(end: list[ms.Piece]) -> None:
    async with _served([ms.text("Hel"), end]) as (_, provider):
        assert (await _failure(provider, idle_timeout_s=0.5)).retryable


def test_no_variable_is_taken_from_a_project_s_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_BASE=https://evil.example\n")
    code = (
        "import asyncio, os\n"
        "from pegboard_plugins.litellm import sdk\n"
        "asyncio.run(sdk.load())\n"
        "print(os.environ.get('OPENAI_API_BASE'))\n"
    )
    arguments = [sys.executable, "-c", code]  # like a notebook: there is no main file

    env = {**os.environ, "LITELLM_MODE": "DEV"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60, env=env
    )

    assert done.stdout == "None\n"


async def test_closing_the_iterator_closes_the_socket() -> None:
    async with _served([ms.text("Hello"), ms.Pause()]) as (server, provider):
        stream = provider.stream(request_for(provider.resolve(MODEL)))
        while not isinstance(await anext(stream), TextDelta):
            pass

        await stream.aclose()

        async with asyncio.timeout(30):
            while not server.disconnects:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.005)


def test_models_are_known_without_importing_litellm() -> None:
    code = (
        "import sys; from pegboard_plugins.litellm import LiteLLM;"
        "model = LiteLLM({}, None).resolve('anthropic/claude-sonnet-4-5');"
        "print(model.limit.context, model.cost.input, 'litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split() == ["200000", "3.0", "False"]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("gemini/gemini-2.5-pro", True),
        ("claude-sonnet-4-5", True),
        ("anthropic/claude-of-the-future", True),
        ("nobody/gpt-5", False),
        ("nonsense", False),
        ("sample_spec", False),
        ("anthropic/", False),
    ],
)
async def test_names_that_litellm_knows(name: str, known: bool) -> None:
    model = await model_resolve(name)

    assert (model is not None) == known
    if model:
        assert (model.provider_id, model.id) == ("litellm", name)


async def test_the_provider_is_registered() -> None:
    (provider,) = await register_providers(Config(), keys_of())

    assert (provider.id, provider.models(), provider.resolve("nonsense")) == ("litellm", (), None)


def test_signed_reasoning_goes_back_and_the_history_is_marked_for_the_cache() -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    thought = Reasoning(text="Hm.", metadata={"litellm": {"thinking_blocks": [block]}})
    answer = ModelMessage(
        role="assistant",
        content=(thought, Text(text="I read."), Call(id="c", name="read", input={"a": 1})),
    )
    result = ModelMessage(role="tool", content=(Result(id="c", name="read", output="x"),))
    model = LiteLLM({}, keys_of()).resolve("anthropic/claude-sonnet-4-5")

    messages = messages_of(request_for(model, user("Hello"), answer, result))

    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
    mark = {"type": "ephemeral"}
    assert messages == [
        {"role": "system", "content": "You are a test.", "cache_control": mark},
        {"role": "user", "content": "Hello"},
        {
            "role": "assistant",
            "content": "I read.",
            "tool_calls": [call],
            "thinking_blocks": [block],
        },
        {
            "role": "tool",
            "tool_call_id": "c",
            "name": "read",
            "content": "x",
            "cache_control": mark,
        },
    ]


def test_media_follow_the_model_s_abilities() -> None:
    image = Media(mime="image/png", url="data:image/png;base64,aGk=", filename="a.png")
    message = ModelMessage(role="user", content=(Text(text="Look"), image))
    provider = LiteLLM({}, keys_of())
    seeing, blind = provider.resolve("claude-sonnet-4-5"), provider.resolve("gpt-3.5-turbo")

    seen = messages_of(request_for(seeing, message))[1]["content"]
    unseen = messages_of(request_for(blind, message))[1]["content"]

    assert seen[1] == {"type": "image_url", "image_url": {"url": image.url}}
    assert '"a.png" was left out' in unseen


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"])
async def test_a_missing_key_is_told_in_our_words_before_litellm_is_imported(name: str) -> None:
    provider = LiteLLM({}, keys_of())

    with pytest.raises(ProviderAuthError) as caught:
        await events_of(provider, request_for(provider.resolve(name)))

    assert str(caught.value) == (
        "anthropic needs a key. `pegboard auth login anthropic` saves one; or set "
        "ANTHROPIC_API_KEY, or set `provider.anthropic.options.apiKey` in your configuration"
    )
    assert provider._module is None


def test_each_variable_of_a_key_is_one_that_litellm_reads() -> None:
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    read = "".join(path.read_text() for path in Path(spec.origin).parent.rglob("*.py"))

    named = {name for names in KEY_VARIABLES.values() for name in names}
    assert {name for name in named if f'"{name}"' not in read} == set()


async def test_a_server_of_this_machine_is_asked_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with http_proxy() as proxy, _served(ms.say("hi")) as (_, provider):
        for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("NO_PROXY", "other.test")

        assert text_of(await events_of(provider, request_for(provider.resolve(MODEL)))) == "hi"

    assert proxy.requests == []


@pytest.fixture
async def untrusted(tls: ssl.SSLContext) -> AsyncIterator[LiteLLM]:
    """A model behind a certificate that nobody trusts."""
    async with ms.ModelServer(ms.in_order(ms.say("hi")), tls=tls) as server:
        settings = ProviderConfig(options={"baseURL": server.url, "apiKey": "sk-1"})
        provider = LiteLLM({"openai": settings}, keys_of({"openai": settings}))
        yield provider
        await provider.aclose()


async def test_a_certificate_that_is_not_trusted_is_named_with_its_issuer_and_the_variable(
    untrusted: LiteLLM,
) -> None:
    error = await _failure(untrusted)

    assert "certificate" in str(error)
    assert "the issuer is '127.0.0.1'" in str(error)
    assert "set SSL_CERT_FILE to a PEM file" in str(error)


async def test_a_certificate_file_that_is_missing_is_named(
    untrusted: LiteLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/missing.pem")

    assert "the certificates of SSL_CERT_FILE=/missing.pem cannot be read" in str(
        await _failure(untrusted)
    )


async def test_a_server_or_proxy_that_cannot_be_reached_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = []
    for url, proxy in (("http://127.0.0.1:9/v1", ""), ("https://model.test/v1", "127.0.0.1:9")):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}" if proxy else "")
        settings = ProviderConfig(options={"baseURL": url, "apiKey": "sk-1"})
        provider = LiteLLM({"openai": settings}, keys_of({"openai": settings}))
        errors.append(str(await _failure(provider)))
        await provider.aclose()

    assert "cannot reach 127.0.0.1:9: Connect call failed" in errors[0]
    assert "the proxy 127.0.0.1:9 of HTTPS_PROXY cannot be reached; correct" in errors[1]
    assert "SSLContext object" not in "".join(errors)


async def test_a_message_whose_picture_is_refused_is_sent_without_it() -> None:
    refusal = ms.failure(400, "Could not process image")
    async with _served(refusal, ms.say("seen")) as (server, provider):
        message = ModelMessage(role="user", content=(media("image/png", png(), "a.png"),))
        request = request_for(provider.resolve(MODEL), message)

        assert text_of(await events_of(provider, request)) == "seen"

    pictures = ["image_url" in json.dumps(body) for body in server.requests]
    assert pictures == [True, False]
