"""The provider on litellm; one test asks it for answers, as its import takes seconds."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

import model_server as ms
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
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
from provider_run import events_of, request_for, text_of, user

MODEL = "openai/gpt-4o"


@pytest.mark.filterwarnings("ignore")  # litellm's own, of which every release has others
async def test_answers_and_faults_over_a_socket() -> None:
    answers = ms.in_order(
        [
            *ms.reasoning("Hm."),
            *ms.text("Hello."),
            *ms.tool_call("read", '{"a":1}'),
            *ms.finish("tool_calls", usage=ms.usage(100, 20, cached=40, reasoned=5)),
        ],
        [*ms.tool_call("read", '{"a":1}'), *ms.finish("length")],
        ms.failure(429, "slow down", headers={"retry-after": "7"}),
        ms.failure(401, "wrong key"),
        ms.failure(400, "maximum context length is 10 tokens", code="context_length_exceeded"),
        ms.failure(404, "no such model"),
        [*ms.text("Hel"), ms.Cut()],
        ms.text("Hel"),
        [*ms.text("Hel"), ms.Pause()],
        [*ms.text("Hello"), ms.Pause()],
    )
    async with ms.ModelServer(answers) as server:
        settings = ProviderConfig(options={"baseURL": server.url, "apiKey": "sk-1"})
        provider = LiteLLM({"openai": settings})
        request = request_for(provider.resolve(MODEL), temperature=0.0)

        events = await events_of(provider, request)
        assert ReasoningDelta("reasoning-1", "Hm.") in events
        assert text_of(events) == "Hello."
        assert events[-2:] == [
            ToolCall("call_read_0", "read", '{"a":1}'),
            StreamFinish("tool-calls", Usage(input=60, output=15, reasoning=5, cache_read=40)),
        ]
        assert server.requests[0]["temperature"] == 0.0
        assert server.headers[0]["authorization"] == "Bearer sk-1"

        cut = await events_of(provider, request)
        assert not any(isinstance(event, ToolCall) for event in cut)

        slow = await _failure(provider, request)
        assert (slow.status, slow.retryable, slow.headers["retry-after"]) == (429, True, "7")
        assert isinstance(await _failure(provider, request), ProviderAuthError)
        assert isinstance(await _failure(provider, request), ContextOverflowError)
        missing = await _failure(provider, request)
        assert (missing.status, missing.retryable) == (404, False)
        for _ in ("cut", "an end without a last event"):
            assert (await _failure(provider, request)).retryable
        silent = request_for(provider.resolve(MODEL), idle_timeout_s=0.3)
        assert (await _failure(provider, silent)).retryable

        stream = provider.stream(request)
        while not isinstance(await anext(stream), TextDelta):
            pass
        left = server.disconnects
        await stream.aclose()
        async with asyncio.timeout(1):
            while server.disconnects == left:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.005)
        assert len(server.requests) == 10  # litellm tries nothing again by itself
        await provider.aclose()


async def _failure(provider: LiteLLM, request: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await events_of(provider, request)
    return caught.value


def test_models_are_known_without_importing_litellm() -> None:
    code = (
        "import sys; from pegboard_plugins.litellm import LiteLLM;"
        "model = LiteLLM({}).resolve('anthropic/claude-sonnet-4-5');"
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
    (provider,) = await register_providers(Config())

    assert (provider.id, provider.models(), provider.resolve("nonsense")) == ("litellm", (), None)


def test_signed_reasoning_goes_back_and_the_history_is_marked_for_the_cache() -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    thought = Reasoning(text="Hm.", metadata={"litellm": {"thinking_blocks": [block]}})
    answer = ModelMessage(
        role="assistant",
        content=(thought, Text(text="I read."), Call(id="c", name="read", input={"a": 1})),
    )
    result = ModelMessage(role="tool", content=(Result(id="c", name="read", output="x"),))
    model = LiteLLM({}).resolve("anthropic/claude-sonnet-4-5")

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
    seeing, blind = LiteLLM({}).resolve("claude-sonnet-4-5"), LiteLLM({}).resolve("gpt-3.5-turbo")

    seen = messages_of(request_for(seeing, message))[1]["content"]
    unseen = messages_of(request_for(blind, message))[1]["content"]

    assert seen[1] == {"type": "image_url", "image_url": {"url": image.url}}
    assert '"a.png" was left out' in unseen
