"""Questions beside a conversation: what they cost is the session's, and nothing else changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from pegboard import App
from pegboard.contract.host import ModelQuestion
from pegboard.errors import BudgetError, ProviderError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, Usage
from pegboard.schema.config import Agent
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.session import Estimate
from support.models.played import Played, opened, text

AGENT = Agent(name="aside", mode="primary", permission=(), options={}, prompt="Be brief.")
MODEL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    cost=ModelCost(input=1000, output=0, cache=CacheCost()),
)
LIMITED = {"model": "played/m", "budget": {"usd": 0.0001}}
QUESTION = ModelQuestion(agent=AGENT, text="How many?")


async def asked(app: App, question: ModelQuestion = QUESTION) -> tuple[str, str]:
    session = await app.create_session()
    return session.id, await app.ask_model(session.id, question)


async def test_the_answer_is_paid_by_the_session_and_is_no_part_of_it(tmp_path: Path) -> None:
    provider = Played(text("seven", usage=Usage(input=1)), model=MODEL)
    async with opened(tmp_path, provider) as app:
        session, said = await asked(app)
        stored, turns = await app.session(session), await app.list_turns(session)

    [request] = provider.requests
    assert (said, stored.cost, turns) == ("seven", pytest.approx(0.001), ())
    assert (request.system, request.tools) == (("Be brief.",), ())


@pytest.mark.parametrize("ends", [True, False])
async def test_an_answer_without_reported_usage_is_estimated(tmp_path: Path, *, ends: bool) -> None:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "seven and more")
        if not ends:
            raise ConnectionError
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(answer, model=MODEL)) as app:
        session = await app.create_session()
        with nullcontext() if ends else pytest.raises(ProviderError):
            await app.ask_model(session.id, QUESTION)
        stored = await app.session(session.id)

    assert (stored.cost or 0.0, stored.known_cost) == (0.0, None)
    assert stored.estimate == Estimate(requests=1, cost=0.006, tokens=10)


async def test_an_answer_that_was_heard_is_paid_though_the_caller_is_cancelled(
    tmp_path: Path,
) -> None:
    told = asyncio.Event()

    async def endless(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "seven")
        yield StreamFinish("stop", Usage(input=1))
        told.set()
        await asyncio.sleep(60)

    async with opened(tmp_path, Played(endless, model=MODEL)) as app:
        session = await app.create_session()
        asking = asyncio.create_task(app.ask_model(session.id, QUESTION))
        await asyncio.wait_for(told.wait(), 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        assert (await app.session(session.id)).cost == pytest.approx(0.001)


async def test_a_question_needs_room_in_the_session_s_budget(tmp_path: Path) -> None:
    provider = Played(text("seven"), model=MODEL)
    async with opened(tmp_path, provider, config=LIMITED) as app:
        with pytest.raises(BudgetError):
            await asked(app, ModelQuestion(agent=AGENT, text="How many?" * 1000))

    assert provider.requests == []
