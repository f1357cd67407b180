"""`App.resume`: an answer that was interrupted goes on, and no other."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path

import pytest

from pegboard import App, InvalidInputError
from pegboard.errors import SessionBusyError
from pegboard.providers import ModelRequest, Result, StreamEvent, TextDelta, TextStart
from pegboard.schema.message import AbortedFailure, AssistantMessage, Prompt, Turn, UserMessage
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    assistant,
    call,
    calls,
    opened,
    shout,
    text,
    texts,
)

LIMIT_S = 30


class Hanging:
    """A model that begins to answer, and does not end."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def answer(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        yield TextDelta("0", "half")
        self.asked.set()
        await asyncio.Event().wait()


async def interrupted(
    app: App, session_id: str, working: Coroutine[None, None, Turn], hanging: Hanging
) -> Turn:
    """Return the answer that was aborted once the model had begun it."""
    task = asyncio.create_task(working)
    await asyncio.wait_for(hanging.asked.wait(), LIMIT_S)
    await app.abort(session_id)
    return await task


async def test_an_aborted_answer_goes_on_with_the_same_prompt(tmp_path: Path) -> None:
    hanging = Hanging()
    provider = Played(calls(call("shout", '{"words": "a"}')), hanging.answer, text("whole"))
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        aborted = await interrupted(app, session.id, app.prompt(session.id, HI), hanging)
        answered = await app.resume(session.id)
        turns = await app.list_turns(session.id)
        again = await app.resume(session.id)

    assert isinstance(assistant(aborted).error, AbortedFailure)
    assert texts(answered) == ["whole"]
    assert [type(turn.info) for turn in turns] == [UserMessage] + [AssistantMessage] * 3
    assert assistant(answered).parent_id == turns[0].info.id
    assert again.info == answered.info
    assert len(provider.requests) == 3
    seen = [item for each in provider.requests[2].messages for item in each.content]
    assert [each.output for each in seen if isinstance(each, Result)] == ["A"]


async def test_a_resumed_answer_that_is_aborted_again_ends_and_can_be_resumed_again(
    tmp_path: Path,
) -> None:
    first, second = Hanging(), Hanging()
    async with opened(tmp_path, Played(first.answer, second.answer, text("whole"))) as app:
        session = await app.create_session()
        ways = (app.prompt(session.id, HI), app.resume(session.id))
        aborted = [
            await interrupted(app, session.id, way, hanging)
            for way, hanging in zip(ways, (first, second), strict=True)
        ]
        answered = await app.resume(session.id)

    assert [type(assistant(turn).error) for turn in aborted] == [AbortedFailure] * 2
    assert texts(answered) == ["whole"]


async def test_a_session_without_a_prompt_cannot_be_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("unasked"))) as app:
        session = await app.create_session()
        with pytest.raises(InvalidInputError, match=f"{session.id} has no prompt"):
            await app.resume(session.id)


async def test_a_session_that_another_process_runs_is_not_resumed(tmp_path: Path) -> None:
    hanging = Hanging()
    async with opened(tmp_path, Played(hanging.answer)) as runner:
        session = await runner.create_session()
        prompting = asyncio.create_task(runner.prompt(session.id, HI))
        await asyncio.wait_for(hanging.asked.wait(), LIMIT_S)
        async with opened(tmp_path, Played(text("mine"))) as app:
            with pytest.raises(SessionBusyError):
                await app.resume(session.id)
        await runner.abort(session.id)
        await prompting


async def test_a_session_is_made_once_under_an_id_of_the_callers(tmp_path: Path) -> None:
    async with opened(tmp_path, Played()) as app:
        made = await app.create_session(id="ses_mine", title="first")
        again = await app.create_session(id="ses_mine", title="second")
        with pytest.raises(InvalidInputError, match="not the id of a session: 'mine'"):
            await app.create_session(id="mine")
        with pytest.raises(InvalidInputError, match="not UTF-8"):
            await app.create_session(id="ses_other", title="\udcff")
        every = await app.sessions()

    assert (made.id, again) == ("ses_mine", made)
    assert [each.id for each in every] == ["ses_mine"]


async def test_the_ids_of_a_run_come_after_those_that_another_process_has_made(
    tmp_path: Path,
) -> None:
    async with (
        opened(tmp_path, Played(text("one"), text("three"))) as app,
        opened(tmp_path, Played(text("two"))) as other,
    ):
        session = await app.create_session()
        await app.prompt(session.id, HI)
        ahead = Prompt("from a clock ahead of ours", message_id="msg_zzzzzzzzzzzz")
        await other.prompt(session.id, ahead)
        await app.prompt(session.id, HI)
        ids = [turn.info.id for turn in await app.list_turns(session.id)]

    assert ids == sorted(ids)
    assert "msg_zzzzzzzzzzzz" in ids
