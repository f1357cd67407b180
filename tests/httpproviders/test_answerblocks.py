"""The texts and thoughts of an answer, as events."""

from pegboard.http import AnswerBlock, AnswerBlocks
from pegboard.providers import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)


def test_one_is_open_at_a_time_and_each_ends_with_what_is_kept_of_its_kind() -> None:
    blocks = AnswerBlocks(lambda kind: {"own": kind} if kind == "reasoning" else None)

    events = [
        *blocks.write("reasoning", "Hm"),
        *blocks.write("reasoning", "."),
        *blocks.write("text", ""),
        *blocks.write("text", "So"),
        *blocks.close(),
        *blocks.close(),
        *blocks.write("text", "on"),
    ]

    assert events == [
        ReasoningStart("reasoning-1"),
        ReasoningDelta("reasoning-1", "Hm"),
        ReasoningDelta("reasoning-1", "."),
        ReasoningEnd("reasoning-1", {"own": "reasoning"}),
        TextStart("text-2"),
        TextDelta("text-2", "So"),
        TextEnd("text-2"),
        TextStart("text-3"),
        TextDelta("text-3", "on"),
    ]


def test_the_input_of_a_call_is_a_block_too_and_what_is_no_text_adds_nothing() -> None:
    block = AnswerBlock(kind="call", id="c1", name="read")

    events = [block.start(), *block.add('{"a":'), *block.add(None), *block.add("1}"), block.end()]

    assert events == [
        ToolInputStart("c1", "read"),
        ToolInputDelta("c1", '{"a":'),
        ToolInputDelta("c1", "1}"),
        ToolInputEnd("c1"),
    ]
    assert block.text == '{"a":1}'
