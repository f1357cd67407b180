"""What a model thought, and how much it is to think: in each server's form, there and back."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import tool
from pegboard.providers import (
    Call,
    ModelMessage,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    Result,
    StreamEvent,
    Text,
)
from pegboard_plugins.openai_compatible.thinking import TagSplitter
from support.models import model_server as ms
from support.models.played import HI, ToolsPlugin, opened, texts
from support.models.provider_run import events_of, model_of, provider_at, request_for, text_of, user

CALL = Call(id="c", name="read", input={})


@tool
async def note(text: str) -> str:
    """Take a note."""
    return f"noted: {text}"


RESULT = ModelMessage(role="tool", content=(Result(id="c", name="read", output="x"),))


async def _asked(
    answer: ms.Answer, *messages: ModelMessage, **facts: Any
) -> tuple[list[StreamEvent], dict[str, Any]]:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        model = facts.pop("model", {})
        options = facts.pop("options", {})
        provider = provider_at(server.url, **facts)
        request = request_for(model_of(provider, **model), *messages, options=options)
        events = await events_of(provider, request)
        await provider.aclose()
    return events, server.requests[0]


async def _sent(*messages: ModelMessage, **facts: Any) -> dict[str, Any]:
    return (await _asked(ms.say("hi"), *messages, **facts))[1]


def _thoughts(events: list[StreamEvent]) -> tuple[str, list[Mapping[str, Any] | None]]:
    text = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    return text, [event.metadata for event in events if isinstance(event, ReasoningEnd)]


def _repeated(metadata: Mapping[str, Any] | None, *content: Any) -> ModelMessage:
    return ModelMessage(
        role="assistant", content=(Reasoning(text="Hm.", metadata=metadata), *content)
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_a_thought_goes_back_in_its_field_where_calls_follow(field: str) -> None:
    answer = [ms.chunk({field: "Hm."}), *ms.say("Yes.")]
    _, (metadata,) = _thoughts((await _asked(answer))[0])

    body = await _sent(
        user("Hi"), _repeated(metadata, CALL), RESULT, _repeated(metadata, Text(text="x")),
        user("And?"),
    )  # fmt: skip

    assert [message.get(field) for message in body["messages"]] == [
        *(None, None, "Hm.", None, None, None),
    ]


async def test_thoughts_around_a_text_go_back_together() -> None:
    answer = [ms.reasoning("One. "), ms.text("I look."), ms.reasoning("Two."), ms.finish()]
    events, _ = await _asked(answer)
    _, (first, second) = _thoughts(events)
    said = (
        *(Reasoning(text="One. ", metadata=first), Text(text="I look.")),
        *(Reasoning(text="Two.", metadata=second), CALL),
    )

    body = await _sent(user("Hi"), ModelMessage(role="assistant", content=said), RESULT)

    assert body["messages"][2]["reasoning_content"] == "One. Two."


async def test_mistral_s_thoughts_in_parts_are_no_text_and_go_back_in_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    spoken = {"type": "text", "text": "I look."}
    events, _ = await _asked([ms.chunk({"content": [thinking, spoken]}), ms.finish()])
    text, (metadata,) = _thoughts(events)

    body = await _sent(user("Hi"), _repeated(metadata, Text(text="I look."), CALL), RESULT)

    assert (text, text_of(events)) == ("Hm.", "I look.")
    assert body["messages"][2]["content"] == [thinking, spoken]


def _demands(body: ms.Body) -> ms.Answer:
    """A server that refuses calls without the thought before them, as DeepSeek and Kimi do."""
    said = [each for each in body["messages"] if each["role"] == "assistant"]
    for place, message in enumerate(said):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            text = "reasoning_content is missing in assistant tool call message at index"
            return ms.failure(400, f"thinking is enabled but {text} {place}")
    if len(said) == 2:
        return ms.say("Done.")
    thought = ms.reasoning("Hm.") if not said else []
    return [*thought, *ms.call("note", {"text": str(len(said))})]


async def test_a_server_that_demands_the_thoughts_behind_calls_gets_them(tmp_path: Path) -> None:
    async with ms.ModelServer(_demands) as server:
        facts = {"m": {"reasoning": True, "interleaved": {"field": "reasoning_content"}}}
        config = {"model": "test/m", "provider": {"test": {"models": facts}}}
        provider = provider_at(server.url)
        async with opened(tmp_path, provider, ToolsPlugin(note), config=config) as app:
            session = await app.create_session()
            turn = await app.prompt(session.id, HI)
        thoughts = [
            message["reasoning_content"]
            for message in server.requests[-1]["messages"]
            if message["role"] == "assistant"
        ]

    assert texts(turn) == ["Done."]
    assert thoughts == ["Hm.", " "]


async def test_a_thought_of_another_model_does_not_go_back() -> None:
    body = await _sent(user("Hi"), _repeated(None, CALL), RESULT)

    assert "Hm." not in str(body)


async def test_details_are_joined_and_go_back_whole() -> None:
    text = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    secret = {"type": "reasoning.encrypted", "data": "xyz", "id": "c", "index": 1}
    answer = [
        ms.chunk({"reasoning": "H", "reasoning_details": [{**text, "text": "H"}]}),
        ms.chunk({"reasoning": "m.", "reasoning_details": [{**text, "text": "m."}]}),
        ms.chunk({"reasoning_details": [{**text, "text": None, "signature": "s=="}]}),
        ms.text("Yes."),
        ms.chunk({"reasoning_details": [secret]}),
        ms.tool_call("read", {}, call_id="c"),
        ms.finish("tool_calls"),
    ]

    said, kept = _thoughts((await _asked(answer))[0])
    history = [Reasoning(text="", metadata=each) for each in kept]
    body = await _sent(user("Hi"), ModelMessage(role="assistant", content=(*history, CALL)), RESULT)

    assert said == "Hm."
    assert body["messages"][2]["reasoning_details"] == [
        {**text, "text": "Hm.", "signature": "s=="},
        secret,
    ]


async def test_details_alone_are_shown_too() -> None:
    detail = {"type": "reasoning.summary", "summary": "Hm.", "index": 0}

    events, _ = await _asked([ms.chunk({"reasoning_details": [detail]}), *ms.say("Yes.")])

    assert _thoughts(events)[0] == "Hm."


async def test_thoughts_between_tags_are_no_text_and_go_back_between_tags() -> None:
    events, _ = await _asked(ms.say("\n<think>\nHm.</think>\n\nYes."))
    said, (metadata,) = _thoughts(events)

    body = await _sent(user("Hi"), _repeated(metadata, CALL), RESULT)

    assert (said, text_of(events)) == ("Hm.", "Yes.")
    assert body["messages"][2]["content"] == "<think>Hm.</think>"


@pytest.mark.parametrize("said", ["Use <think> tags.", "<thin", "<thinker> is no tag", "  Yes."])
async def test_text_with_other_tags_is_text(said: str) -> None:
    events, _ = await _asked(ms.say(said))

    assert (text_of(events), _thoughts(events)) == (said, ("", []))


@given(st.lists(st.integers(0, 33), max_size=12))
def test_any_cut_of_a_text_gives_the_same_thoughts(cuts: list[int]) -> None:
    whole = " <think>a</thin b</think>\nc <think>"
    splitter = TagSplitter()
    places = sorted({0, *cuts, len(whole)})

    pieces = [
        piece for start, end in pairwise(places) for piece in splitter.split(whole[start:end])
    ]
    pieces += splitter.rest()

    said = {kind: "".join(text for each, text in pieces if each == kind) for kind, _ in pieces}
    assert said == {"thought": "a</thin b", "text": "c <think>"}


@pytest.mark.parametrize(
    ("facts", "sent"),
    [
        ({}, {"reasoning_effort": "low"}),
        ({"effort_object": True}, {"reasoning": {"effort": "low"}}),
    ],
)
async def test_the_spellings_of_an_effort(facts: dict[str, Any], sent: dict[str, Any]) -> None:
    body = await _sent(options={"reasoningEffort": "low"}, **facts)

    spelt = {name: body[name] for name in ("reasoning_effort", "reasoning") if name in body}
    assert spelt == sent


async def test_an_effort_that_is_off() -> None:
    body = await _sent(options={"reasoningEffort": "none"}, effort_object=True)

    assert body["reasoning"] == {"enabled": False}


async def test_claude_behind_a_proxy_gets_marks_for_its_cache() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    history = (
        user("one"),
        ModelMessage(role="assistant", content=(CALL,)),
        RESULT,
        user("two"),
    )

    body = await _sent(*history, model={"id": "anthropic/claude-sonnet-4.5"})
    plain = await _sent(*history)

    system, first, _, result, last = body["messages"]
    assert system["content"] == [{"type": "text", "text": "You are a test.", **mark}]
    assert result["content"] == [{"type": "text", "text": "x", **mark}]
    assert last["content"] == [{"type": "text", "text": "two", **mark}]
    assert first["content"] == [{"type": "text", "text": "one"}]
    assert "cache_control" not in str(plain)
