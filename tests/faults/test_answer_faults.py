"""A model whose answers are wrong in every way of the rows P19 to P32, P36 and P38."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.schema.message import (
    AssistantMessage,
    CallsFailure,
    ContentFilterFailure,
    ContextOverflowFailure,
    OutputLengthFailure,
)
from pegboard.schema.part import Completed, Failed
from support.models import model_server as ms
from support.models.faulty_model import CUT_CALL, HALF, NOTE, OK, is_well, played, playing


async def test_p19_events_of_unknown_types_are_ignored(tmp_path: Path) -> None:
    strange: list[ms.Piece] = [
        b"event: surprise\nid: 7\nretry: 100\ndata: {}\n\n",
        {"object": "odd"},
    ]

    assert is_well(await played(tmp_path, [*strange, *OK]), requests=1)


async def test_p21_what_is_no_unicode_is_stored_and_sent_back_safely(tmp_path: Path) -> None:
    lone = b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n'
    bad = b'data: {"choices":[{"delta":{"content":"\xff b"}}]}\n\n'
    async with playing(tmp_path, [lone, bad, *ms.finish()], OK) as setting:
        first = await setting.prompt()
        second = await setting.prompt(first.turn.info.session_id)

    assert first.text == "a\ufffd\ufffd b"
    assert is_well(second, requests=2)
    assert second.requests[1]["messages"][-2]["content"] == first.text


async def test_p22_a_delta_of_5_mb_and_many_of_one_letter(tmp_path: Path) -> None:
    big = "x" * 5_000_000
    letters = [b"".join(ms._event(ms.chunk({"content": "y"})) for _ in range(20_000))]
    outcome = await played(tmp_path, [ms.chunk({"content": big}), *letters, *ms.finish()])

    assert outcome.text == big + "y" * 20_000


async def test_p23_unreadable_arguments_are_not_run_and_the_third_in_a_row_ends_the_turn(
    tmp_path: Path,
) -> None:
    asked = [ms.call("note", f'{{"text": "{number}', call_id=f"c{number}") for number in range(5)]
    outcome = await played(tmp_path, *asked)

    assert outcome.noted == []
    assert len(outcome.requests) == 3
    errors = [part.state.error for part in outcome.calls if isinstance(part.state, Failed)]
    assert all("not valid JSON" in error for error in errors)
    assert isinstance(outcome.error, CallsFailure)
    assert "No call of the last 3 steps could be made" in outcome.error.data.message
    assert "note (the arguments are not valid JSON" in outcome.error.data.message
    assert "not valid JSON" in outcome.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": None},
        {"text": {"text": "deep"}},
        {"text": "a", "more": 1},
        json.dumps(json.dumps({"text": {"text": "twice"}})),
    ],
)
async def test_p24_arguments_of_the_wrong_shape_are_not_run(
    tmp_path: Path, arguments: dict[str, Any] | str
) -> None:
    outcome = await played(tmp_path, ms.call("note", arguments), OK)

    assert outcome.noted == []
    [part] = outcome.calls
    assert isinstance(part.state, Failed)
    assert is_well(outcome, requests=2)


async def test_p24_arguments_that_are_encoded_twice_are_run(tmp_path: Path) -> None:
    twice = json.dumps(json.dumps({"text": "twice"}))

    outcome = await played(tmp_path, ms.call("note", twice), OK)

    assert outcome.noted == ["twice"]
    assert is_well(outcome, requests=2)


async def test_p25_an_unknown_tool_is_answered_and_a_known_one_in_another_case_runs(
    tmp_path: Path,
) -> None:
    outcome = await played(tmp_path, ms.call("jot", NOTE), ms.call("Note", NOTE), OK)

    unknown, known = outcome.calls
    assert isinstance(unknown.state, Failed)
    assert "there are: note" in unknown.state.error
    assert isinstance(known.state, Completed)
    assert outcome.noted == ["remember"]


async def test_p26_each_call_runs_once_whatever_its_id_and_index(tmp_path: Path) -> None:
    asked = [
        *ms.tool_call("note", {"text": "a"}, call_id="same", index=0),
        *ms.tool_call("note", {"text": "b"}, call_id="same", index=4),
        *ms.finish("tool_calls"),
    ]
    outcome = await played(tmp_path, asked, asked, OK)

    assert sorted(outcome.noted) == ["a", "a", "b", "b"]
    assert all(isinstance(part.state, Completed) for part in outcome.calls)
    sent = outcome.requests[2]["messages"]
    calls = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert calls == results
    assert len(set(calls[:2])) == 2


@pytest.mark.parametrize("written", ['{"text": "rem', '{"text": "remember"}'])
async def test_p27_a_call_at_the_output_limit_never_runs(tmp_path: Path, written: str) -> None:
    cut = [*ms.tool_call("note", written), *ms.finish("length")]
    outcome = await played(tmp_path, cut, OK)

    assert outcome.noted == []
    assert is_well(outcome, requests=2)
    assert "split the work" in outcome.requests[1]["messages"][-1]["content"]


async def test_p27_a_model_is_told_twice_to_split_a_call_and_then_stopped(tmp_path: Path) -> None:
    outcome = await played(tmp_path, [*CUT_CALL, *ms.finish("length")])

    assert len(outcome.requests) == 3
    assert isinstance(outcome.error, OutputLengthFailure)


async def test_p27_cut_arguments_behind_a_finish_that_lies_never_run(tmp_path: Path) -> None:
    outcome = await played(tmp_path, [*CUT_CALL, *ms.finish("tool_calls")], OK)

    assert outcome.noted == []
    assert is_well(outcome, requests=2)


async def test_p28_a_text_at_the_output_limit_is_kept_and_marked(tmp_path: Path) -> None:
    outcome = await played(tmp_path, [*HALF, *ms.finish("length")])

    assert (outcome.text, outcome.finish) == ("half of an", "length")
    assert isinstance(outcome.error, OutputLengthFailure)


DONE = b"data: [DONE]\n\n"
NOTHING = [ms.finish(), ms.finish("tool_calls"), [DONE], [ms.chunk({"tool_calls": []}), DONE]]


@pytest.mark.parametrize(
    "end",
    [
        *(ms.finish(reason) for reason in ("tool_calls", "function_call", "", "unknown", "other")),
        [ms.chunk({"tool_calls": []}), *ms.finish("tool_calls")],
        [DONE],
    ],
)
async def test_an_answer_without_a_call_ends_the_turn_whatever_the_server_calls_its_end(
    tmp_path: Path, end: ms.Answer
) -> None:
    outcome = await played(tmp_path, [*ms.text("all is well"), *end])

    assert is_well(outcome, requests=1)
    assert outcome.finish not in ("tool-calls", "unknown"), "clients would wait for another step"


@pytest.mark.parametrize("empty", NOTHING)
async def test_p29_an_empty_answer_is_asked_for_once_more(tmp_path: Path, empty: ms.Answer) -> None:
    assert is_well(await played(tmp_path, empty, OK), requests=2)


@pytest.mark.parametrize("empty", NOTHING)
async def test_p29_a_second_empty_answer_is_a_failure(tmp_path: Path, empty: ms.Answer) -> None:
    outcome = await played(tmp_path, empty)

    assert len(outcome.requests) == 2
    assert "empty" in outcome.message


@pytest.mark.parametrize(
    "words",
    [
        {"code": "context_length_exceeded", "message": "too much"},
        {"message": "prompt is too long: 214000 tokens > 200000 maximum"},
        {"message": "The input token count exceeds the maximum number of tokens allowed"},
        {"type": "exceed_context_size_error", "message": "request exceeds it"},
    ],
)
async def test_p31_a_request_that_is_too_long_is_not_made_again(
    tmp_path: Path, words: dict[str, str]
) -> None:
    body = json.dumps({"error": words}).encode()
    refused: ms.Answer = [ms.Status(code=400, headers={"content-type": "application/json"}), body]
    outcome = await played(tmp_path, refused, OK)

    assert len(outcome.requests) == 1
    assert isinstance(outcome.error, ContextOverflowFailure)


@pytest.mark.parametrize(
    "refusal",
    [
        [*HALF, *ms.finish("content_filter")],
        [ms.chunk({"refusal": "I cannot help with that."}), *ms.finish()],
    ],
)
async def test_p32_a_refusal_is_shown_and_the_session_goes_on(
    tmp_path: Path, refusal: ms.Answer
) -> None:
    async with playing(tmp_path, refusal, OK) as setting:
        refused = await setting.prompt()
        after = await setting.prompt(refused.turn.info.session_id)

    assert isinstance(refused.error, ContentFilterFailure)
    assert refused.text
    assert is_well(after, requests=2)


@pytest.mark.parametrize(
    "counts",
    [None, ms.usage(-5, 3), ms.usage(1 << 60, 1), {"prompt_tokens": "NaN", "completion_tokens": 1}],
)
async def test_p36_a_usage_that_cannot_be_true_is_an_unknown_cost_and_stops_nothing(
    tmp_path: Path, counts: dict[str, Any] | None
) -> None:
    outcome = await played(tmp_path, [*ms.text("all is well"), *ms.finish(usage=counts)])

    assert is_well(outcome, requests=1)
    assert isinstance(outcome.turn.info, AssistantMessage)
    assert outcome.turn.info.cost is None


async def test_p38_valid_calls_beside_an_invalid_one_run_and_each_has_one_result(
    tmp_path: Path,
) -> None:
    asked = [
        *ms.tool_call("note", {"text": "a"}, index=0),
        *ms.tool_call("note", '{"text": ', index=1),
        *ms.tool_call("note", {"text": "c"}, index=2),
        *ms.finish("tool_calls"),
    ]
    outcome = await played(tmp_path, asked, OK)

    assert sorted(outcome.noted) == ["a", "c"]
    assert [type(part.state) for part in outcome.calls] == [Completed, Failed, Completed]
    results = [m["tool_call_id"] for m in outcome.requests[1]["messages"] if m["role"] == "tool"]
    assert results == ["call_note_0", "call_note_1", "call_note_2"]
