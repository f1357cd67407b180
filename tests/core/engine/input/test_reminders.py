"""Reminders are stored with their prompt, so that every later request has the same bytes."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

from pegboard import Prompt, tool
from pegboard.engine.input.usermessage import MARK
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Text
from pegboard.schema.config import Agent, Config
from pegboard.schema.message import Turn
from pegboard.schema.part import TextPart
from pegboard.schema.session import Rule
from pegboard_plugins.agents import register_agents
from support.models.played import Played, PlayedPlugin, ToolsPlugin, call, opened, text

CAREFUL = Agent(
    name="careful",
    mode="primary",
    permission=(Rule("*", "*", "allow"),),
    options={},
    on_enter="Change nothing.",
    on_leave="You may change files again.",
)


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
    agents = PlayedPlugin(provider, agents=(CAREFUL,))
    async with opened(tmp_path, provider, agents) as app:
        session = await app.create_session()
        for agent in ("build", "careful", "careful", "build", "build"):
            await app.prompt(session.id, Prompt(agent, agent=agent))
        turns = await app.list_turns(session.id)

    assert [marks(turn) for turn in turns[::2]] == [[], ["careful"], [], ["build"], []]
    said = [part.text for turn in turns[::2] for part in turn.parts[1:]]
    tagged = '<system-reminder session="{}">\n{}\n</system-reminder>'
    assert said == [
        tagged.format(session.id, text) for text in (CAREFUL.on_enter, CAREFUL.on_leave)
    ]
    assert prefix_holds(provider.requests)


def test_the_built_in_agents_say_what_planning_is_and_that_it_is_over() -> None:
    [plan] = [agent for agent in asyncio.run(register_agents(Config())) if agent.name == "plan"]

    assert plan.on_enter == (
        "From here on you are planning: change nothing in the project until the user says so, "
        "whatever was said before."
    )
    assert plan.on_leave == (
        "Planning is over: from here on you may change files and run commands. If there is a "
        "plan, carry it out."
    )


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
        first = asyncio.create_task(app.prompt(session.id, "work"))
        await running.wait()
        second = asyncio.create_task(app.prompt(session.id, "faster"))
        while len(await app.list_turns(session.id)) < 3:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        await asyncio.gather(first, second)
        await app.prompt(session.id, "next")
        turns = await app.list_turns(session.id)

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
        await app.prompt(session.id, "one")
        await app.prompt(session.id, "two")
        turns = await app.list_turns(session.id)

    assert [marks(turn) for turn in turns] == [[]] * 4
