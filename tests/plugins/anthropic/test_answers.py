"""What Claude answers: events, ends, counts, pauses and failures."""

import json
from typing import Any

import pytest

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.http.httpprovider import HttpProvider
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
from pegboard_plugins.anthropic import register_providers
from support.models import claude_frames as claude
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import events_of, request_for, text_of
from support.models.vendor_types import check_claude

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

    assert isinstance(events[-1], StreamFinish)
    assert (events[-1].reason, events[-1].usage) == (finish, COUNTS)


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


def _stopped_call(arguments: str, reason: str) -> list[ms.Piece]:
    """An answer of one call; the block stops before the reason, as the API documents it."""
    opened = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    return claude.answer(
        [
            {"type": "content_block_start", "content_block": opened},
            {
                "type": "content_block_delta",
                "delta": {"type": "input_json_delta", "partial_json": arguments},
            },
            {"type": "content_block_stop"},
        ],
        reason=reason,
    )


async def test_a_call_that_the_output_limit_cuts_ends_the_answer_with_its_usage() -> None:
    events, server = await _asked(_stopped_call('{"filePath": "a', "max_tokens"))

    assert events[-1] == StreamFinish("length", COUNTS)
    assert not any(isinstance(event, ToolCall) for event in events)
    assert len(server.requests) == 1


async def test_a_call_whose_arguments_are_not_json_reaches_the_caller_as_it_is() -> None:
    events = await _events(_stopped_call('{"filePath": a}', "tool_use"))

    assert ToolCall("toolu_1", "read", '{"filePath": a}') in events
    assert events[-1] == StreamFinish("tool-calls", COUNTS)


async def test_a_search_that_the_output_limit_cuts_ends_the_answer_and_is_not_sent_back() -> None:
    opened = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"query": "x'}
    block = [
        {"type": "content_block_start", "content_block": opened},
        {"type": "content_block_delta", "delta": piece},
        {"type": "content_block_stop"},
    ]

    events = await _events(claude.answer(block, reason="max_tokens"))

    assert events[-2:] == [
        ReasoningEnd("server_tool_use-1", None),
        StreamFinish("length", COUNTS),
    ]


async def test_a_paused_answer_that_cannot_be_sent_back_ends_where_it_is() -> None:
    frames = _stopped_call('{"filePath": "a', "pause_turn")

    events, server = await _asked(frames)

    assert isinstance(events[-1], StreamFinish)
    assert len(server.requests) == 1


def _frames(*events: dict[str, Any]) -> list[ms.Piece]:
    begin = {"type": "message_start", "message": {"usage": {"input_tokens": 7}}}
    return [begin, *events, {"type": "message_stop"}]


_CALL = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
_PIECE = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
_END = {
    "type": "message_delta",
    "delta": {"stop_reason": "tool_use"},
    "usage": {"output_tokens": 1},
}


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(
            [
                {"type": "content_block_start", "index": [], "content_block": _CALL},
                {"type": "content_block_delta", "index": [], "delta": _PIECE},
                _END,
            ],
            id="an index that is a list",
        ),
        pytest.param(
            [
                {"type": "content_block_start", "content_block": _CALL},
                {"type": "content_block_delta", "delta": _PIECE},
                {"type": "content_block_stop"},
                _END,
            ],
            id="no index",
        ),
        pytest.param(
            [
                {"type": "content_block_start", "index": 3, "content_block": _CALL},
                {"type": "content_block_delta", "delta": _PIECE},
                _END,
            ],
            id="no index in the pieces, and no stop",
        ),
        pytest.param(
            [
                {"type": "content_block_start", "index": 0, "content_block": _CALL},
                {"type": "content_block_delta", "index": 0, "delta": _PIECE},
            ],
            id="no reason",
        ),
        pytest.param(
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {**_CALL, "input": {"a": 1}},
                },
                {"type": "content_block_delta", "index": 0, "delta": _PIECE},
                {"type": "content_block_stop", "index": 0},
                _END,
            ],
            id="the input twice",
        ),
        pytest.param(
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {**_CALL, "input": '{"a": 1}'},
                },
                {"type": "content_block_stop", "index": 0},
                _END,
            ],
            id="the input as a string",
        ),
    ],
)
async def test_a_call_is_read_from_frames_with_parts_missing(
    frames: list[dict[str, Any]],
) -> None:
    events = await _events(_frames(*frames))

    assert [event for event in events if isinstance(event, ToolCall)] == [
        ToolCall("t", "read", '{"a": 1}')
    ]
    assert isinstance(events[-1], StreamFinish)


async def test_text_is_read_without_the_start_of_its_block() -> None:
    delta = {"type": "text_delta", "text": "Hi."}

    events = await _events(_frames({"type": "content_block_delta", "index": 0, "delta": delta}))

    assert text_of(events) == "Hi."


async def test_a_block_ends_where_another_begins_at_its_index() -> None:
    def block(text: str) -> list[dict[str, Any]]:
        return [{**frame, "index": 0} for frame in claude.text(text)[:-1]]

    events = await _events(_frames(*block("One."), *block("Two.")))

    assert [type(event) for event in events].count(TextEnd) == 2
    assert text_of(events) == "One.Two."
