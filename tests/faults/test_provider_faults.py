"""A model server that misbehaves on the wire (the rows P1 to P42), and what becomes of a turn.

The engine runs over the provider for OpenAI's chat completions and a real socket. How the
provider itself names each fault is tested in tests/plugins/openai_compatible/test_faults.py.

What the answers themselves have wrong (P19 to P32, P36, P38) is in test_answer_faults.py.
Rows without a test, and why:

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
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from pegboard import App
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    ContextOverflowFailure,
    Failure,
    ProviderAuthFailure,
)
from pegboard.schema.part import RetryPart, TextPart
from pegboard.schema.session import Idle
from support.models import model_server as ms
from support.models.faulty_model import CUT_CALL, GZIP, HALF, OK, is_well, played, playing


async def test_p1_a_server_of_this_machine_that_is_not_there_is_named_at_once(
    tmp_path: Path,
) -> None:
    async with playing(tmp_path, OK, url="http://127.0.0.1:1/v1") as setting:
        outcome = await setting.prompt()
        status = setting.app.session_status(outcome.turn.info.session_id)

    assert "nothing listens at 127.0.0.1:1" in outcome.message
    assert [part for part in outcome.turn.parts if isinstance(part, RetryPart)] == []
    assert status == Idle()


async def test_p2_a_name_that_does_not_resolve_is_tried_again(tmp_path: Path) -> None:
    outcome = await played(tmp_path, OK, url="http://nowhere.invalid/v1", retry={"attempts": 2})

    assert "nowhere.invalid" in outcome.message
    assert len([part for part in outcome.turn.parts if isinstance(part, RetryPart)]) == 1


async def test_p3_no_head_of_an_answer_in_time_is_tried_again(tmp_path: Path) -> None:
    assert is_well(await played(tmp_path, [ms.Pause()], OK, timeout_s=2), requests=2)


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        ({"retry-after": "0.4"}, 0.4, 50),  # P4
        ({"retry-after-ms": "350", "retry-after": "60"}, 0.35, 50),  # P6
        ({"x-ratelimit-reset-requests": "300ms"}, 0.3, 50),  # P7
        ({"anthropic-ratelimit-requests-reset": "@+1"}, 0.1, 50),  # P7
        ({"retry-after": "-5"}, 0, 50),  # P8
        ({"retry-after": "abc"}, 0, 50),
        ({"retry-after": ""}, 0, 50),
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
    assert outcome.took_s < 30
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
    fails: ms.Answer = [ms.Status(code=status, headers={"content-type": "text/html"}), page]
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


@pytest.mark.parametrize("noise", [[], [b": ping\n\n", ms.Pause(0.1)] * 600])
async def test_p17_silence_ends_the_attempt_and_comments_are_silence(
    tmp_path: Path, noise: list[ms.Piece]
) -> None:
    outcome = await played(tmp_path, [*HALF, *noise, ms.Pause()], OK, idle_s=1.5)

    assert is_well(outcome, requests=2)
    assert outcome.took_s < 50


async def test_p18_a_slow_trickle_works(tmp_path: Path) -> None:
    events = [piece if isinstance(piece, bytes) else ms._event(piece) for piece in OK]
    slow = [piece for byte in b"".join(events)[-200:] for piece in (bytes([byte]), ms.Pause(0.015))]
    start = b"".join(events)[:-200]
    outcome = await played(tmp_path, [start, *slow], idle_s=2)

    assert is_well(outcome, requests=1)


async def test_p33_a_compressed_answer_is_read(tmp_path: Path) -> None:
    events = b"".join(piece if isinstance(piece, bytes) else ms._event(piece) for piece in OK)

    assert is_well(await played(tmp_path, [GZIP, gzip.compress(events)]), requests=1)


async def test_p34_a_login_page_is_named_and_not_asked_for_again(tmp_path: Path) -> None:
    page: ms.Answer = [
        ms.Status(headers={"content-type": "text/html"}),
        b"<html><title>Log in</title></html>",
    ]
    outcome = await played(tmp_path, page, OK)

    assert len(outcome.requests) == 1
    assert "Log in" in outcome.message
    assert "baseURL" in outcome.message


async def test_p34_a_whole_answer_that_is_not_streamed_is_taken(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "all is well"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    whole: ms.Answer = [
        ms.Status(headers={"content-type": "application/json"}),
        json.dumps(body).encode(),
    ]

    assert is_well(await played(tmp_path, whole), requests=1)


async def test_p35_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with ms.ModelServer(ms.in_order(OK)) as other:
        head = {"location": other.url, "content-length": "0"}
        outcome = await played(tmp_path, [ms.Status(code=307, headers=head), b""], OK)

        assert other.requests == []
    assert len(outcome.requests) == 1
    assert other.url in outcome.message


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
        prompt = asyncio.create_task(app.prompt(session.id, "hi"))
        async with asyncio.timeout(30):
            while not server.requests or await said(app, session.id) != kept:  # noqa: ASYNC110 - the database has no event
                await asyncio.sleep(0.01)
        began = time.perf_counter()
        await app.abort(session.id)
        took_s = time.perf_counter() - began
        turn = await prompt

    assert took_s < 10
    assert len(server.requests) == 1
    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(turn.info.error, AbortedFailure)
    assert "".join(part.text for part in turn.parts if isinstance(part, TextPart)) == kept
    assert setting.noted == []


async def said(app: App, session_id: str) -> str:
    """The text of the answers until now."""
    parts = [part for turn in (await app.list_turns(session_id))[1:] for part in turn.parts]
    return "".join(part.text for part in parts if isinstance(part, TextPart))


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
    assert outcome.took_s < 30
