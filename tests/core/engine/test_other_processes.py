"""What is sent to a session that another process runs is refused, or said to be kept."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pegboard import App, hookimpl
from pegboard.errors import SessionBusyError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta
from pegboard_plugins.shared.frontend import ShellOrder, run_shell
from support.models.compacting import Shortens
from support.models.played import HI, Played, opened, text, texts

LIMIT_S = 30
Act = Callable[[App, str], Awaitable[object]]


class Elsewhere:
    """A model that answers another process, once it may."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.may_end = asyncio.Event()

    async def answer(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.running.set()
        await self.may_end.wait()
        yield TextDelta("t", "done")
        yield StreamFinish("stop")


async def prompts(app: App, session_id: str) -> None:
    await app.prompt(session_id, "refused")


async def summarises(app: App, session_id: str) -> None:
    await app.summarize(session_id)


async def runs_a_command(app: App, session_id: str) -> None:
    await run_shell(app, session_id, ShellOrder(command="echo refused"))


@pytest.mark.parametrize("act", [prompts, summarises, runs_a_command])
async def test_what_is_refused_leaves_nothing_that_the_model_gets_to_see(
    tmp_path: Path, act: Act
) -> None:
    other = Elsewhere()
    async with opened(tmp_path, Played(other.answer)) as runner:
        session = await runner.create_session()
        first = asyncio.create_task(runner.prompt(session.id, HI))
        await asyncio.wait_for(other.running.wait(), LIMIT_S)
        async with opened(tmp_path, Played(text("mine")), Shortens()) as app:
            with pytest.raises(SessionBusyError) as refused:
                await act(app, session.id)
            other.may_end.set()
            await first
            answered = await app.prompt(session.id, HI)
            said = [texts(turn) for turn in await app.list_turns(session.id)]

    assert not refused.value.kept
    assert texts(answered) == ["mine"]
    assert said == [["hi"], ["done"], ["hi"], ["mine"]]


async def test_a_prompt_that_was_stored_before_another_process_began_is_said_to_be_kept(
    tmp_path: Path,
) -> None:
    other = Elsewhere()
    began: list[asyncio.Task[object]] = []
    async with opened(tmp_path, Played(other.answer)) as runner:
        session = await runner.create_session()

        class Late:
            @hookimpl
            async def chat_message(self) -> None:
                if not began:
                    began.append(asyncio.create_task(runner.prompt(session.id, HI)))
                    await asyncio.wait_for(other.running.wait(), LIMIT_S)

        async with opened(tmp_path, Played(text("mine")), Late()) as app:
            with pytest.raises(SessionBusyError, match="what you sent is kept") as refused:
                await prompts(app, session.id)
            other.may_end.set()
            await began[0]
            said = [texts(turn) for turn in await app.list_turns(session.id)]

    assert refused.value.kept
    assert ["refused"] in said
