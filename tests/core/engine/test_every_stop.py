"""A turn that is stopped at any of its steps, once or at every later one as well.

What a provider was paid for is then in the session's cost, a subagent's in its caller's too, every
message has its end, and nobody works.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard import App, Prompt, ToolContext, hookimpl, tool
from pegboard.contract.host import Compaction, CompactionRequest, ModelQuestion
from pegboard.errors import PegboardError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from pegboard.schema.config import Agent
from pegboard.schema.message import AssistantMessage
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost
from pegboard.schema.session import Session
from pegboard_plugins import title
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened
from support.storage.slow_storage import slow_seed

MODEL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    cost=ModelCost(input=1_000_000, output=0, cache=CacheCost()),
)
"""A token costs a dollar."""
MOST_STEPS = 400
"""A turn of this file has some dozens."""
QUESTION = ModelQuestion(
    agent=Agent(name="aside", mode="primary", permission=(), options={}, prompt="Be brief."),
    text="How many?",
)


@dataclass(slots=True)
class Stops:
    """Calls `stop` before a step of the App's tasks, or before each from it on."""

    again: bool = False
    at: int = -1
    seen: int = 0
    stop: Callable[[], object] = field(default=lambda: None)
    made: list["asyncio.Task[Any]"] = field(default_factory=list)

    def begin(self, stop: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Stop in a task of its own."""
        self.made.append(asyncio.create_task(stop()))

    def factory(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **given: Any
    ) -> "asyncio.Task[Any]":
        """A task, as a loop's factory makes them, that counts if it does not stop the others."""
        is_stop = getattr(work, "__qualname__", "") in ("App.abort", "App.aclose")
        return asyncio.Task(work if is_stop else _Counted(work, self), loop=loop, **given)

    def step(self) -> None:
        """A run goes on."""
        if self.seen == self.at or (self.again and self.at >= 0 and self.seen > self.at):
            self.stop()
        self.seen += 1


class _Counted(Coroutine[Any, Any, Any]):
    def __init__(self, work: Coroutine[Any, Any, Any], stops: Stops) -> None:
        self._work = work
        self._stops = stops

    def send(self, value: Any) -> Any:
        self._stops.step()
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        self._stops.step()
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()


@tool
async def delegate(context: ToolContext) -> str:
    """Delegate."""
    result = await context.run_subagent("helper", "do it", description="work")
    return f"{result.outcome}: {result.text}"


class Summaries:
    """A compactor, and a filter that takes its time."""

    @hookimpl
    async def register_compactors(self) -> list["Summaries"]:
        return [self]

    @hookimpl
    async def text_complete(self) -> None:
        await asyncio.sleep(0)

    async def compact(self, request: CompactionRequest) -> Compaction:
        return Compaction(summary=await request.ask("Summarise."))


class Paying:
    """A provider that notes what it was paid: each request costs one dollar more."""

    def __init__(self) -> None:
        self.paid: dict[str, float] = {}
        self._asked = 0

    async def answer(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self._asked += 1
        price = self._asked
        last = request.messages[-1]
        calling = request.tools and last.role != "tool" and "do it" not in str(last.content)
        yield TextStart("t")
        yield TextDelta("t", "said")
        await asyncio.sleep(0)
        yield TextEnd("t")
        for event in calls(call("delegate", "{}"))[:-1] if calling else ():
            yield event
        yield StreamFinish("tool-calls" if calling else "stop", Usage(input=price))
        self.paid[request.session_id] = self.paid.get(request.session_id, 0.0) + price

    async def sum(self, app: App, session: Session) -> list[str]:
        """What is wrong with a session and its subagents' when nobody works any more."""
        children = await app.storage.children(session.id)
        family = [await app.session(session.id), *children]
        due = {each.id: self.paid.get(each.id, 0.0) for each in family}
        due[session.id] = sum(due.values())
        costs = {each.id: each.cost or 0.0 for each in family}
        tokens = {each.id: float(each.tokens.input if each.tokens else 0) for each in family}
        turns = [turn.info for each in family for turn in await app.list_turns(each.id)]
        answers = (each for each in turns if isinstance(each, AssistantMessage))
        return [
            *([] if costs == tokens == due else [f"due is {due}, cost {costs}, tokens {tokens}"]),
            *(f"{each.id} has no end" for each in answers if each.time.completed is None),
        ]


async def prompted(app: App) -> tuple[Session, Coroutine[Any, Any, object]]:
    """A session, and a turn of it with a subagent."""
    session = await app.create_session()
    return session, app.prompt(session.id, HI)


async def summarised(app: App) -> tuple[Session, Coroutine[Any, Any, object]]:
    """A session with a prompt, and its summary."""
    session = await app.create_session()
    await app.prompt(session.id, Prompt(HI, no_reply=True))
    return session, app.summarize(session.id)


async def asked(app: App) -> tuple[Session, Coroutine[Any, Any, object]]:
    """A session, and a question beside the conversation of its subagent."""
    [session] = await app.sessions() or [await app.create_session()]
    if not (children := await app.storage.children(session.id)):
        await app.prompt(session.id, HI)
        children = await app.storage.children(session.id)
    return session, app.ask_model(children[0].id, QUESTION)


async def ended(app: App, work: "asyncio.Task[object]", stops: Stops, at: int) -> None:
    """Return when the work is over, and what its stop at this step has begun; nobody works then."""
    stops.seen, stops.at = 0, at
    with suppress(PegboardError, asyncio.CancelledError):
        await work
    stops.at = -1
    await asyncio.gather(*stops.made, return_exceptions=True)
    stops.made.clear()
    async with asyncio.timeout(30):
        while app._runs._tasks:  # noqa: ASYNC110 - no event says that a subagent has ended
            await asyncio.sleep(0.001)


def steps(*, every: int = 1) -> range:
    """The steps at which a turn is stopped; few where the database is slow."""
    return range(0, MOST_STEPS, every if slow_seed() is None else 17)


ACTS = [(prompted, "abort"), (summarised, "abort"), (asked, "cancel")]


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize("again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize(("act", "way"), ACTS, ids=[act.__name__ for act, _ in ACTS])
async def test_what_was_paid_counts_wherever_a_turn_is_stopped(
    tmp_path: Path, act: Any, way: str, *, again: bool
) -> None:
    stops, paying, found = Stops(again=again), Paying(), list[str]()
    plugins = (ToolsPlugin(delegate), Summaries())
    async with opened(tmp_path, Played(paying.answer, model=MODEL), *plugins) as app:
        asyncio.get_running_loop().set_task_factory(stops.factory)
        for at in steps():
            session, coroutine = await act(app)
            work = asyncio.create_task(coroutine)
            abort = partial(app.abort, session.id)
            stops.stop = work.cancel if way == "cancel" else partial(stops.begin, abort)
            await ended(app, work, stops, at)
            found += [f"stopped at {at}: {each}" for each in await paying.sum(app, session)]
            if stops.seen <= at:
                break
        else:
            pytest.fail("the turn did not end by itself")

    assert found == []


@pytest.mark.usefixtures("each_store")
async def test_what_was_paid_counts_wherever_the_program_ends(tmp_path: Path) -> None:
    stops, paying, found = Stops(), Paying(), list[str]()
    plugins = (ToolsPlugin(delegate), Summaries(), title)
    options = {"config": {"model": "played/m", "title": "model"}}
    sessions: dict[int, Session] = {}
    asyncio.get_running_loop().set_task_factory(stops.factory)
    for at in steps(every=5):
        provider = Played(paying.answer, model=MODEL)
        async with opened(tmp_path, provider, *plugins, **options) as app:
            sessions[at], coroutine = await prompted(app)
            stops.stop = partial(stops.begin, app.aclose)
            await ended(app, asyncio.create_task(coroutine), stops, at)
        if stops.seen <= at:
            break
    else:
        pytest.fail("the turn did not end by itself")

    async with opened(tmp_path, Played(paying.answer, model=MODEL)) as app:
        for at, session in sessions.items():
            found += [f"ended at {at}: {each}" for each in await paying.sum(app, session)]
    assert found == []
