"""An answer that breaks off behind a call: what the tool did counts, and the next step is taken."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from pegboard import App, tool
from pegboard.errors import ProviderError
from pegboard.providers import ModelRequest, Result, StreamEvent, StreamFinish, TextDelta
from pegboard.schema.message import APIFailure, Turn
from pegboard.schema.part import Completed, ToolPart
from support.models.played import (
    HI,
    Answer,
    Played,
    ToolsPlugin,
    assistant,
    call,
    opened,
    text,
    texts,
)

QUICK = {"model": "played/m", "retry": {"cap_s": 0.02}}
BUSY = ProviderError("come back later", provider_id="played", status=503)


def breaks_off(*events: StreamEvent, error: Exception = BUSY) -> Answer:
    """An answer that says something and then fails."""

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in events:
            yield event
        raise error

    return answer


async def prompted(app: App) -> Turn:
    session = await app.create_session()
    return await app.prompt(session.id, HI)


class Touches:
    """A tool that counts how often it ran, and an answer that breaks off behind a call of it."""

    def __init__(self) -> None:
        self.runs = 0
        self.tool = tool(self.touch)
        self.cut = breaks_off(TextDelta("t", "I touch."), *call("touch", "{}", call_id="c"))

    async def touch(self) -> str:
        """Touch."""
        self.runs += 1
        return "touched"


async def test_behind_a_call_the_next_step_is_the_next_attempt_and_nothing_runs_twice(
    tmp_path: Path,
) -> None:
    touches = Touches()
    provider = Played(touches.cut, text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(touches.tool), config=QUICK) as app:
        turn = await prompted(app)
        _, cut, _ = await app.list_turns(assistant(turn).session_id)

    assert touches.runs == 1
    assert texts(turn) == ["ok"]
    assert [type(part).__name__ for part in cut.parts] == [
        "StepStartPart",
        "TextPart",
        "ToolPart",
        "RetryPart",
        "StepFinishPart",
    ]
    assert (assistant(cut).finish, assistant(cut).error) == ("tool-calls", None)
    assert Result(id="c", name="touch", output="touched") in [
        content for message in provider.requests[1].messages for content in message.content
    ]


async def test_a_server_that_always_breaks_off_behind_a_call_has_as_many_attempts_as_any(
    tmp_path: Path,
) -> None:
    touches = Touches()
    provider = Played(touches.cut)
    config = {"model": "played/m", "retry": {"attempts": 3, "cap_s": 0.01}}
    async with opened(tmp_path, provider, ToolsPlugin(touches.tool), config=config) as app:
        turn = await prompted(app)

    assert len(provider.requests) == 3
    error = assistant(turn).error
    assert isinstance(error, APIFailure)
    assert error.data.message == "come back later (gave up after 3 attempts)"


async def test_a_step_that_ends_whole_lets_the_attempts_begin_anew(tmp_path: Path) -> None:
    touches = Touches()
    whole = [*call("touch", "{}"), StreamFinish("tool-calls")]
    provider = Played(touches.cut, touches.cut, whole, touches.cut, touches.cut, text("ok"))
    config = {"model": "played/m", "retry": {"attempts": 3, "cap_s": 0.01}}
    async with opened(tmp_path, provider, ToolsPlugin(touches.tool), config=config) as app:
        turn = await prompted(app)

    assert (texts(turn), len(provider.requests)) == (["ok"], 6)


async def test_a_failure_that_does_not_pass_ends_the_turn_behind_a_call_too(
    tmp_path: Path,
) -> None:
    touches = Touches()
    refused = breaks_off(*call("touch", "{}"), error=ProviderError("bad role", status=400))
    provider = Played(refused, text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(touches.tool), config=QUICK) as app:
        turn = await prompted(app)

    assert len(provider.requests) == 1
    assert isinstance(assistant(turn).error, APIFailure)
    [part] = [part for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Completed)


async def test_the_time_for_attempts_begins_with_the_first_failure(tmp_path: Path) -> None:
    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "half")
        await asyncio.sleep(2)
        raise BUSY

    config = {"model": "played/m", "retry": {"total_s": 1.5, "cap_s": 0.01}}
    async with opened(tmp_path, Played(slow, text("ok")), config=config) as app:
        turn = await prompted(app)

    assert texts(turn) == ["ok"]
