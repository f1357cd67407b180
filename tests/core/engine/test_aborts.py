"""An abort ends the run that it was meant for, and nothing that comes later."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App, Tool, ToolContext, hookimpl, tool
from pegboard.errors import AbortedError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta
from pegboard.schema.event import SessionIdle
from pegboard.schema.message import AbortedFailure
from pegboard.schema.session import Busy, Idle
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    assistant,
    call,
    calls,
    heard,
    opened,
    text,
    texts,
)

pytestmark = pytest.mark.usefixtures("each_store")

LIMIT_S = 30


async def until_turns(app: App, session_id: str, number: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        while len(await app.list_turns(session_id)) < number:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)


def slow_tool(started: asyncio.Event, ending: asyncio.Event, go: asyncio.Event) -> Tool:
    """Return a tool `ends_slowly`, whose cancellation waits for `go`."""

    @tool
    async def ends_slowly() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(LIMIT_S)
        finally:
            ending.set()
            await go.wait()
        return "never"

    return ends_slowly


async def test_a_prompt_that_comes_while_an_abort_goes_on_is_answered(tmp_path: Path) -> None:
    started, ending, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    provider = Played(calls(call("ends_slowly", "{}")), text("again"))
    async with opened(tmp_path, provider, ToolsPlugin(slow_tool(started, ending, go))) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        abort = asyncio.create_task(app.abort(session.id))
        await asyncio.wait_for(ending.wait(), LIMIT_S)
        second = asyncio.create_task(app.prompt(session.id, "go on"))
        await until_turns(app, session.id, 3)
        go.set()
        await abort
        stopped, answered = await first, await second

    assert isinstance(assistant(stopped).error, AbortedFailure)
    assert texts(answered) == ["again"]
    assert len(provider.requests) == 2


class Prepares:
    """A plugin that tells when the last hook before a run has been called."""

    def __init__(self) -> None:
        self.prepared = asyncio.Event()

    @hookimpl
    async def chat_message(self) -> None:
        self.prepared.set()


async def test_an_abort_between_a_prompts_hooks_and_its_run_ends_the_prompt(tmp_path: Path) -> None:
    provider, plugin = Played(text("never")), Prepares()
    async with opened(tmp_path, provider, plugin) as app:
        session = await app.create_session()

        async def aborting() -> bool:
            await plugin.prepared.wait()
            return await app.abort(session.id)

        abort = asyncio.create_task(aborting())
        with pytest.raises(AbortedError):
            await app.prompt(session.id, HI)

        assert await abort
    assert not provider.requests


async def test_a_plain_function_sees_that_its_call_is_cancelled(tmp_path: Path) -> None:
    started, ended = threading.Event(), threading.Event()

    @tool
    def looks(context: ToolContext) -> str:
        """Work until told to stop."""
        started.set()
        for _ in range(LIMIT_S * 100):
            if context.cancelled:
                ended.set()
                break
            time.sleep(0.01)
        return "never"

    provider = Played(calls(call("looks", "{}")))
    async with opened(tmp_path, provider, ToolsPlugin(looks)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.to_thread(started.wait, LIMIT_S)

        await app.abort(session.id)
        await prompt

        assert await asyncio.to_thread(ended.wait, LIMIT_S)


async def test_a_stale_abort_does_not_end_a_newer_run(tmp_path: Path) -> None:
    started, ending, go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    running, finish = asyncio.Event(), asyncio.Event()

    async def newer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        running.set()
        await finish.wait()
        yield TextDelta("t", "newer")
        yield StreamFinish("stop")

    provider = Played(calls(call("ends_slowly", "{}")), newer)
    async with opened(tmp_path, provider, ToolsPlugin(slow_tool(started, ending, go))) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        aborts = [asyncio.create_task(app.abort(session.id)) for _ in range(3)]
        await asyncio.wait_for(ending.wait(), LIMIT_S)
        second = asyncio.create_task(app.prompt(session.id, HI))
        await until_turns(app, session.id, 3)
        go.set()
        await asyncio.wait_for(running.wait(), LIMIT_S)
        assert await asyncio.gather(*aborts) == [True] * 3
        assert isinstance(app.session_status(session.id), Busy)
        finish.set()
        await first
        answered = await second

    assert texts(answered) == ["newer"]
    assert assistant(answered).error is None


async def test_a_run_that_is_aborted_before_its_first_step_leaves_the_session_free(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Played(text("fine"))) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, HI))
        async with asyncio.timeout(LIMIT_S):
            while isinstance(app.session_status(session.id), Idle):  # noqa: ASYNC110 - the very next moment
                await asyncio.sleep(0)
        assert await app.abort(session.id)
        with pytest.raises(AbortedError):
            await first

        assert isinstance(app.session_status(session.id), Idle)
        answered = await asyncio.wait_for(app.prompt(session.id, HI), LIMIT_S)

    assert texts(answered) == ["fine"]


async def test_the_status_is_idle_once_when_an_aborted_run_has_ended(tmp_path: Path) -> None:
    async def silent(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "half")
        await asyncio.sleep(LIMIT_S)

    async with opened(tmp_path, Played(silent)) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        running = asyncio.create_task(app.prompt(session.id, HI))
        await until_turns(app, session.id, 2)
        await app.abort(session.id)
        events = await asyncio.wait_for(listening, LIMIT_S)
        stopped = await running

    assert texts(stopped) == ["half"]
    assert sum(isinstance(event.properties, SessionIdle) for event in events) == 1


async def test_a_prompt_that_plugins_still_look_at_is_work_and_can_be_aborted(
    tmp_path: Path,
) -> None:
    looking = asyncio.Event()

    class Looks:
        @hookimpl
        async def chat_message(self) -> None:
            looking.set()
            await asyncio.sleep(LIMIT_S)

    provider = Played(text("never"))
    async with opened(tmp_path, provider, Looks()) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(looking.wait(), LIMIT_S)
        assert isinstance(app.session_status(session.id), Busy)
        assert await app.abort(session.id)
        with pytest.raises(AbortedError):
            await prompt
        assert isinstance(app.session_status(session.id), Idle)

    assert provider.requests == []


async def test_a_prompt_that_comes_while_the_app_is_closed_waits_for_the_next_one(
    tmp_path: Path,
) -> None:
    refused: list[str] = []

    class Late:
        @hookimpl
        async def shutdown(self, app: App) -> None:
            try:
                await app.prompt(session.id, "late")
            except AbortedError as error:
                refused.append(str(error))

    provider = Played(text("never"))
    async with opened(tmp_path, provider, Late()) as app:
        session = await app.create_session()

    assert refused == [f"the program ends, and session {session.id} waits for the next"]
    assert provider.requests == []
    async with opened(tmp_path, provider) as app:
        [prompt] = await app.list_turns(session.id)
        assert texts(prompt) == ["late"]


async def test_an_answer_ends_and_its_session_is_free_however_often_it_is_aborted(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "half")
        begun.set()
        await asyncio.sleep(LIMIT_S)
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(answer, text("again"))) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        aborts = []
        while not first.done():
            aborts.append(asyncio.create_task(app.abort(session.id)))
            await asyncio.sleep(0)
        await asyncio.gather(*aborts)
        stopped = assistant(await first)
        [stored] = [
            turn.info for turn in await app.list_turns(session.id) if turn.info.id == stopped.id
        ]
        answered = await app.prompt(session.id, "go on")

    assert stored.time.completed is not None
    assert isinstance(stopped.error, AbortedFailure)
    assert texts(answered) == ["again"]
