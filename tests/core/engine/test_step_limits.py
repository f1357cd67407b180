"""How many steps a run may take, and that people are told before they are over."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from pegboard import App, tool
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.config import BudgetConfig, Limits, RunLimits
from pegboard.schema.event import Event, SessionIdle, SessionWarned
from pegboard.schema.message import BudgetFailure, Turn
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


@tool
async def count(number: int) -> str:
    """Count.

    Args:
        number: how far.
    """
    return str(number)


class Counts:
    """An answer that always calls the tool, each time with another number."""

    def __init__(self) -> None:
        self.number = 0

    async def __call__(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.number += 1
        for event in calls(call("count", json.dumps({"number": self.number}))):
            yield event


def warnings(events: list[Event]) -> list[str]:
    return [e.properties.message for e in events if isinstance(e.properties, SessionWarned)]


async def prompted(app: App, session_id: str) -> tuple[Turn, list[Event]]:
    listening = asyncio.create_task(heard(app, lambda e: isinstance(e.properties, SessionIdle)))
    await asyncio.sleep(0)
    turn = await app.prompt(session_id, HI)
    return turn, await listening


async def test_a_run_has_a_limit_on_its_steps_whatever_else_is_set() -> None:
    said = msgspec.convert({"run": {"usd": 5}}, BudgetConfig)

    assert said.run == RunLimits(usd=5, steps=1_000)
    assert said.steps is None
    assert said.subagent == Limits()


async def test_a_limit_on_steps_alone_makes_no_request_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_plugins.budget.Need.of", lambda *_: 1 / 0)
    async with opened(tmp_path, Played(text("hello"))) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["hello"]


async def test_people_are_told_once_before_the_steps_are_over_and_then_how_to_get_more(
    tmp_path: Path,
) -> None:
    config = {"model": "played/m", "budget": {"run": {"steps": 10}}}
    provider = Played(Counts())
    async with opened(tmp_path, provider, ToolsPlugin(count), config=config) as app:
        session = await app.create_session()
        turn, events = await prompted(app, session.id)
        again, _ = await prompted(app, session.id)

    limit = "`budget.run.steps` in the configuration, or `--max-steps`, is the limit"
    assert warnings(events) == [f"8 of 10 steps for this run are taken; {limit}"]
    assert len(provider.requests) == 20, "the next run has its own"
    for each in (turn, again):
        error = assistant(each).error
        assert isinstance(error, BudgetFailure)
        assert (
            error.data.message == f"the budget allows no more steps than 10 for this run; {limit}"
        )
