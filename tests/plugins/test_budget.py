"""Budgets: what may be spent, by whom, and how a turn ends at a limit."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard import ToolContext, tool
from pegboard.errors import BudgetError
from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    Usage,
)
from pegboard.schema.config import Limits
from pegboard.schema.event import SessionFailed, SessionIdle
from pegboard.schema.message import AssistantMessage, BudgetFailure, Turn
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost, ModelLimit
from pegboard.schema.part import Completed, Failed, TextPart, ToolPart
from pegboard_plugins.budget import Account, Accounts, Hold, Shared
from support.models.played import Played, ToolsPlugin, call, calls, heard, opened, text

HI = "hi"
DOLLAR_A_THOUSAND = ModelCost(input=1000, output=1000, cache=CacheCost())
"""A dollar for a thousand tokens, so that figures are short."""


def model(*, output: int = 1000) -> Model:
    return Model(
        id="m",
        provider_id="played",
        name="M",
        api=ModelApi(id="m"),
        cost=DOLLAR_A_THOUSAND,
        limit=ModelLimit(context=100_000, output=output),
    )


def request(*, chars: int = 300, output: int = 1000) -> ModelRequest:
    message = ModelMessage(role="user", content=(Text(text="x" * chars),))
    return ModelRequest(model=model(), system=(), messages=(message,), max_output_tokens=output)


def budget(**limits: float) -> Accounts:
    return Accounts(accounts=(Account(purpose="this run", limits=Limits(**limits)),))


def config(**limits: object) -> dict[str, object]:
    return {"model": "played/m", "retry": {"attempts": 1}, "budget": limits}


def failure(turn: Turn) -> str:
    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(turn.info.error, BudgetFailure)
    return turn.info.error.data.message


async def answered(
    spends: Accounts, hold: Hold, *events: StreamEvent, fails: Exception | None = None
) -> None:
    async def stream() -> AsyncIterator[StreamEvent]:
        for event in events:
            yield event
        if fails is not None:
            raise fails

    async for _ in spends.metered(stream(), hold):
        pass


async def test_what_is_held_is_counted_until_the_answer_ends_and_then_what_it_cost() -> None:
    spends = budget(usd=5)
    [account] = spends.accounts

    hold = await spends.hold(request())
    held = account.held_usd
    await answered(spends, hold, StreamFinish("stop", Usage(input=90, output=10)))

    assert held == pytest.approx(1.1)
    assert (account.held_usd, account.held_tokens) == (0, 0)
    assert account.usd == pytest.approx(0.1)
    assert account.tokens == 100


async def test_a_request_that_has_no_room_is_refused_with_the_figures() -> None:
    spends = budget(usd=0.3)

    with pytest.raises(
        BudgetError, match=r"no more than \$0.3000 for this run: \$0.0000 are spent"
    ):
        await spends.hold(request())


async def test_a_budget_in_dollars_refuses_a_model_whose_price_is_not_known() -> None:
    unpriced = replace(request(), model=replace(model(), cost=None))

    with pytest.raises(BudgetError, match=r"price of played/m is not known.*budget\.unpriced"):
        await budget(usd=5).hold(unpriced)
    await budget(tokens=5_000).hold(unpriced)
    await Accounts(budget(usd=5).accounts, Shared(unpriced=True)).hold(unpriced)


async def test_a_budget_in_dollars_refuses_an_unpriced_model_before_the_first_request(
    tmp_path: Path,
) -> None:
    played = Played(text("done"))
    async with opened(tmp_path, played, config=config(usd=1)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert "played/m is not known" in failure(turn)
    assert played.requests == []


async def test_the_last_request_before_a_limit_gets_a_shorter_answer() -> None:
    hold = await budget(usd=0.6).hold(request())
    by_tokens = await budget(tokens=500).hold(request())

    assert hold.request.max_output_tokens == 500
    assert by_tokens.request.max_output_tokens == 400


async def test_a_request_waits_while_others_hold_what_would_be_enough() -> None:
    spends = budget(usd=1.5)
    first = await spends.hold(request())

    waiting = asyncio.create_task(spends.hold(request()))
    await asyncio.sleep(0.01)
    waited = not waiting.done()
    await answered(spends, first, StreamFinish("stop", Usage(input=10)))
    second = await waiting

    assert waited
    assert second.request.max_output_tokens == 1000


async def test_a_request_that_waited_in_vain_is_refused() -> None:
    spends = budget(usd=1.3)
    first = await spends.hold(request())

    waiting = asyncio.create_task(spends.hold(request()))
    await asyncio.sleep(0.01)
    await answered(spends, first, StreamFinish("stop", Usage(input=100, output=1000)))

    with pytest.raises(BudgetError):
        await waiting


@pytest.mark.parametrize("seed", range(5))
async def test_requests_at_the_same_time_never_spend_more_than_there_is(seed: int) -> None:
    spends = budget(usd=10, tokens=9_000)
    [account] = spends.accounts
    refused = 0

    async def spend(number: int) -> None:
        nonlocal refused
        try:
            hold = await spends.hold(request())
        except BudgetError:
            refused += 1
            return
        await asyncio.sleep((number * 7 + seed) % 5 / 1000)
        limit = hold.request.max_output_tokens or 0
        used = Usage(input=100, output=limit if number % 3 else 10)
        await answered(spends, hold, StreamFinish("stop", used))

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(spend(number))

    assert refused > 0
    assert account.usd <= 10
    assert account.tokens <= 9_000
    assert account.held_usd == account.held_tokens == account.holds == 0


async def test_an_answer_without_usage_counts_by_its_length() -> None:
    spends = budget(tokens=10_000)
    [account] = spends.accounts

    hold = await spends.hold(request())
    await answered(spends, hold, TextDelta("t", "x" * 300), StreamFinish("stop"))
    broken = await spends.hold(request())
    with pytest.raises(ConnectionError):
        await answered(spends, broken, TextDelta("t", "x" * 30), fails=ConnectionError())
    unsaid = await spends.hold(request())
    with pytest.raises(ConnectionError):
        await answered(spends, unsaid, fails=ConnectionError())

    assert account.tokens == 200 + 110
    assert account.held_tokens == 0


@pytest.mark.parametrize("scope", ["session", "run"])
async def test_steps_are_limited_and_the_stop_is_an_outcome_of_the_message(
    tmp_path: Path, scope: str
) -> None:
    @tool
    async def ping(number: int) -> str:
        """Ping."""
        return str(number)

    steps = [calls(call("ping", f'{{"number": {n}}}', call_id=f"c{n}")) for n in range(9)]
    limits = {"steps": 3} if scope == "session" else {"run": {"steps": 3}}
    provider = Played(*steps)
    async with opened(tmp_path, provider, ToolsPlugin(ping), config=config(**limits)) as app:
        session = await app.create_session()
        listening = asyncio.create_task(heard(app, lambda e: isinstance(e.properties, SessionIdle)))
        await asyncio.sleep(0)
        turn = await app.prompt(session.id, HI)
        events = await listening
        again = await app.prompt(session.id, HI)

    own = "`budget.run.steps` in the configuration, or `--max-steps`,"
    limit = own if scope == "run" else "`budget.steps` in the configuration"
    assert failure(turn) == (
        f"the budget allows no more steps than 3 for this {scope}; {limit} is the limit"
    )
    assert [e for e in events if isinstance(e.properties, SessionFailed)]
    assert failure(again)
    assert len(provider.requests) == (3 if scope == "session" else 6)


async def test_the_counts_of_a_session_outlive_its_app(tmp_path: Path) -> None:
    limits = config(steps=2, tool_calls=9, minutes=5)
    async with opened(tmp_path, Played(text("one")), config=limits) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
    provider = Played(text("two"))
    async with opened(tmp_path, provider, config=limits) as app:
        await app.prompt(session.id, HI)
        third = await app.prompt(session.id, HI)

    assert len(provider.requests) == 1
    assert "steps than 2" in failure(third)


async def test_tool_calls_are_limited_and_the_one_too_many_does_not_run(tmp_path: Path) -> None:
    ran: list[int] = []

    @tool
    async def ping(number: int) -> str:
        """Ping."""
        ran.append(number)
        return "pong"

    asked = [call("ping", f'{{"number": {n}}}', call_id=f"c{n}") for n in range(3)]
    provider = Played(calls(*asked), text("done"))
    async with opened(
        tmp_path, provider, ToolsPlugin(ping), config=config(run={"tool_calls": 2})
    ) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        parts = [
            part
            for each in await app.list_turns(session.id)
            for part in each.parts
            if isinstance(part, ToolPart)
        ]

    assert len(ran) == 2
    assert [type(part.state) for part in parts] == [Completed, Completed, Failed]
    assert "tool calls than 2 for this run" in failure(turn)
    assert len(provider.requests) == 1


async def test_as_many_calls_as_are_allowed_do_not_end_the_turn(tmp_path: Path) -> None:
    @tool
    async def ping() -> str:
        """Ping."""
        return "pong"

    provider = Played(calls(call("ping", "{}")), text("done"))
    async with opened(
        tmp_path, provider, ToolsPlugin(ping), config=config(run={"tool_calls": 1})
    ) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert [part.text for part in turn.parts if isinstance(part, TextPart)] == ["done"]


async def test_when_the_minutes_are_over_the_step_ends_and_its_tool_with_it(
    tmp_path: Path,
) -> None:
    ended: list[str] = []

    @tool
    async def sleep() -> str:
        """Sleep."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("stopped")
        return "late"

    provider = Played(calls(call("sleep", "{}")), text("done"))
    limits = config(run={"minutes": 0.005})
    async with opened(tmp_path, provider, ToolsPlugin(sleep), config=limits) as app:
        session = await app.create_session()
        async with asyncio.timeout(30):
            turn = await app.prompt(session.id, HI)

    assert failure(turn) == "the budget allows no more minutes than 0.005 for this run"
    assert ended == ["stopped"]
    [part] = [part for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)


async def test_money_is_limited_over_the_prompts_of_a_session(tmp_path: Path) -> None:
    provider = Played(text("hi", usage=Usage(input=1000)), model=model(output=300))
    async with opened(tmp_path, provider, config=config(usd=1.5)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.prompt(session.id, HI)
        third = await app.prompt(session.id, HI)
        stored = await app.session(session.id)

    assert turn.info.id != third.info.id
    assert "$1.5000 for this session: $2.0000 are spent" in failure(third)
    assert stored.cost == pytest.approx(2)
    assert len(provider.requests) == 2


@tool
async def delegate(context: ToolContext, task: str) -> str:
    """Delegate."""
    result = await context.run_subagent("helper", f"do {task}", description=task)
    return f"{result.outcome}: {result.text}"


def family(children: int, *, spends: int) -> Played:
    """The parent has so many subagents work at once; each answer reads `spends` tokens."""

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "user" and "do " not in str(last.content):
            for number in range(children):
                for event in call("delegate", f'{{"task": "t{number}"}}', call_id=f"c{number}"):
                    yield event
            yield StreamFinish("tool-calls", Usage())
            return
        await asyncio.sleep(0.01)
        yield TextDelta("t", "done")
        yield StreamFinish("stop", Usage(output=min(spends, request.max_output_tokens or spends)))

    return Played(answer, model=model())


async def test_subagents_at_the_same_time_cannot_overshoot_and_their_cost_counts(
    tmp_path: Path,
) -> None:
    provider = family(8, spends=1000)
    limits = config(run={"usd": 3.5})
    async with opened(tmp_path, provider, ToolsPlugin(delegate), config=limits) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        stored = await app.session(session.id)
        children = await app.storage.children(session.id)
        ends = [(await app.list_turns(child.id))[-1] for child in children]

    refused = [end for end in ends if isinstance(end.info, AssistantMessage) and end.info.error]
    assert 2.5 <= (stored.cost or 0) <= 3.5
    assert len(children) == 8
    assert len(refused) >= 4
    assert "for this run" in failure(refused[0])
    assert failure(turn)


async def test_a_limit_for_a_subagent_ends_it_alone(tmp_path: Path) -> None:
    limits = config(subagent={"steps": 0})
    provider = family(1, spends=10)
    async with opened(tmp_path, provider, ToolsPlugin(delegate), config=limits) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is None
    [part] = [part for each in turns for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Completed)
    assert part.state.output == (
        "failed: the budget allows no more steps than 0 for this subagent;"
        " `budget.subagent.steps` in the configuration is the limit"
    )


async def test_without_limits_nothing_is_held_or_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi"))) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

        assert await app.storage.state(session.id, "pegboard.budget") is None
