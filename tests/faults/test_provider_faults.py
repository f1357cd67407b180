"""A model server that misbehaves in every way of the table P1 to P42, and what becomes of a turn.

The engine runs over the provider for OpenAI's chat completions and a real socket. How the
provider itself names each fault is tested in tests/plugins/openai_compatible/test_faults.py.

Rows without a test here, and why:

- P2, bad certificates: final in the provider, whose tests have the certificate; the engine acts
  on any final error alike (P12).
- P20, P21 at every byte, P22 above 16 MB, P33 bombs: properties of the parser, tested there.
- P31, compaction: the session's tests of compaction; here no compactor is registered.
- P37, signatures of reasoning: chat completions have none.
"""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

import model_server as ms
from pegboard import App, tool
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    ContentFilterFailure,
    ContextOverflowFailure,
    Failure,
    OutputLengthFailure,
    ProviderAuthFailure,
    Turn,
)
from pegboard.schema.part import Completed, Failed, RetryPart, TextPart, ToolPart
from pegboard.schema.prompt import TextInput
from pegboard.schema.session import Idle
from played import ToolsPlugin, opened
from provider_run import provider_at

OK = ms.say("all is well")
HALF = ms.text("half of an")


@dataclass
class Played:
    """What a prompt came to, and what the server saw of it."""

    turn: Turn
    turns: tuple[Turn, ...]
    requests: list[dict[str, Any]]
    noted: list[str]
    took_s: float

    @property
    def error(self) -> Failure | None:
        assert isinstance(self.turn.info, AssistantMessage)
        return self.turn.info.error

    @property
    def finish(self) -> str | None:
        assert isinstance(self.turn.info, AssistantMessage)
        return self.turn.info.finish

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.turn.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> list[ToolPart]:
        return [part for turn in self.turns for part in turn.parts if isinstance(part, ToolPart)]

    @property
    def message(self) -> str:
        assert isinstance(self.error, APIFailure)
        return self.error.data.message


@dataclass
class Setting:
    """An App whose model is the server, and the notes that its one tool has taken."""

    app: App
    server: ms.ModelServer
    noted: list[str] = field(default_factory=list)

    async def prompt(self, session_id: str | None = None) -> Played:
        session_id = session_id or (await self.app.create_session()).id
        began = time.perf_counter()
        turn = await self.app.prompt(session_id, (TextInput(text="hi"),))
        return Played(
            turn=turn,
            turns=await self.app.turns(session_id),
            requests=self.server.requests,
            noted=self.noted,
            took_s=time.perf_counter() - began,
        )


@asynccontextmanager
async def playing(
    folder: Path, *answers: ms.Answer, retry: dict[str, object] | None = None, **facts: Any
) -> AsyncIterator[Setting]:
    noted: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Take a note."""
        noted.append(text)
        return f"noted: {text}"

    config = {
        "model": "test/m",
        "retry": {"cap_s": 0.02, **(retry or {})},
        "stream_idle_timeout_s": facts.pop("idle_s", 30),
    }
    async with ms.ModelServer(ms.in_order(*answers)) as server:
        provider = provider_at(facts.pop("url", server.url), **facts)
        async with opened(folder, provider, ToolsPlugin(note), config=config) as app:
            yield Setting(app, server, noted)


async def played(folder: Path, *answers: ms.Answer, **facts: Any) -> Played:
    """What a prompt comes to when the server gives these answers, one for each request."""
    async with playing(folder, *answers, **facts) as setting:
        return await setting.prompt()


def is_well(outcome: Played, *, requests: int) -> bool:
    return (outcome.text, outcome.error, len(outcome.requests)) == ("all is well", None, requests)


async def test_p1_a_server_that_is_not_there_is_tried_again_and_then_named(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1/v1"
    async with playing(tmp_path, OK, url=url, retry={"attempts": 2}) as setting:
        outcome = await setting.prompt()
        status = setting.app.status(outcome.turn.info.session_id)

    assert "127.0.0.1:1" in outcome.message
    assert "gave up after 2 attempts" in outcome.message
    assert status == Idle()


async def test_p2_a_name_that_does_not_resolve_is_tried_again(tmp_path: Path) -> None:
    outcome = await played(tmp_path, OK, url="http://nowhere.invalid/v1", retry={"attempts": 2})

    assert "nowhere.invalid" in outcome.message
    assert len([part for part in outcome.turn.parts if isinstance(part, RetryPart)]) == 1


async def test_p3_no_head_of_an_answer_in_time_is_tried_again(tmp_path: Path) -> None:
    assert is_well(await played(tmp_path, [ms.Pause()], OK, timeout_s=0.3), requests=2)


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        ({"retry-after": "0.4"}, 0.4, 2),  # P4
        ({"retry-after-ms": "350", "retry-after": "60"}, 0.35, 2),  # P6
        ({"x-ratelimit-reset-requests": "300ms"}, 0.3, 2),  # P7
        ({"anthropic-ratelimit-requests-reset": "@+1"}, 0.1, 4),  # P7
        ({"retry-after": "-5"}, 0, 2),  # P8
        ({"retry-after": "abc"}, 0, 2),
        ({"retry-after": ""}, 0, 2),
    ],
)
async def test_p4_to_p8_what_the_provider_asks_for_is_waited(
    tmp_path: Path, headers: dict[str, str], least_s: float, most_s: float
) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    given = {name: value.replace("@+1", soon) for name, value in headers.items()}
    outcome = await played(tmp_path, ms.failure(429, headers=given), OK)

    assert is_well(outcome, requests=2)
    assert least_s <= outcome.took_s < most_s


@pytest.mark.parametrize(("ahead_s", "least_s"), [(3, 1), (-60, 0)])
async def test_p5_a_date_is_waited_for_and_one_in_the_past_is_not(
    tmp_path: Path, ahead_s: int, least_s: float
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead_s), usegmt=True)
    outcome = await played(tmp_path, ms.failure(429, headers={"retry-after": date}), OK)

    assert is_well(outcome, requests=2)
    assert outcome.took_s >= least_s


async def test_p8_a_wait_of_a_day_fails_at_once_and_says_until_when(tmp_path: Path) -> None:
    outcome = await played(tmp_path, ms.failure(429, headers={"retry-after": "86400"}), OK)

    assert len(outcome.requests) == 1
    assert outcome.took_s < 1
    assert "asks to wait 86400 s, until 20" in outcome.message


async def test_p9_a_used_up_quota_is_not_tried_again(tmp_path: Path) -> None:
    outcome = await played(tmp_path, ms.failure(429, code="insufficient_quota"), OK)

    assert len(outcome.requests) == 1
    assert isinstance(outcome.error, APIFailure)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
async def test_p10_a_failing_server_is_tried_again_and_its_page_not_shown(
    tmp_path: Path, status: int
) -> None:
    page = b"<html><head><title>Bad gateway</title></head><body>a lot</body></html>"
    fails = [ms.Status(code=status, headers={"content-type": "text/html"}), page]
    outcome = await played(tmp_path, fails, ms.failure(status), OK)

    assert is_well(outcome, requests=3)
    first = next(part for part in outcome.turn.parts if isinstance(part, RetryPart))
    assert "an HTML page titled 'Bad gateway'" in first.error["data"]["message"]


async def test_p11_a_policy_is_not_tried_again_whatever_the_status(tmp_path: Path) -> None:
    outcome = await played(tmp_path, ms.failure(500, "violates our content policy"), OK)

    assert len(outcome.requests) == 1
    assert isinstance(outcome.error, APIFailure)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, APIFailure),
        (401, ProviderAuthFailure),
        (403, ProviderAuthFailure),
        (404, APIFailure),
        (413, ContextOverflowFailure),
        (422, APIFailure),
    ],
)
async def test_p12_a_refused_request_is_made_once(
    tmp_path: Path, status: int, failure: type[Failure]
) -> None:
    outcome = await played(tmp_path, ms.failure(status), OK)

    assert len(outcome.requests) == 1
    assert isinstance(outcome.error, failure)


NOTE = {"text": "remember"}
CUT_CALL = ms.tool_call("note", NOTE)[:-1]
GZIP = ms.Status(headers={"content-encoding": "gzip"})


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([ms.Cut()], id="p13-before-the-first-event"),
        pytest.param([*HALF, ms.Cut()], id="p14-in-the-text"),
        pytest.param([*CUT_CALL, ms.Cut()], id="p15-in-the-arguments"),
        pytest.param(HALF, id="p16-a-clean-end-without-one"),
        pytest.param(CUT_CALL, id="p16-in-the-arguments"),
        pytest.param([*HALF, b"data: {broken\n\n"], id="p19-bad-json"),
        pytest.param([*HALF, {"error": {"message": "Overloaded", "code": 529}}], id="p30-openai"),
        pytest.param([*HALF, {"error": {"type": "overloaded_error"}}], id="p30-overloaded"),
        pytest.param([GZIP, b"this is no gzip"], id="p33-not-what-it-claims"),
    ],
)
async def test_an_answer_that_breaks_off_is_dropped_and_asked_for_again(
    tmp_path: Path, broken: ms.Answer
) -> None:
    outcome = await played(tmp_path, broken, OK)

    assert is_well(outcome, requests=2)
    assert outcome.calls == []
    assert outcome.noted == []
    assert outcome.requests[1] == outcome.requests[0], "nothing of the attempt is sent back"


async def test_p14_text_that_broke_off_for_good_is_kept_and_never_done(tmp_path: Path) -> None:
    outcome = await played(tmp_path, [*HALF, ms.Cut()], retry={"attempts": 1})

    assert outcome.text == "half of an"
    assert outcome.finish is None
    assert isinstance(outcome.error, APIFailure)


@pytest.mark.parametrize("noise", [[], [b": ping\n\n", ms.Pause(0.1)] * 100])
async def test_p17_silence_ends_the_attempt_and_comments_are_silence(
    tmp_path: Path, noise: list[ms.Piece]
) -> None:
    outcome = await played(tmp_path, [*HALF, *noise, ms.Pause()], OK, idle_s=0.3)

    assert is_well(outcome, requests=2)
    assert outcome.took_s < 5


async def test_p18_a_slow_trickle_works(tmp_path: Path) -> None:
    events = [piece if isinstance(piece, bytes) else ms._event(piece) for piece in OK]
    slow = [piece for byte in b"".join(events)[-200:] for piece in (bytes([byte]), ms.Pause(0.005))]
    start = b"".join(events)[:-200]
    outcome = await played(tmp_path, [start, *slow], idle_s=0.3)

    assert is_well(outcome, requests=1)


async def test_p19_events_of_unknown_types_are_ignored(tmp_path: Path) -> None:
    strange = [b"event: surprise\nid: 7\nretry: 100\ndata: {}\n\n", {"object": "odd"}]

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
    assert "3 calls in a row" in errors[-1]
    assert "not valid JSON" in outcome.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": None},
        {"text": {"text": "deep"}},
        {"text": "a", "more": 1},
        json.dumps(json.dumps({"text": "twice"})),
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


async def test_p29_an_empty_answer_is_asked_for_once_more(tmp_path: Path) -> None:
    assert is_well(await played(tmp_path, ms.finish(), OK), requests=2)


async def test_p29_a_second_empty_answer_is_a_failure(tmp_path: Path) -> None:
    outcome = await played(tmp_path, ms.finish())

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
    refused = [ms.Status(code=400, headers={"content-type": "application/json"}), body]
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


async def test_p33_a_compressed_answer_is_read(tmp_path: Path) -> None:
    events = b"".join(piece if isinstance(piece, bytes) else ms._event(piece) for piece in OK)

    assert is_well(await played(tmp_path, [GZIP, gzip.compress(events)]), requests=1)


async def test_p34_a_login_page_is_named_and_not_asked_for_again(tmp_path: Path) -> None:
    page = [ms.Status(headers={"content-type": "text/html"}), b"<html><title>Log in</title></html>"]
    outcome = await played(tmp_path, page, OK)

    assert len(outcome.requests) == 1
    assert "Log in" in outcome.message
    assert "baseURL" in outcome.message


async def test_p34_a_whole_answer_that_is_not_streamed_is_taken(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "all is well"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    whole = [ms.Status(headers={"content-type": "application/json"}), json.dumps(body).encode()]

    assert is_well(await played(tmp_path, whole), requests=1)


async def test_p35_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with ms.ModelServer(ms.in_order(OK)) as other:
        head = {"location": other.url, "content-length": "0"}
        outcome = await played(tmp_path, [ms.Status(code=307, headers=head), b""], OK)

        assert other.requests == []
    assert len(outcome.requests) == 1
    assert other.url in outcome.message


@pytest.mark.parametrize(
    "counts",
    [None, ms.usage(-5, 3), ms.usage(1 << 60, 1), {"prompt_tokens": "NaN", "completion_tokens": 1}],
)
async def test_p36_a_usage_that_cannot_be_true_costs_nothing_and_stops_nothing(
    tmp_path: Path, counts: dict[str, Any] | None
) -> None:
    outcome = await played(tmp_path, [*ms.text("all is well"), *ms.finish(usage=counts)])

    assert is_well(outcome, requests=1)
    assert isinstance(outcome.turn.info, AssistantMessage)
    assert outcome.turn.info.cost == 0


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


async def test_p39_what_follows_the_end_is_ignored(tmp_path: Path) -> None:
    assert is_well(await played(tmp_path, [*OK, *HALF, *ms.finish("length")]), requests=1)


async def test_p40_a_socket_that_the_server_has_closed_is_replaced_without_an_attempt(
    tmp_path: Path,
) -> None:
    async with playing(tmp_path, OK) as setting:
        first = await setting.prompt()
        setting.server.drop_idle()
        second = await setting.prompt(first.turn.info.session_id)

    assert is_well(second, requests=2)
    assert not [part for part in second.turn.parts if isinstance(part, RetryPart)]


@pytest.mark.parametrize(
    ("phase", "kept"),
    [
        pytest.param([ms.Pause()], "", id="before-the-head"),
        pytest.param([*HALF, ms.Pause()], "half of an", id="in-the-text"),
        pytest.param([*HALF, *CUT_CALL, ms.Pause()], "half of an", id="in-the-arguments"),
        pytest.param(ms.failure(503), "", id="between-attempts"),
    ],
)
async def test_p41_an_abort_ends_every_phase_at_once_and_keeps_the_text(
    tmp_path: Path, phase: ms.Answer, kept: str
) -> None:
    async with playing(tmp_path, phase, retry={"cap_s": 30}) as setting:
        app, server = setting.app, setting.server
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, (TextInput(text="hi"),)))
        await asyncio.sleep(0.3)
        began = time.perf_counter()
        await app.abort(session.id)
        took_s = time.perf_counter() - began
        turn = await prompt
        await asyncio.sleep(0.05)

    assert took_s < 0.2
    assert len(server.requests) == 1
    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(turn.info.error, AbortedFailure)
    assert "".join(part.text for part in turn.parts if isinstance(part, TextPart)) == kept
    assert setting.noted == []


async def test_p42_a_clock_that_jumps_does_not_change_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with playing(tmp_path, ms.failure(503), OK, retry={"cap_s": 0.4}) as setting:
        prompt = asyncio.create_task(setting.prompt())
        await asyncio.sleep(0.1)
        now, now_ns = time.time(), time.time_ns()
        monkeypatch.setattr(time, "time", lambda: now + 7200)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns - 7200 * 10**9)
        outcome = await prompt

    assert is_well(outcome, requests=2)
    assert outcome.took_s < 3
