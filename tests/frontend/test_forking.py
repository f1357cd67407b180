"""A fork is a copy of a conversation, with ids of its own and nothing that runs."""

import asyncio
from pathlib import Path

import pytest

from pegboard import tool
from pegboard.errors import NotFoundError
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import Failed, ToolPart
from pegboard_plugins import task
from pegboard_plugins.shared.frontend import forked
from pegboard_plugins.shared.frontend.copies import fork_title
from support.models.played import Played, ToolsPlugin, call, calls, opened
from support.sessions.conversing import converse, provider, said, shape

LIMIT_S = 30


def ids_of(turns: tuple[Turn, ...]) -> set[str]:
    parts = {part.id for turn in turns for part in turn.parts}
    return {turn.info.id for turn in turns} | parts


async def test_a_fork_is_the_same_conversation_with_ids_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        fork = await forked(app, session.id)
        before, after = await app.list_turns(session.id), await app.list_turns(fork.id)

    assert shape(before) == shape(after)
    assert ids_of(before).isdisjoint(ids_of(after))
    assert [turn.info.id for turn in after] == sorted(turn.info.id for turn in after)
    assert fork.title == "what is a comet (fork #1)"
    assert (fork.permission, fork.agent, fork.model) == (
        session.permission,
        session.agent,
        session.model,
    )
    assert (fork.cost, fork.revert, fork.parent_id) == (None, None, None)


async def test_a_fork_can_end_before_a_message_and_goes_its_own_way(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        turns = await app.list_turns(session.id)
        fork = await forked(app, session.id, turns[2].info.id)
        copied = await app.list_turns(fork.id)
        await app.prompt(fork.id, "and a star")

        assert said(copied) == ["what is a comet", "a ball of ice"]
        assert len(await app.list_turns(fork.id)) == 4
        assert len(await app.list_turns(session.id)) == len(turns)
        with pytest.raises(NotFoundError, match="msg_x"):
            await forked(app, session.id, "msg_x")


def test_forks_of_forks_are_counted() -> None:
    assert fork_title("a") == "a (fork #1)"
    assert fork_title("a (fork #9)") == "a (fork #10)"


async def test_nothing_runs_in_the_fork_of_a_running_session(tmp_path: Path) -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.sleep(60)
        return "never"

    async with opened(tmp_path, Played(calls(call("wait", "{}"))), ToolsPlugin(wait)) as app:
        session = await app.create_session()
        running = asyncio.create_task(app.prompt(session.id, "go"))
        await asyncio.wait_for(started.wait(), LIMIT_S)
        fork = await forked(app, session.id)
        copied = (await app.list_turns(fork.id))[-1]
        await app.abort(session.id)
        await running

    assert isinstance(copied.info, AssistantMessage)
    assert copied.info.time.completed is not None
    [part] = [part for part in copied.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
