"""What a model's answer becomes, over real sockets."""

import json

import pytest

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
from support.models import model_server as ms
from support.models.provider_run import events_of, provider_at, request_for, text_of


async def _answer(*answer: ms.Answer) -> list[StreamEvent]:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url)
        try:
            return await events_of(provider, request_for(provider.resolve("m")))
        finally:
            await provider.aclose()


def _calls(events: list[StreamEvent]) -> list[tuple[str, str, str]]:
    return [(event.id, event.name, event.input) for event in events if isinstance(event, ToolCall)]


def _fragment(**fields: object) -> ms.Piece:
    return ms.chunk({"tool_calls": [fields]})


async def test_a_whole_answer_in_order() -> None:
    events = await _answer(
        ms.reasoning("Hm."),
        ms.text("I read."),
        ms.tool_call("read", '{"a":1}'),
        ms.finish("tool_calls", usage=ms.usage(100, 20, cached=40, reasoned=5)),
    )

    assert events == [
        ReasoningStart("reasoning-1"),
        ReasoningDelta("reasoning-1", "Hm."),
        ReasoningEnd("reasoning-1", {"chat": {"field": "reasoning_content"}}),
        TextStart("text-2"),
        TextDelta("text-2", "I read."),
        TextEnd("text-2"),
        ToolInputStart("call_read_0", "read"),
        ToolInputDelta("call_read_0", '{"a":1}'),
        ToolInputEnd("call_read_0"),
        ToolCall("call_read_0", "read", '{"a":1}'),
        StreamFinish("tool-calls", Usage(input=60, output=15, reasoning=5, cache_read=40)),
    ]


async def test_fragments_of_interleaved_calls_with_a_gap_find_their_call() -> None:
    events = await _answer(
        _fragment(index=0, id="a", function={"name": "read", "arguments": '{"x"'}),
        _fragment(index=2, id="b", function={"name": "grep", "arguments": '{"y"'}),
        _fragment(index=0, function={"arguments": ":1}"}),
        _fragment(index=2, function={"arguments": ":2}"}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("a", "read", '{"x":1}'), ("b", "grep", '{"y":2}')]


async def test_calls_with_one_index_and_different_ids_are_different_calls() -> None:
    events = await _answer(
        _fragment(index=0, id="a", function={"name": "read", "arguments": '{"x":1}'}),
        _fragment(index=0, id="b", function={"name": "read", "arguments": '{"x":2}'}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("a", "read", '{"x":1}'), ("b", "read", '{"x":2}')]


async def test_whole_calls_without_index_and_id_get_ids_of_our_own() -> None:
    events = await _answer(
        _fragment(function={"name": "read", "arguments": {"x": 1}}),
        _fragment(function={"name": "read", "arguments": {"x": 2}}),
        ms.finish("stop"),
    )

    assert _calls(events) == [("call_0", "read", '{"x": 1}'), ("call_1", "read", '{"x": 2}')]
    assert events[-1] == StreamFinish("tool-calls")


async def test_a_second_call_with_a_used_id_gets_another() -> None:
    events = await _answer(
        _fragment(index=0, id="a", function={"name": "read", "arguments": "{}"}),
        _fragment(index=1, id="a", function={"name": "grep", "arguments": "{}"}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("a", "read", "{}"), ("call_1", "grep", "{}")]


async def test_id_and_name_repeated_in_each_fragment_are_one_call() -> None:
    events = await _answer(
        _fragment(index=0, id="a", function={"name": "read", "arguments": '{"x":'}),
        _fragment(index=0, id="a", function={"name": "read", "arguments": "1}"}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("a", "read", '{"x":1}')]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_call_is_not_made_when_the_answer_was_cut(reason: str) -> None:
    events = await _answer(ms.tool_call("read", '{"x":1}'), ms.finish(reason))

    assert _calls(events) == []
    assert not any(isinstance(event, ToolInputEnd) for event in events)
    assert events[-1] == StreamFinish("length" if reason == "length" else "content-filter")


async def test_invalid_arguments_are_handed_on_as_they_were_written() -> None:
    events = await _answer(ms.tool_call("read", '{"x":'), ms.finish("tool_calls"))

    assert _calls(events) == [("call_read_0", "read", '{"x":')]


async def test_a_refusal_is_text_and_no_normal_end() -> None:
    events = await _answer(ms.chunk({"refusal": "I will not."}), ms.finish("stop"))

    assert text_of(events) == "I will not."
    assert events[-1] == StreamFinish("content-filter")


async def test_other_names_of_reasoning_and_lists_of_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    events = await _answer(
        ms.chunk({"reasoning": "Hm."}), ms.chunk({"content": parts}), ms.finish()
    )

    assert ReasoningDelta("reasoning-1", "Hm.") in events
    assert text_of(events) == "ab"


async def test_done_without_a_reason_is_an_end() -> None:
    events = await _answer(ms.text("hi"), b"data: [DONE]\n\n")

    assert events[-1] == StreamFinish("unknown")


async def test_a_reason_without_done_is_an_end() -> None:
    events = await _answer(ms.text("hi"), ms.chunk({}, "stop"))

    assert events[-1] == StreamFinish("stop")


async def test_what_follows_the_end_is_ignored() -> None:
    events = await _answer(
        ms.text("hi"),
        ms.chunk({}, "stop"),
        ms.text("no"),
        ms.finish("length"),
        b"data: garbage\n\n",
    )

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 3, "completion_tokens": 1 << 60}, None),
        ({"prompt_tokens": 3, "completion_tokens": None}, None),
        ({"prompt_tokens": 3, "completion_tokens": 2}, Usage(input=3, output=2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            Usage(input=5, output=2, cache_read=4),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input=9, output=2, reasoning=7),
        ),
    ],
)
async def test_usage_is_taken_when_it_can_be_true(
    counts: dict[str, object], expected: Usage | None
) -> None:
    events = await _answer(ms.text("hi"), ms.finish("stop", usage=counts))

    assert events[-1] == StreamFinish("stop", expected)


@pytest.mark.parametrize(
    "counts",
    [
        '{"prompt_tokens": 1e400, "completion_tokens": 2}',
        '{"prompt_tokens": NaN, "completion_tokens": 2}',
        '{"prompt_tokens": "3", "completion_tokens": 2}',
        '{"prompt_tokens": 1%s, "completion_tokens": 2}' % ("0" * 5_000),
        '{"prompt_tokens": 3, "completion_tokens": 2.5}',
        "[3, 2]",
        '"3"',
        "7",
        "true",
    ],
)
async def test_usage_that_cannot_be_read_is_unknown_and_no_failure(counts: str) -> None:
    last = b'data: {"choices": [], "usage": %b}\n\n' % counts.encode()

    events = await _answer(ms.text("hi"), ms.chunk({}, "stop"), last, b"data: [DONE]\n\n")

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop", None)


@pytest.mark.parametrize("counts", ["1e400", "[3]", '{"prompt_tokens": 1e400}'])
async def test_usage_beside_the_text_costs_none_of_it(counts: str) -> None:
    event = b'data: {"choices": [{"delta": {"content": "hi"}}], "usage": %b}\n\n'

    events = await _answer(event % counts.encode(), ms.finish("stop", usage=ms.usage(5, 3)))

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop", Usage(input=5, output=3))


@pytest.mark.parametrize(
    "event", ["null", "1", "true", '"ping"', "1e400", "[]", "[1]", "{}", '{"id": 7}']
)
async def test_an_event_that_says_nothing_costs_nothing(event: str) -> None:
    empty = b"data: %b\n\n" % event.encode()

    events = await _answer(empty, ms.text("hi"), empty, ms.finish("stop"), empty)

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop", None)


@pytest.mark.parametrize("tail", ["{", '{"error": {"message": "no counts"}}', "[" * 100_000, "[1]"])
async def test_what_follows_the_end_of_an_answer_cannot_be_wrong(tail: str) -> None:
    events = await _answer(
        ms.text("hi"), ms.chunk({}, "stop"), b"data: %b\n\n" % tail.encode(), b"data: [DONE]\n\n"
    )

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop", None)


@pytest.mark.parametrize("first", [0, "0", 0.0])
@pytest.mark.parametrize("second", [1, "1", 1.0])
async def test_an_index_may_be_spelled_otherwise(first: object, second: object) -> None:
    events = await _answer(
        _fragment(index=first, id="a", function={"name": "read", "arguments": '{"n":'}),
        _fragment(index=second, id="b", function={"name": "grep", "arguments": "{}"}),
        _fragment(index=first, function={"arguments": "1}"}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("a", "read", '{"n":1}'), ("b", "grep", "{}")]


@pytest.mark.parametrize(
    ("given", "expected"), [(7, "7"), (0, "0"), (1.5, "1.5"), ([], "call_0"), ({}, "call_0")]
)
async def test_the_id_of_a_call_may_be_a_number(given: object, expected: str) -> None:
    events = await _answer(
        _fragment(index=0, id=given, function={"name": "read", "arguments": ""}),
        _fragment(index=0, id=given, function={"name": "read", "arguments": "{}"}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [(expected, "read", "{}")]


async def test_places_that_are_empty_are_left_out() -> None:
    events = await _answer(
        {"choices": [None]},
        ms.chunk({"tool_calls": [None, {"index": 0, "function": {"name": "read"}}]}),
        ms.finish("tool_calls"),
    )

    assert _calls(events) == [("call_0", "read", "{}")]


async def test_usage_that_comes_twice_counts_once() -> None:
    first: ms.Piece = {"choices": [], "usage": ms.usage(1, 1)}

    events = await _answer(first, ms.text("hi"), ms.finish("stop", usage=ms.usage(5, 3)))

    assert events[-1] == StreamFinish("stop", Usage(input=5, output=3))


async def test_an_answer_that_is_not_streamed_is_taken() -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": None}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": ms.usage(5, 3)}
    head = ms.Status(headers={"content-type": "application/json; charset=utf-8"})

    events = await _answer(head, json.dumps(body).encode())

    assert text_of(events) == "hi"
    assert events[-1] == StreamFinish("stop", Usage(input=5, output=3))


async def test_lone_surrogates_and_broken_utf_8_become_replacement_characters() -> None:
    events = await _answer(
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"b\xff"}}]}\n\n',
        ms.finish(),
    )

    assert text_of(events) == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    text_of(events).encode()


async def test_a_delta_of_5_mb_and_many_small_ones() -> None:
    events = await _answer(
        ms.chunk({"content": "x" * 5_000_000}),
        b"".join([b'data: {"choices":[{"delta":{"content":"y"}}]}\n\n'] * 20_000),
        ms.finish(),
    )

    assert text_of(events) == "x" * 5_000_000 + "y" * 20_000
