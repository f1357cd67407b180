"""Subagents: sessions of their own, below the caller's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App, ToolContext, tool
from pegboard.engine.run import MAX_WIDTH
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, Usage
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Rule
from support.models.played import Played, ToolsPlugin, call, calls, opened, text

HI = "hi"
MODEL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    cost=ModelCost(input=1000, output=0, cache=CacheCost()),
)


@tool
async def delegate(context: ToolContext, agent: str = "helper", limit_s: float = 30) -> str:
    """Delegate."""
    started: list[str] = []
    result = await context.run_subagent(
        agent, "do it", description="work", timeout_s=limit_s, on_start=started.append
    )
    assert started == [result.session_id]
    return f"{result.outcome}: {result.text}"


def by_session(child: AsyncIterator[StreamEvent] | None = None) -> Played:
    """The parent calls `delegate` and then says what it got; the child answers at once."""

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "tool":
            yield TextDelta("t", "parent done")
        elif "do it" in str(last.content):
            yield TextDelta("t", "child done")
        else:
            for event in calls(call("delegate", "{}"))[:-1]:
                yield event
            yield StreamFinish("tool-calls", Usage(input=1))
            return
        yield StreamFinish("stop", Usage(input=1))

    return Played(answer, model=MODEL)


async def test_a_subagent_answers_in_a_child_session_and_its_cost_counts(tmp_path: Path) -> None:
    async with opened(tmp_path, by_session(), ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)
        [child] = await app.storage.children(session.id)
        stored = await app.session(session.id)
        listed = await app.sessions()

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Completed)
    assert part.state.output == "done: child done"
    assert child.title == "work (@helper subagent)"
    assert child.cost == pytest.approx(0.001)
    assert stored.cost == pytest.approx(0.003)
    assert [one.id for one in listed] == [session.id]


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize("often", [False, True], ids=["once", "often"])
async def test_what_a_stopped_subagent_has_spent_counts_in_its_parent(
    tmp_path: Path, *, often: bool
) -> None:
    reached = asyncio.Event()

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "tool":  # the subagent's second request
            reached.set()
            await asyncio.sleep(60)
        name = "nothing" if "do it" in str(last.content) else "delegate"
        for event in calls(call(name, "{}"))[:-1]:
            yield event
        yield StreamFinish("tool-calls", Usage(input=1))

    @tool
    async def nothing() -> str:
        """Do nothing."""
        return ""

    async with opened(tmp_path, Played(answer, model=MODEL), ToolsPlugin(delegate, nothing)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(reached.wait(), 30)
        aborts = [asyncio.create_task(app.abort(session.id))]
        while often and not prompt.done():
            aborts.append(asyncio.create_task(app.abort(session.id)))
            await asyncio.sleep(0)
        await asyncio.gather(*aborts)
        await prompt
        [child] = await app.storage.children(session.id)
        stored = await app.session(session.id)

    assert child.cost == pytest.approx(0.001)
    assert stored.cost == pytest.approx(0.002)


async def test_a_subagent_at_its_time_limit_is_stopped_and_said_to_be(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "tool":
            yield TextDelta("t", "ok")
            yield StreamFinish("stop")
        elif "do it" in str(last.content):
            await asyncio.sleep(60)
        else:
            for event in calls(call("delegate", '{"limit_s": 0.2}')):
                yield event

    async with opened(tmp_path, Played(answer), ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)
        [child] = await app.storage.children(session.id)
        assert not await app.abort(child.id)

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Completed)
    assert part.state.output.startswith("timed_out")


async def test_an_abort_of_the_parent_ends_the_child(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if "do it" in str(request.messages[-1].content):
            reached.set()
            await asyncio.sleep(60)
        for event in calls(call("delegate", "{}")):
            yield event

    async with opened(tmp_path, Played(answer), ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await reached.wait()
        await app.abort(session.id)
        await prompt
        [child] = await app.storage.children(session.id)
        assert not await app.abort(child.id), "the child has ended with its parent"
        [_, answered] = await app.list_turns(child.id)

    assert "MessageAbortedError" in str(answered.info.error.__struct_config__.tag)


async def test_an_unknown_subagent_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    provider = Played(calls(call("delegate", '{"agent": "hlper"}')), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Failed)
    assert "there is no subagent 'hlper'; there are: helper" in part.state.error


async def test_what_the_parent_may_not_do_the_child_may_not_either(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    @tool
    async def look(context: ToolContext) -> str:
        """Look."""
        seen.append(tuple(ruleset.source for ruleset in context.session.rulesets))
        denied = [
            rule
            for ruleset in context.session.rulesets
            for rule in ruleset.rules
            if rule.action == "deny"
        ]
        return str(denied)

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "tool":
            yield TextDelta("t", "ok")
            yield StreamFinish("stop")
        elif "do it" in str(last.content):
            for event in calls(call("look", "{}")):
                yield event
        else:
            for event in calls(call("delegate", "{}")):
                yield event

    async with opened(tmp_path, Played(answer), ToolsPlugin(delegate, look)) as app:
        session = await app.create_session(permission=(Rule("bash", "rm *", "deny"),))
        await app.prompt(session.id, HI)
        [child] = await app.storage.children(session.id)
        turns = await app.list_turns(child.id)

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, Completed)
    assert "rm *" in part.state.output
    assert "parent" in seen[0]


async def test_subagents_are_nested_only_so_deep(tmp_path: Path) -> None:
    provider = Played(calls(call("delegate", "{}")), calls(call("delegate", "{}")))

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role == "tool":
            yield TextDelta("t", str(last.content))
            yield StreamFinish("stop")
        else:
            for event in calls(call("delegate", "{}")):
                yield event

    provider = Played(answer)
    async with opened(tmp_path, provider, ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert "nested 4 deep at the most" in str(turn.parts)
    assert len(provider.requests) == 10


async def below(app: App, session_id: str) -> int:
    """How many sessions of subagents are below one."""
    children = await app.storage.children(session_id)
    return len(children) + sum([await below(app, child.id) for child in children])


async def test_subagents_begin_only_so_many_others_in_all_and_are_told(tmp_path: Path) -> None:
    told: list[str] = []

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        last = request.messages[-1]
        if last.role != "tool":
            wanted = [call("delegate", "{}", call_id=f"c{n}") for n in range(10)]
        elif refused := [text for text in map(str, last.content) if "no more subagents" in text]:
            told.extend(refused)
            wanted = []
        else:
            wanted = [call("delegate", "{}", call_id=f"d{len(request.messages)}")]
        for event in calls(*wanted) if wanted else text("done"):
            yield event

    limits = {"model": "played/m", "budget": {"run": {"subagents": 12}}}
    async with opened(tmp_path, Played(answer), ToolsPlugin(delegate), config=limits) as app:
        first, second = await app.create_session(), await app.create_session()
        await app.prompt(first.id, HI)
        await app.prompt(second.id, HI)
        families = [await below(app, each.id) for each in (first, second)]

    assert families == [12, 12]
    assert "there were 12 for this prompt" in told[0]


async def test_of_many_subagents_eight_work_at_the_same_time(tmp_path: Path) -> None:
    working, most = 0, 0
    full = asyncio.Event()

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        nonlocal working, most
        if "do it" not in str(request.messages[-1].content):
            wanted = [
                call("delegate", f'{{"limit_s": {n}}}', call_id=f"c{n}") for n in range(60, 72)
            ]
            done = request.messages[-1].role == "tool"
            for event in text("done") if done else calls(*wanted):
                yield event
            return
        working += 1
        most = max(most, working)
        if working == MAX_WIDTH:
            full.set()
        await asyncio.wait_for(full.wait(), 30)
        await asyncio.sleep(0.05)  # room for one too many
        working -= 1
        for event in text("child done"):
            yield event

    async with opened(tmp_path, Played(answer), ToolsPlugin(delegate)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    outputs = [
        part.state.output
        for turn in turns
        for part in turn.parts
        if isinstance(part, ToolPart) and isinstance(part.state, Completed)
    ]
    assert outputs == ["done: child done"] * 12
    assert most == MAX_WIDTH == 8
