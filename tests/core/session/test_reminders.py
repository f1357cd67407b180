"""Reminders are stored with their prompt, so that every later request has the same bytes."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

from pegboard import tool
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Text
from pegboard.schema.agent import Agent
from pegboard.schema.message import Turn
from pegboard.schema.part import TextPart
from pegboard.schema.permission import Rule
from pegboard.schema.prompt import TextInput
from pegboard.session.reminders import MARK
from played import Played, PlayedPlugin, ToolsPlugin, call, opened, text

PLAN = Agent(name="plan", mode="primary", permission=(Rule("*", "*", "allow"),), options={})


@tool
async def look() -> str:
    """Look."""
    return "seen"


def marks(turn: Turn) -> list[str]:
    return [
        part.metadata[MARK]
        for part in turn.parts
        if isinstance(part, TextPart) and part.metadata and MARK in part.metadata
    ]


def prefix_holds(requests: list[ModelRequest]) -> bool:
    return all(
        later.messages[: len(earlier.messages)] == earlier.messages
        for earlier, later in pairwise(requests)
    )


async def test_a_change_of_mode_is_said_once_and_stays(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    plan = PlayedPlugin(provider, agents=(PLAN,))
    async with opened(tmp_path, provider, plan) as app:
        session = await app.create_session()
        for agent in ("build", "plan", "plan", "build", "build"):
            await app.prompt(session.id, (TextInput(text=agent),), agent=agent)
        turns = await app.turns(session.id)

    assert [marks(turn) for turn in turns[::2]] == [[], ["plan"], [], ["build"], []]
    assert prefix_holds(provider.requests)


async def test_a_prompt_that_came_during_the_work_is_marked_in_every_request(
    tmp_path: Path,
) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        running.set()
        await go.wait()
        for event in call("look", "{}"):
            yield event
        yield StreamFinish("tool-calls")

    again = [*call("look", "{}", call_id="c1"), StreamFinish("tool-calls")]
    provider = Played(slow, again, text("done"), text("later"))
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        session = await app.create_session()
        first = asyncio.create_task(app.prompt(session.id, (TextInput(text="work"),)))
        await running.wait()
        second = asyncio.create_task(app.prompt(session.id, (TextInput(text="faster"),)))
        while len(await app.turns(session.id)) < 3:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        await asyncio.gather(first, second)
        await app.prompt(session.id, (TextInput(text="next"),))
        turns = await app.turns(session.id)

    assert [marks(turn) for turn in turns if turn.info.id == turns[2].info.id] == [["queued"]]
    assert sum(len(marks(turn)) for turn in turns) == 1
    assert prefix_holds(provider.requests)
    content = provider.requests[1].messages[-1].content
    assert content[0] == Text(text="faster")
    assert "while you were working" in str(content[1])


async def test_a_prompt_behind_a_finished_answer_is_not_marked(tmp_path: Path) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, (TextInput(text="one"),))
        await app.prompt(session.id, (TextInput(text="two"),))
        turns = await app.turns(session.id)

    assert [marks(turn) for turn in turns] == [[]] * 4
