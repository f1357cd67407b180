"""What a model writes, in pieces of every size, as events."""

import json
from itertools import pairwise

import pytest
from pegboard_local.answer import LocalAnswer

from pegboard.providers import StreamEvent, StreamFinish, TextDelta, ToolCall, ToolInputDelta
from pegboard.testing.providerchecks import check_answer

CALL = '{\n "tool": "write",\n "input": {"filePath": "a.txt", "content": "x}\\n{\\"y\\"}"}\n}'
SAID = '{"answer": "It says \\"plum\\" \\ud83c\\udf51,\\nand no \\u00fc more.\\\\"}'
TEXT = 'It says "plum" \N{PEACH},\nand no ü more.\\'


def events_of(
    written: str, *, size: int, is_json: bool = True, whole: bool = True
) -> list[StreamEvent]:
    answer = LocalAnswer(is_json=is_json)
    places = [*range(0, len(written), size), len(written)]
    events = [event for a, b in pairwise(places) for event in answer.read(written[a:b])]
    events += answer.end(whole=whole)
    reason = "tool-calls" if answer.called else "stop" if whole else "length"
    finish: StreamFinish = StreamFinish(reason)  # type: ignore[arg-type]  # one of its words
    assert check_answer([*events, finish]) == ()
    return events


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_call_is_told_while_it_is_written(size: int) -> None:
    events = events_of(CALL, size=size)

    calls = [each for each in events if isinstance(each, ToolCall)]
    assert [each.name for each in calls] == ["write"]
    assert json.loads(calls[0].input) == {"filePath": "a.txt", "content": 'x}\n{"y"}'}


def test_long_arguments_come_in_pieces_so_that_nobody_takes_it_for_silence() -> None:
    events = events_of(CALL, size=4)

    assert sum(isinstance(each, ToolInputDelta) for each in events) > 5


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_text_inside_of_json_is_told_as_text(size: int) -> None:
    events = events_of(SAID, size=size)

    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == TEXT


@pytest.mark.parametrize("size", [1, 1000])
def test_a_free_text_is_told_as_it_is(size: int) -> None:
    events = events_of(CALL, size=size, is_json=False)

    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == CALL


@pytest.mark.parametrize("cut", range(0, len(CALL), 9))
def test_a_call_that_was_cut_off_is_none(cut: int) -> None:
    events = events_of(CALL[:cut], size=5, whole=False)

    assert not any(isinstance(each, ToolCall) for each in events)


@pytest.mark.parametrize("cut", range(len(SAID)))
def test_a_text_that_was_cut_off_stands_as_far_as_it_came(cut: int) -> None:
    events = events_of(SAID[:cut], size=1, whole=False)

    assert TEXT.startswith("".join(each.text for each in events if isinstance(each, TextDelta)))
