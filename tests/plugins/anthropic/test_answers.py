"""What Claude answers: events, ends, counts, pauses and failures."""

import json
from typing import Any

import pytest

import claude_frames as claude
import model_server as ms
from keyed import keys_of
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard_http.httpprovider import HttpProvider
from pegboard_plugins.anthropic import register_providers
from provider_run import events_of, request_for, text_of
from vendor_types import check_claude

COUNTS = Usage(input=7, output=7, reasoning=4, cache_read=20, cache_write=3)


async def _asked(*answers: ms.Answer) -> tuple[list[StreamEvent], ms.ModelServer]:
    async with ms.ModelServer(ms.in_order(*answers)) as server:
        options = {"baseURL": server.url, "apiKey": "sk-ant-test"}
        config = Config(provider={"anthropic": ProviderConfig(options=options)})
        (provider,) = await register_providers(config, {}, keys_of(config.provider))
        assert isinstance(provider, HttpProvider)
        try:
            request = request_for(provider.resolve("claude-sonnet-4-5"))
            return await events_of(provider, request), server
        finally:
            await provider.aclose()


async def _events(*answers: ms.Answer) -> list[StreamEvent]:
    return (await _asked(*answers))[0]


async def test_a_whole_answer() -> None:
    events = await _events(
        claude.answer(
            claude.thought("Hm, \n"),
            claude.text("I ", "look."),
            claude.call("read", {"filePath": "a"}),
            reason="tool_use",
        )
    )

    assert events == [
        ReasoningStart("thinking-1"),
        ReasoningDelta("thinking-1", "Hm, \n"),
        ReasoningEnd("thinking-1", {"anthropic": {"signature": "sig==", "tail": " \n"}}),
        TextStart("text-2"),
        TextDelta("text-2", "I "),
        TextDelta("text-2", "look."),
        TextEnd("text-2"),
        ToolInputStart("toolu_1", "read"),
        ToolInputDelta("toolu_1", '{"filePath'),
        ToolInputDelta("toolu_1", '": "a"}'),
        ToolInputEnd("toolu_1"),
        ToolCall("toolu_1", "read", '{"filePath": "a"}'),
        StreamFinish("tool-calls", COUNTS),
    ]


async def test_hidden_thoughts_are_kept_whole() -> None:
    block = {"type": "redacted_thinking", "data": "xyz"}

    events = await _events(claude.answer(claude.opaque(block), claude.text("Yes.")))

    assert ReasoningEnd("redacted_thinking-1", {"anthropic": {"block": block}}) in events


async def test_a_call_without_arguments() -> None:
    events = await _events(claude.answer(claude.call("read", {}), reason="tool_use"))

    assert ToolCall("toolu_1", "read", "{}") in events


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content-filter"),
        ("something_new", "other"),
    ],
)
async def test_the_ends_of_an_answer(reason: str, finish: str) -> None:
    events = await _events(claude.answer(claude.text("x"), reason=reason))

    assert events[-1] == StreamFinish(finish, COUNTS)


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
async def test_a_call_that_was_cut_off_is_not_made(reason: str) -> None:
    events = await _events(claude.answer(claude.call("read", {"filePath": "a"}), reason=reason))

    assert not any(isinstance(event, ToolCall) for event in events)


async def test_a_paused_answer_goes_on_where_it_was() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}}
    paused = claude.answer(claude.text("I search."), claude.opaque(search), reason="pause_turn")

    events, server = await _asked(paused, claude.say("Found."))

    assert text_of(events) == "I search.Found."
    assert server.requests[1]["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "I search."}, search],
    }
    assert server.requests[1]["messages"][:1] == server.requests[0]["messages"]
    finishes = [event for event in events if isinstance(event, StreamFinish)]
    twice = Usage(input=14, output=14, reasoning=8, cache_read=40, cache_write=6)
    assert finishes == [StreamFinish("stop", twice)]
    check_claude(server.requests[1])


async def test_an_answer_that_pauses_without_end_ends() -> None:
    paused = claude.answer(claude.text("x"), reason="pause_turn")

    events, server = await _asked(paused)

    assert len(server.requests) == 11
    assert isinstance(events[-1], StreamFinish)


async def test_an_answer_that_is_not_streamed_is_read() -> None:
    message = {
        "type": "message",
        "content": [
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    content = json.dumps(message).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    events = await _events([ms.Status(headers=head), content])

    assert text_of(events) == "Hi."
    assert ToolCall("t", "read", '{"a":1}') in events
    assert events[-1] == StreamFinish("tool-calls", Usage(input=1, output=2))


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (529, _error("overloaded_error", "Overloaded"), ProviderError, True),
        (500, _error("api_error", "Internal server error"), ProviderError, True),
        (429, _error("rate_limit_error", "slow down"), ProviderError, True),
        (401, _error("authentication_error", "invalid x-api-key"), ProviderAuthError, False),
        (
            400,
            _error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            ContextOverflowError,
            False,
        ),
        (413, _error("request_too_large", "Request exceeds"), ContextOverflowError, False),
        (
            400,
            _error("invalid_request_error", "Your credit balance is too low"),
            ProviderError,
            False,
        ),
    ],
)
async def test_statuses_and_what_they_mean(
    status: int, body: dict[str, Any], kind: type[ProviderError], *, retryable: bool
) -> None:
    content = json.dumps(body).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    with pytest.raises(ProviderError) as caught:
        await _events([ms.Status(code=status, headers=head), content])

    assert (type(caught.value), caught.value.retryable) == (kind, retryable)
    assert body["error"]["message"] in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "message", "retryable"),
    [("overloaded_error", "Overloaded", True), ("invalid_request_error", "no", False)],
)
async def test_an_error_inside_the_stream(kind: str, message: str, *, retryable: bool) -> None:
    frames = [*claude.answer(claude.text("half"), reason=None), _error(kind, message)]

    with pytest.raises(ProviderError, match=message) as caught:
        await _events(frames)

    assert caught.value.retryable == retryable


async def test_an_error_behind_the_end_is_none() -> None:
    frames = [*claude.say("all"), _error("overloaded_error", "late")]

    assert text_of(await _events(frames)) == "all"


async def test_an_answer_that_breaks_off_makes_no_call() -> None:
    frames = claude.answer(claude.call("read", {"filePath": "a"}), reason=None)

    with pytest.raises(ProviderError, match="broke off") as caught:
        await _events(frames)

    assert caught.value.retryable
