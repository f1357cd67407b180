"""What becomes of a step whose model fails, says nothing or is cut off."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from pegboard import App, tool
from pegboard.engine.finish import CUT_OFF, TOO_LONG
from pegboard.errors import ContextOverflowError, PluginError, ProviderError
from pegboard.providers import (
    ModelRequest,
    Result,
    StreamEvent,
    StreamFinish,
    TextDelta,
    ToolInputStart,
)
from pegboard.schema.event import (
    Event,
    MessageRemoved,
    PartDelta,
    PartRemoved,
    PartUpdated,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    ContentFilterFailure,
    ContextOverflowFailure,
    OutputLengthFailure,
    Turn,
)
from pegboard.schema.part import Failed, RetryPart, StepStartPart, TextPart, ToolPart
from pegboard.schema.session import Busy, Idle, Retry
from support.models.played import Played, ToolsPlugin, call, heard, opened, text
from support.storage.slow_storage import VARIABLE

HI = "hi"
QUICK = {"model": "played/m", "retry": {"cap_s": 0.02}}
BUSY = ProviderError("come back later", provider_id="played", status=503)


class Fails:
    """An answer that says something and then fails."""

    def __init__(self, *events: StreamEvent, error: Exception = BUSY) -> None:
        self._events = events
        self._error = error

    async def __call__(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in self._events:
            yield event
        raise self._error


def assistant(turn: Turn) -> AssistantMessage:
    assert isinstance(turn.info, AssistantMessage)
    return turn.info


def texts(turn: Turn) -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart)]


def kinds(turn: Turn) -> list[str]:
    return [type(part).__name__ for part in turn.parts]


async def prompted(app: App) -> tuple[Turn, list[Event]]:
    """The answer to a prompt in a new session, and all events of it."""
    session = await app.create_session()
    listening = asyncio.create_task(heard(app, lambda e: isinstance(e.properties, SessionIdle)))
    await asyncio.sleep(0)
    turn = await app.prompt(session.id, HI)
    return turn, await listening


async def test_parts_of_a_failed_attempt_are_gone(tmp_path: Path) -> None:
    fails = Fails(TextDelta("t", "half an ans"), ToolInputStart("c", "shout"))
    async with opened(tmp_path, Played(fails, text("whole answer")), config=QUICK) as app:
        turn, events = await prompted(app)
        stored = await app.list_turns(assistant(turn).session_id)

    assert stored[-1] == turn
    assert kinds(turn) == ["StepStartPart", "RetryPart", "TextPart", "StepFinishPart"]
    assert texts(turn) == ["whole answer"]
    removed = {e.properties.part_id for e in events if isinstance(e.properties, PartRemoved)}
    seen = {e.properties.part.id for e in events if isinstance(e.properties, PartUpdated)}
    assert len(removed) == 2
    assert seen - removed >= {part.id for part in turn.parts}


@pytest.mark.parametrize("seed", ["3", "14", "15", "17"])
async def test_a_prompt_returns_what_is_stored_where_snapshots_are_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    monkeypatch.setenv(VARIABLE, seed)
    fails = Fails(TextDelta("t", "half an ans"), ToolInputStart("c", "shout"))
    async with opened(tmp_path, Played(fails, text("whole answer")), config=QUICK) as app:
        turn, _ = await prompted(app)
        stored = await app.list_turns(assistant(turn).session_id)

    assert stored[-1] == turn


async def test_nothing_is_said_of_a_part_behind_its_removal(tmp_path: Path) -> None:
    fails = Fails(*(TextDelta("t", str(number)) for number in range(500)))
    async with opened(tmp_path, Played(fails, fails, text("ok")), config=QUICK) as app:
        _, events = await prompted(app)

    gone: set[str] = set()
    for event in events:
        match event.properties:
            case PartRemoved(part_id=part_id):
                gone.add(part_id)
            case PartDelta(part_id=part_id):
                assert part_id not in gone
            case PartUpdated(part=part):
                assert part.id not in gone
    assert len(gone) == 2


async def test_each_failed_attempt_is_kept_as_a_part_with_its_reason(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(Fails(), Fails(), text("ok")), config=QUICK) as app:
        turn, _ = await prompted(app)

    found = [part for part in turn.parts if isinstance(part, RetryPart)]
    assert [part.attempt for part in found] == [1, 2]
    assert found[0].error["name"] == "APIError"
    assert found[0].error["data"]["statusCode"] == 503
    assert found[0].time.created > 0


async def test_the_status_says_which_attempt_failed_why_and_when_the_next_is(
    tmp_path: Path,
) -> None:
    config = {"model": "played/m", "retry": {"cap_s": 0.2}}
    async with opened(tmp_path, Played(Fails(), text("ok")), config=config) as app:
        began_ms = time.time() * 1000
        _, events = await prompted(app)

    said = [e.properties.status for e in events if isinstance(e.properties, SessionStatusChanged)]
    busy, retry, again, idle = said
    assert (busy, again, idle) == (Busy(), Busy(), Idle())
    assert isinstance(retry, Retry)
    assert (retry.attempt, retry.message) == (1, "come back later")
    assert 100 <= retry.next - began_ms < 60_000


async def test_the_status_of_a_session_that_waits_is_retry_and_an_abort_ends_it_at_once(
    tmp_path: Path,
) -> None:
    later = ProviderError("later", provider_id="played", status=503, wait_s=60)
    fails = Fails(TextDelta("t", "half"), error=later)
    async with opened(tmp_path, Played(fails, text("ok"))) as app:
        session = await app.create_session()
        waits = asyncio.create_task(
            heard(
                app,
                lambda e: (
                    isinstance(e.properties, SessionStatusChanged)
                    and isinstance(e.properties.status, Retry)
                ),
            )
        )
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await waits
        status = app.session_status(session.id)
        began = time.perf_counter()
        await app.abort(session.id)
        took_s = time.perf_counter() - began
        turn = await prompt
        rests = app.session_status(session.id)

    assert isinstance(status, Retry)
    assert rests == Idle()
    assert took_s < 10
    assert isinstance(assistant(turn).error, AbortedFailure)
    assert kinds(turn) == ["StepStartPart", "RetryPart"]


async def test_there_are_as_many_attempts_as_the_configuration_says(tmp_path: Path) -> None:
    provider = Played(Fails())
    config = {"model": "played/m", "retry": {"attempts": 3, "cap_s": 0.01}}
    async with opened(tmp_path, provider, config=config) as app:
        turn, _ = await prompted(app)

    assert len(provider.requests) == 3
    error = assistant(turn).error
    assert isinstance(error, APIFailure)
    assert error.data.message == "come back later (gave up after 3 attempts)"


async def test_a_provider_that_asks_for_too_long_a_wait_is_not_waited_for(tmp_path: Path) -> None:
    error = ProviderError("slow down", status=429, wait_s=86_400)
    provider = Played(Fails(error=error))
    async with opened(tmp_path, provider) as app:
        turn, _ = await prompted(app)

    assert len(provider.requests) == 1
    failure = assistant(turn).error
    assert isinstance(failure, APIFailure)
    assert "slow down (the provider asks to wait 86400 s, until 20" in failure.data.message


async def test_a_wrong_request_is_made_once(tmp_path: Path) -> None:
    provider = Played(Fails(error=ProviderError("bad role", status=400)))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert len(provider.requests) == 1
    assert isinstance(assistant(turn).error, APIFailure)


async def test_a_fault_of_the_provider_s_own_code_is_not_tried_again(tmp_path: Path) -> None:
    provider = Played(Fails(error=KeyError("choices")), text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        with pytest.raises(PluginError, match="the provider played raised KeyError"):
            await app.prompt((await app.create_session()).id, HI)

    assert len(provider.requests) == 1


async def test_a_connection_that_breaks_is_tried_again(tmp_path: Path) -> None:
    provider = Played(Fails(error=ConnectionResetError("reset")), text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert texts(turn) == ["ok"]


EMPTY = [StreamFinish("stop")]


@pytest.mark.parametrize("empty", [EMPTY, [TextDelta("t", " \n"), *EMPTY]])
async def test_an_empty_answer_is_asked_for_once_more(
    tmp_path: Path, empty: Sequence[StreamEvent]
) -> None:
    provider = Played(empty, text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert texts(turn) == ["ok"]
    assert assistant(turn).error is None


async def test_a_second_empty_answer_is_a_failure(tmp_path: Path) -> None:
    provider = Played(EMPTY)
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert len(provider.requests) == 2
    error = assistant(turn).error
    assert isinstance(error, APIFailure)
    assert error.data.message == "the model's answer was empty (2 times)"
    assert assistant(turn).finish is None


async def test_an_answer_that_ends_with_an_error_is_no_answer(tmp_path: Path) -> None:
    provider = Played(text("half", reason="error"), text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert texts(turn) == ["ok"]


async def test_a_call_that_was_cut_never_runs_and_the_model_is_told_to_split_it(
    tmp_path: Path,
) -> None:
    cut = [ToolInputStart("c", "shout"), StreamFinish("length")]
    provider = Played(cut, text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)
        turns = await app.list_turns(assistant(turn).session_id)

    [part] = [part for each in turns for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert part.state.error == TOO_LONG
    assert texts(turn) == ["ok"]
    told = provider.requests[1].messages[-1].content
    assert told == (Result(id="c", name="shout", output=TOO_LONG, is_error=True),)


async def test_a_model_whose_calls_are_cut_again_and_again_is_stopped(tmp_path: Path) -> None:
    cut = [ToolInputStart("c", "shout"), StreamFinish("length")]
    provider = Played(cut)
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)

    assert len(provider.requests) == 3
    assert assistant(turn).finish == "length"
    assert isinstance(assistant(turn).error, OutputLengthFailure)


async def test_a_complete_call_in_an_answer_that_was_cut_later_gets_its_result(
    tmp_path: Path,
) -> None:
    @tool
    async def ping() -> str:
        """Ping."""
        return "pong"

    provider = Played([*call("ping", "{}"), StreamFinish("length")], text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(ping), config=QUICK) as app:
        turn, _ = await prompted(app)

    assert texts(turn) == ["ok"]


async def test_a_text_that_was_cut_is_kept_and_said_to_be(tmp_path: Path) -> None:
    provider = Played(text("the first half", reason="length"), text("the rest"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)
        await app.prompt(assistant(turn).session_id, HI)

    assert isinstance(assistant(turn).error, OutputLengthFailure)
    assert texts(turn) == ["the first half"]
    assert "the first half" in str(provider.requests[1].messages)


async def test_a_refusal_is_visible_and_not_tried_again(tmp_path: Path) -> None:
    provider = Played(text("I cannot", reason="content-filter"), text("ok"))
    async with opened(tmp_path, provider, config=QUICK) as app:
        turn, _ = await prompted(app)
        after = await app.prompt(assistant(turn).session_id, HI)

    assert isinstance(assistant(turn).error, ContentFilterFailure)
    assert assistant(turn).finish == "content-filter"
    assert texts(after) == ["ok"]


async def test_a_stream_that_stops_is_cut_off_and_its_call_never_runs(tmp_path: Path) -> None:
    config = {"model": "played/m", "retry": {"attempts": 1}}
    provider = Played([ToolInputStart("c", "shout")])
    async with opened(tmp_path, provider, config=config) as app:
        turn, _ = await prompted(app)

    [part] = [part for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert part.state.error == CUT_OFF


async def test_a_request_that_is_too_long_is_not_tried_again_as_it_is(tmp_path: Path) -> None:
    error = ContextOverflowError("too long", provider_id="played", status=400)
    provider = Played(Fails(error=error))
    config = {**QUICK, "compaction": {"auto": False}}
    async with opened(tmp_path, provider, config=config) as app:
        turn, events = await prompted(app)

    assert len(provider.requests) == 1
    assert isinstance(assistant(turn).error, ContextOverflowFailure)
    assert not [e for e in events if isinstance(e.properties, MessageRemoved)]
    assert isinstance(turn.parts[0], StepStartPart)
