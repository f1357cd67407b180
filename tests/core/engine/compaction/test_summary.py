"""A summary on demand, and what a compactor may answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard import hookimpl
from pegboard.app import IdSource
from pegboard.compaction import Compaction, CompactionRequest
from pegboard.engine.history import SUMMARISE
from pegboard.errors import SessionBusyError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish
from pegboard.schema.event import Event, PartUpdated, SessionCompacted, SessionIdle
from pegboard.schema.part import CompactionPart, StepFinishPart
from pegboard.storage.changes import ChangeSession, PutMessage, PutPart
from support.models.compacting import (
    HI,
    LONG,
    SMALL,
    Answers,
    Shortens,
    error_of,
    look,
    said,
    texts,
)
from support.models.played import Played, ToolsPlugin, call, calls, heard, opened, text


def part_of(event: Event, kind: type[StepFinishPart]) -> bool:
    return isinstance(event.properties, PartUpdated) and isinstance(event.properties.part, kind)


async def test_the_user_can_ask_for_it_and_the_session_goes_on_from_there(tmp_path: Path) -> None:
    provider = Played(text("hello"), text("the summary"), text("again"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        events: list[Event] = []
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(
                heard(app, lambda event: isinstance(event.properties, SessionIdle))
            )
            await asyncio.sleep(0)
            turn = await app.summarize(session.id)
        events = listening.result()
        after = await app.session(session.id)
        await app.prompt(session.id, "next")
        turns = await app.list_turns(session.id)

    assert texts(turn) == ["the summary"]
    assert [e.type for e in events if isinstance(e.properties, SessionCompacted)] == [
        "session.compacted"
    ]
    assert sum(part_of(event, StepFinishPart) for event in events) == 1
    assert (after.agent, after.time.compacting) == ("build", None)
    assert len(turns) == 6
    assert said(provider.requests[2]) == [
        ("user", SUMMARISE),
        ("user", "pinned text"),
        ("assistant", "the summary"),
        ("user", "next"),
    ]


async def test_a_running_session_is_not_summarised(tmp_path: Path) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await go.wait()
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(slow), Shortens()) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await started.wait()
        with pytest.raises(SessionBusyError):
            await app.summarize(session.id)
        go.set()
        await prompt


async def test_a_prompt_that_comes_meanwhile_is_answered_behind_the_summary(
    tmp_path: Path,
) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await go.wait()
        for event in text("the summary"):
            yield event

    provider = Played(text("hello"), slow, text("yes"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        summing = asyncio.create_task(app.summarize(session.id))
        await started.wait()
        asked = asyncio.create_task(app.prompt(session.id, "meanwhile"))
        while len(await app.list_turns(session.id)) < 5:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        await asyncio.gather(summing, asked)

    assert said(provider.requests[2])[-2:] == [("assistant", "the summary"), ("user", "meanwhile")]


async def test_a_prompt_that_comes_right_behind_the_request_does_not_take_its_place(
    tmp_path: Path,
) -> None:
    provider = Played(text("hello"), text("the summary"), text("yes"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        asked = (await app.list_turns(session.id))[0].info
        request = replace(asked, id=IdSource().new("message"))
        part = CompactionPart(
            id=IdSource().new("part"), session_id=session.id, message_id=request.id, auto=False
        )
        await app.storage.commit(PutMessage(request), PutPart(part))
        answer = await app.prompt(session.id, "next")

    assert texts(answer) == ["yes"]
    assert said(provider.requests[2]) == [
        ("user", SUMMARISE),
        ("user", "pinned text"),
        ("assistant", "the summary"),
        ("user", "next"),
    ]


async def test_an_abort_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await asyncio.sleep(60)
        yield StreamFinish("stop")

    provider = Played(text("hello"), slow, text("again"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        summing = asyncio.create_task(app.summarize(session.id))
        await started.wait()
        await app.abort(session.id)
        assert error_of(await summing) is not None
        assert (await app.session(session.id)).time.compacting is None
        await app.prompt(session.id, "next")

    assert said(provider.requests[2]) == [("user", "hi"), ("assistant", "hello"), ("user", "next")]


def raises(_: CompactionRequest) -> object:
    raise ZeroDivisionError("oh")


@pytest.mark.parametrize(
    ("function", "says"),
    [(raises, "oh"), (lambda _: "a text", "answered with 'a text'"), (lambda _: None, "None")],
)
async def test_a_broken_compactor_is_an_error_of_the_summary(
    tmp_path: Path, function: Callable[[CompactionRequest], object], says: str
) -> None:
    async with opened(tmp_path, Played(text("hello")), Answers(function)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)
        assert says in str(error_of(turn))
        assert texts(await app.prompt(session.id, HI)) == ["hello"]


async def test_a_compactor_needs_no_model(tmp_path: Path) -> None:
    function = Answers(lambda _: Compaction(summary="nothing much happened"))
    provider = Played(text("hello"), text("again"))
    async with opened(tmp_path, provider, function) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)
        await app.prompt(session.id, "next")

    assert texts(turn) == ["nothing much happened"]
    assert said(provider.requests[1])[1:] == [
        ("assistant", "nothing much happened"),
        ("user", "next"),
    ]


@pytest.mark.fires("register_compactors", "session_compacting")
async def test_the_newest_compactor_acts_with_the_prompt_that_plugins_have_changed(
    tmp_path: Path,
) -> None:
    old, new = Shortens(), Shortens()

    class Shorter:
        @hookimpl
        async def session_compacting(self, prompt: str) -> str:
            return prompt + " In one sentence."

    async with opened(tmp_path, Played(text("hello")), old, new, Shorter()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.summarize(session.id)

    assert old.requests == []
    assert new.requests[0].prompt.endswith(" In one sentence.")


async def test_a_summary_is_still_the_beginning_when_the_app_opens_again(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello"), text("the summary")), Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.summarize(session.id)

    provider = Played(text("again"))
    async with opened(tmp_path, provider) as app:
        await app.prompt(session.id, "next")

    assert said(provider.requests[0])[2:] == [("assistant", "the summary"), ("user", "next")]


async def test_calls_are_refused_while_a_summary_is_written(tmp_path: Path) -> None:
    provider = Played(
        text("hello"), calls(call("look", '{"place": "x"}')), text("again"), model=SMALL
    )
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)

    assert provider.requests[1].tools == ()
    assert LONG not in str(turn)


async def test_a_mark_of_a_process_that_died_is_taken_back(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello")), Shortens()) as app:
        session = await app.create_session()
        await app.storage.commit(ChangeSession(session_id=session.id, compacting=1))
        assert (await app.session(session.id)).time.compacting == 1

        await app.prompt(session.id, HI)
        assert (await app.session(session.id)).time.compacting is None
