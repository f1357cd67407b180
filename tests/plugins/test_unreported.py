"""Budgets where a provider reports no usage: requests count by their length."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import ToolContext, tool
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, Usage
from pegboard.schema.message import BudgetFailure
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost, ModelLimit
from pegboard.schema.session import Estimate
from support.models.played import HI, Played, ToolsPlugin, assistant, call, opened, text

MODEL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    cost=ModelCost(input=1000, output=1000, cache=CacheCost()),
    limit=ModelLimit(context=100_000, output=600),
)
"""One at a dollar for a thousand tokens."""


@pytest.mark.parametrize("usage", [None, Usage()])
@pytest.mark.parametrize("limits", [{"usd": 1.5}, {"tokens": 1_500}])
async def test_requests_without_reported_usage_count_over_the_runs_of_a_session(
    tmp_path: Path, limits: dict[str, float], usage: Usage | None
) -> None:
    provider = Played(text("x" * 1_800, usage=usage), model=MODEL)
    config = {"model": "played/m", "budget": limits}
    async with opened(tmp_path, provider, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
    async with opened(tmp_path, provider, config=config) as app:
        await app.prompt(session.id, HI)
        refused = assistant(await app.prompt(session.id, HI)).error
        stored = await app.session(session.id)

    assert isinstance(refused, BudgetFailure)
    assert "for this session" in refused.data.message
    assert len(provider.requests) == 2
    assert (stored.cost or 0.0, stored.known_cost) == (0.0, None)
    assert stored.estimate == Estimate(
        requests=2, cost=pytest.approx(1.8, abs=0.1), tokens=pytest.approx(1_800, abs=100)
    )


@tool
async def delegate(context: ToolContext, task: str) -> str:
    """Delegate."""
    return (await context.run_subagent("helper", f"do {task}", description=task)).text


async def test_a_subagent_s_request_without_reported_usage_counts_for_its_callers(
    tmp_path: Path,
) -> None:
    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "user" and "do " not in str(last.content):
            for event in call("delegate", '{"task": "it"}'):
                yield event
        else:
            yield TextDelta("t", "done")
        yield StreamFinish("stop")

    provider = Played(answer, model=MODEL)
    async with opened(tmp_path, provider, ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        stored = await app.session(session.id)

    assert len(provider.requests) == 3
    assert stored.estimate is not None
    assert stored.estimate.requests == 3
