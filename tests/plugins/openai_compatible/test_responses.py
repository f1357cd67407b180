"""OpenAI's Responses API: what is sent, what comes of an answer, and when it is chosen."""

import json
from typing import Any

import pytest

from pegboard.errors import ContextOverflowError, ProviderError
from pegboard.providers import (
    Call,
    ModelMessage,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Result,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard_plugins.openai_compatible import is_by_responses
from support.models import model_server as ms
from support.models import response_frames as frames
from support.models.provider_run import (
    READ,
    events_of,
    model_of,
    provider_at,
    request_for,
    text_of,
    user,
)
from support.models.vendor_types import check_responses
from support.tools.media_files import media, pdf, png

IMAGE = media("image/png", png(), "a.png")
PDF = media("application/pdf", pdf())
COUNTS = Usage(input=7, output=7, reasoning=4, cache_read=20, cache_write=3)
HELLO = {"type": "input_text", "text": "Hello"}
TOOL = {
    "type": "function",
    "name": "read",
    "description": READ.description,
    "parameters": {"type": "object"},
    "strict": False,
}
MADE = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"a":1}',
    "id": "fc_1",
}
FACTS = {"reasoning": True, "temperature": False, "attachment": True}


async def _asked(
    answer: ms.Answer, *messages: ModelMessage, **facts: Any
) -> tuple[list[StreamEvent], dict[str, Any]]:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        options = {"wire": "responses", **facts.pop("options", {})}
        provider = provider_at(server.url, options=options)
        model = model_of(provider, **facts.pop("model", FACTS))
        try:
            events = await events_of(provider, request_for(model, *messages, **facts))
        finally:
            await provider.aclose()
    assert server.paths == ["/v1/responses"]
    check_responses(server.requests[0])
    return events, server.requests[0]


async def _events(answer: ms.Answer) -> list[StreamEvent]:
    return (await _asked(answer))[0]


async def _sent(*messages: ModelMessage, **facts: Any) -> dict[str, Any]:
    return (await _asked(frames.say("hi"), *messages, **facts))[1]


def _said(*content: Any) -> ModelMessage:
    return ModelMessage(role="assistant", content=content)


def _thought(encrypted: str = "gAAA") -> Reasoning:
    own = {"id": "rs_1", "encrypted_content": encrypted}
    return Reasoning(text="Hm.", metadata={"responses": own})


async def test_a_whole_request() -> None:
    body = await _sent(
        user("Hello"),
        _said(
            _thought(),
            Text(text="I read.", metadata={"responses": {"id": "msg_1", "phase": "commentary"}}),
            Call(id="call_1", name="read", input={"a": 1}, metadata={"responses": {"id": "fc_1"}}),
        ),
        ModelMessage(role="tool", content=(Result(id="call_1", name="read", output="content"),)),
        session_id="ses_1",
        max_output_tokens=900,
        options={"reasoningEffort": "low", "textVerbosity": "low", "parallelToolCalls": True},
    )

    output = {"type": "output_text", "text": "I read.", "annotations": []}
    assert body == {
        "model": "m",
        "stream": True,
        "store": False,
        "instructions": "You are a test.",
        "tools": [TOOL],
        "max_output_tokens": 900,
        "prompt_cache_key": "ses_1",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto", "effort": "low"},
        "text": {"verbosity": "low"},
        "parallel_tool_calls": True,
        "input": [
            {"type": "message", "role": "user", "content": [HELLO]},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "gAAA",
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [output],
                "id": "msg_1",
                "phase": "commentary",
                "status": "completed",
            },
            MADE,
            {"type": "function_call_output", "call_id": "call_1", "output": "content"},
        ],
    }


async def test_a_model_that_does_not_reason_is_not_asked_for_it() -> None:
    body = await _sent(model={}, options={"reasoningEffort": "low"}, temperature=0.5)

    assert {"include", "reasoning", "reasoning_effort"}.isdisjoint(body)
    assert body["temperature"] == 0.5


async def test_thoughts_that_led_to_nothing_or_are_another_model_s_are_left_out() -> None:
    body = await _sent(
        user("Hello"),
        _said(Reasoning(text="Hm."), Text(text="Yes."), _thought()),
        user("And?"),
        _said(_thought()),
        user("Well?"),
    )

    assert [item["type"] for item in body["input"]] == ["message"] * 4
    assert body["input"][1] == {"type": "message", "role": "assistant", "content": "Yes."}


async def test_pictures_and_files_also_inside_results() -> None:
    result = Result(id="call_1", name="read", output="two", media=(IMAGE, PDF))
    body = await _sent(
        ModelMessage(role="user", content=(Text(text="Look"), IMAGE)),
        _said(Call(id="call_1", name="read", input={})),
        ModelMessage(role="tool", content=(result,)),
    )

    picture = {"type": "input_image", "image_url": IMAGE.url, "detail": "auto"}
    assert body["input"][0]["content"][1] == picture
    assert body["input"][2]["output"] == [
        {"type": "input_text", "text": "two"},
        picture,
        {"type": "input_file", "filename": "document.pdf", "file_data": PDF.url},
    ]


async def test_a_picture_that_the_model_cannot_take_becomes_a_note() -> None:
    body = await _sent(ModelMessage(role="user", content=(IMAGE,)), model={})

    assert '"a.png" was left out' in body["input"][0]["content"][0]["text"]


async def test_kept_messages_are_sent_again_to_the_byte() -> None:
    history = (user("one"), _said(_thought(), Text(text="two")), user("three"))
    first = await _sent(*history)

    second = await _sent(*history, _said(Text(text="four")), user("five"))

    assert second["input"][: len(first["input"])] == first["input"]


async def test_a_whole_answer() -> None:
    events = await _events(
        frames.answer(
            frames.thought("Hm,", "so."), frames.text("I ", "look."), frames.call("read", {"a": 1})
        )
    )

    assert events == [
        ReasoningStart("reasoning-1"),
        ReasoningDelta("reasoning-1", "Hm,"),
        ReasoningDelta("reasoning-1", "\n\n"),
        ReasoningDelta("reasoning-1", "so."),
        ReasoningEnd("reasoning-1", {"responses": {"id": "rs_1", "encrypted_content": "gAAA"}}),
        TextStart("message-2"),
        TextDelta("message-2", "I "),
        TextDelta("message-2", "look."),
        TextEnd("message-2", {"responses": {"id": "msg_1"}}),
        ToolInputStart("call_1", "read"),
        ToolInputDelta("call_1", '{"a"'),
        ToolInputDelta("call_1", ": 1}"),
        ToolInputEnd("call_1"),
        ToolCall("call_1", "read", '{"a": 1}', {"responses": {"id": "fc_1"}}),
        StreamFinish("tool-calls", COUNTS),
    ]


async def test_a_refusal_is_shown_and_ends_as_one() -> None:
    events = await _events(frames.answer(frames.text("I can't.", kind="refusal")))

    assert text_of(events) == "I can't."
    assert events[-1] == StreamFinish("content-filter", COUNTS)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content-filter"), ("new", "other")],
)
async def test_an_answer_that_is_cut_off_makes_no_call(reason: str, finish: str) -> None:
    events = await _events(
        frames.answer(frames.call("read", {"a": 1}), status="incomplete", reason=reason)
    )

    assert not any(isinstance(event, ToolCall) for event in events)
    assert isinstance(events[-1], StreamFinish)
    assert (events[-1].reason, events[-1].usage) == (finish, COUNTS)


async def test_an_answer_that_is_not_streamed_is_read() -> None:
    response = {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]},
            {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
        ],
        "usage": frames.USAGE,
    }
    content = json.dumps(response).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}

    events = await _events([ms.Status(headers=head), content])

    assert text_of(events) == "Hi."
    assert ToolCall("c", "read", "{}") in events
    assert events[-1] == StreamFinish("tool-calls", COUNTS)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", ProviderError, True),
        ("rate_limit_exceeded", ProviderError, True),
        ("context_length_exceeded", ContextOverflowError, False),
        ("invalid_prompt", ProviderError, False),
    ],
)
async def test_a_response_that_fails(
    code: str, kind: type[ProviderError], *, retryable: bool
) -> None:
    error = {"code": code, "message": "It failed."}
    failed = frames.answer(frames.text("half"), status="failed", error=error)

    with pytest.raises(ProviderError, match="It failed") as caught:
        await _events(failed)

    assert (type(caught.value), caught.value.retryable) == (kind, retryable)


async def test_an_answer_that_breaks_off_can_be_asked_for_again() -> None:
    with pytest.raises(ProviderError, match="broke off") as caught:
        await _events(frames.answer(frames.text("half"), status=None))

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("url", "chosen", "by_responses"),
    [
        ("https://api.openai.com/v1", "", True),
        ("https://api.openai.com/v1", "chat", False),
        ("http://127.0.0.1:1/v1", "", False),
        ("http://127.0.0.1:1/v1", "responses", True),
    ],
)
def test_when_the_api_is_chosen(url: str, chosen: str, *, by_responses: bool) -> None:
    provider = provider_at(url)
    model = provider.resolve("m")
    assert model

    assert is_by_responses(provider.endpoint, model, chosen) == by_responses
