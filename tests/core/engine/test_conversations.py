"""What can be done with whole sessions: fork, rename, archive, delete, search."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Prompt
from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.ids import IdSource
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta
from pegboard.schema.event import SessionDeleted
from pegboard.schema.part import Failed, SubtaskInput, SubtaskPart, ToolPart
from pegboard_plugins import task
from pegboard_plugins.sqlite import open_sqlite
from support.models.played import Played, heard, opened, text
from support.sessions.conversing import converse, provider, said

LIMIT_S = 30


async def test_a_new_title_and_the_archive_do_not_count_as_use(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        renamed = await app.update_session(session.id, title="Comets")
        archived = await app.update_session(session.id, archived=True)
        back = await app.update_session(session.id, archived=False)

    assert (renamed.title, renamed.time) == ("Comets", session.time)
    assert archived.time.archived is not None
    assert back == renamed


async def test_a_title_given_while_it_runs_stays(tmp_path: Path) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await go.wait()
        yield TextDelta("t", "x")
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(slow)) as app:
        session = await app.create_session()
        running = asyncio.create_task(app.prompt(session.id, "go"))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        await app.update_session(session.id, title="Mine")
        go.set()
        await running

        assert (await app.session(session.id)).title == "Mine"


async def test_a_deleted_session_is_stopped_and_gone_with_its_children(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await asyncio.sleep(60)
        yield TextDelta("t", "x")

    async with opened(tmp_path, Played(slow), task) as app:
        session = await app.create_session()
        work = SubtaskInput(prompt="p", description="d", agent="helper")
        running = asyncio.create_task(app.prompt(session.id, Prompt(parts=[work])))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        [child] = await app.children(session.id)
        gone: set[str | None] = set()

        def both_gone(event: object) -> bool:
            properties = getattr(event, "properties", None)
            if isinstance(properties, SessionDeleted):
                gone.add(properties.session_id)
            return len(gone) == 2

        listening = asyncio.create_task(heard(app, both_gone))
        await asyncio.sleep(0)
        await app.delete_session(session.id)
        await asyncio.wait_for(listening, LIMIT_S)
        await asyncio.gather(running, return_exceptions=True)

        assert gone == {session.id, child.id}
        assert await app.sessions(roots=False) == ()
        with pytest.raises(NotFoundError):
            await app.delete_session(session.id)


@pytest.mark.sqlite
async def test_a_session_that_another_process_runs_is_not_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await app.create_session()
        other = await open_sqlite(tmp_path / "data" / "pegboard.db", ids=IdSource())
        try:
            await other.claim(session.id)
            with pytest.raises(SessionBusyError):
                await app.delete_session(session.id)
        finally:
            await other.aclose()
        assert (await app.session(session.id)).id == session.id


async def test_search_finds_titles_and_what_was_said(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        titled = await app.create_session(title="Ice and 100% snow_men")
        found = await app.search("ICE")
        percent = await app.search("0% snow_")
        none = await app.search("no such words")
        wild = await app.search("a%b")

    assert [(hit.session.id, hit.excerpt) for hit in found] == [
        (titled.id, ""),
        (session.id, "a ball of ice"),
    ]
    assert [hit.session.id for hit in percent] == [titled.id]
    assert none == wild == ()


async def test_a_subtask_part_is_done_once_and_its_result_is_seen(tmp_path: Path) -> None:
    played = provider()
    async with opened(tmp_path, played, task) as app:
        session = await converse(app)
        turns = await app.list_turns(session.id)
        again = await app.prompt(session.id, "thanks")

    tasks = [part for turn in turns for part in turn.parts if isinstance(part, SubtaskPart)]
    done = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert [part.call_id for part in done] == [part.id for part in tasks]
    assert said(turns)[-1] == "There are seven."
    assert said((again,)) == ["There are seven."]
    results = [message for message in played.requests[2].messages if message.role == "tool"]
    assert "seven" in results[0].content[0].output


async def test_a_subtask_for_nobody_is_told_to_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("I cannot")), task) as app:
        session = await app.create_session()
        work = SubtaskInput(prompt="p", description="d", agent="nobody")
        answer = await app.prompt(session.id, Prompt(parts=[work]))
        turns = await app.list_turns(session.id)

    [part] = [part for part in turns[1].parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert "nobody" in part.state.error
    assert said((answer,)) == ["I cannot"]


async def test_where_no_tool_gives_work_to_subagents_the_model_is_told_so(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("I cannot"))) as app:
        session = await app.create_session()
        work = SubtaskInput(prompt="p", description="d", agent="helper")
        answer = await app.prompt(session.id, Prompt(parts=[work]))
        turns = await app.list_turns(session.id)

    [part] = [part for part in turns[1].parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert part.state.error == "no tool here gives work to subagents"
    assert said((answer,)) == ["I cannot"]
