"""Context managers of plugins around turns, requests to models and tool calls."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path

import pytest

from pegboard import Activity, ToolContext, hookimpl, tool
from pegboard.errors import ProviderError, ToolError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish
from pegboard_plugins import title
from support.models.played import (
    HI,
    USAGE,
    Played,
    ToolsPlugin,
    call,
    calls,
    opened,
    shout,
    text,
    tools_of,
)
from support.models.written import until

CURRENT: ContextVar[str] = ContextVar("current", default="")


class Watching:
    """Notes the activities in their order, each with the one that it is within."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str, str]] = []
        self.ended: list[Activity] = []

    @hookimpl
    async def around_call(self, activity: Activity) -> tuple[AbstractContextManager[object]]:
        return (self._noted(activity),)

    @contextmanager
    def _noted(self, activity: Activity) -> Iterator[None]:
        self.begun.append((activity.kind, activity.name, CURRENT.get()))
        token = CURRENT.set(f"{activity.kind} {activity.name}")
        try:
            yield
        finally:
            CURRENT.reset(token)
            self.ended.append(activity)


@tool
async def where() -> str:
    """Tell what is current."""
    return CURRENT.get()


@tool
def threaded() -> str:
    """Tell what is current in a thread."""
    return CURRENT.get()


@tool
async def delegate(context: ToolContext) -> str:
    """Have a subagent work."""
    result = await context.run_subagent("helper", "Help.", description="help")
    return result.text


@pytest.mark.fires("around_call")
async def test_what_is_current_reaches_tools_threads_and_subagents(tmp_path: Path) -> None:
    provider = Played(
        calls(
            call("where", "{}"),
            call("threaded", "{}", call_id="call_1"),
            call("delegate", "{}", call_id="call_2"),
        ),
        text("helped"),
        text("done"),
    )
    watching = Watching()

    async with opened(tmp_path, provider, ToolsPlugin(where, threaded, delegate), watching) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        outputs = [part.state.output for part in tools_of(await app.list_turns(session.id))]  # type: ignore[union-attr]  # all are complete

    assert outputs == ["tool where", "tool threaded", "helped"]
    assert sorted(watching.begun) == [
        ("model", "m", "turn build"),
        ("model", "m", "turn build"),
        ("model", "m", "turn helper"),
        ("tool", "delegate", "model m"),
        ("tool", "threaded", "model m"),
        ("tool", "where", "model m"),
        ("turn", "build", ""),
        ("turn", "helper", "tool delegate"),
    ]


async def test_an_activity_says_what_came_of_it(tmp_path: Path) -> None:
    provider = Played(calls(call("shout", '{"words": "a"}')), text("done"))
    watching = Watching()

    async with opened(tmp_path, provider, ToolsPlugin(shout), watching) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    tool_call, first, second, turn = watching.ended
    assert [each.session_id for each in watching.ended] == [session.id] * 4
    assert tool_call.outcome is not None
    assert getattr(tool_call.outcome, "output", None) == "A"
    assert getattr(tool_call.asked, "input", None) == {"words": "a"}
    assert isinstance(first.asked, ModelRequest)
    assert isinstance(second.outcome, StreamFinish)
    assert second.outcome.usage == USAGE
    assert 0 < second.chunks_ns[0] <= second.chunks_ns[-1] <= second.last_ns
    assert (turn.kind, turn.error, turn.outcome) == ("turn", None, None)


async def test_a_failure_is_the_activity_s_error(tmp_path: Path) -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise ToolError("no luck")

    async def refuse(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise ProviderError("gone", status=400)
        yield  # an answer is a generator

    provider = Played(calls(call("fail", "{}")), refuse)
    watching = Watching()

    async with opened(tmp_path, provider, ToolsPlugin(fail), watching) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    errors = {each.kind: each.error for each in watching.ended if each.error}
    assert str(errors["tool"]) == "no luck"
    assert str(errors["model"]) == "gone"


async def test_an_abort_ends_all_activities(tmp_path: Path) -> None:
    started = asyncio.Event()

    @tool
    async def sleep() -> str:
        """Sleep."""
        started.set()
        await asyncio.Event().wait()
        return ""

    watching = Watching()
    async with opened(
        tmp_path, Played(calls(call("sleep", "{}"))), ToolsPlugin(sleep), watching
    ) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await started.wait()
        await app.abort(session.id)
        await asyncio.gather(prompt, return_exceptions=True)

    assert [each.kind for each in watching.ended] == ["tool", "model", "turn"]
    assert all(isinstance(each.error, asyncio.CancelledError) for each in watching.ended)


async def test_a_context_manager_that_fails_is_reported_and_changes_nothing(
    tmp_path: Path,
) -> None:
    class Failing:
        """Fails at the beginning of models and at the end of tools."""

        @hookimpl
        async def around_call(self, activity: Activity) -> tuple[AbstractContextManager[object]]:
            return (self._around(activity),)

        @contextmanager
        def _around(self, activity: Activity) -> Iterator[None]:
            if activity.kind == "model":
                raise ValueError("at the beginning")
            yield
            if activity.kind == "tool":
                raise ValueError("at the end")

    provider = Played(calls(call("shout", '{"words": "a"}')), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(shout), Failing()) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        told = {failure.message for failure in app.failures}

    assert turn.parts[-2].text == "done"  # type: ignore[union-attr]  # it is one of text
    assert told == {
        f"plugin Failing: around a call: ValueError: at the {place}"
        for place in ("beginning", "end")
    }


async def test_a_question_beside_the_conversation_is_an_activity(tmp_path: Path) -> None:
    watching = Watching()
    config = {"model": "played/m", "title": "model"}

    async with opened(
        tmp_path, Played(text("done"), text("A title")), title, watching, config=config
    ) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await until(lambda: len(_models(watching)) == 2)

    assert {each.session_id for each in _models(watching)} == {session.id}


def _models(watching: Watching) -> list[Activity]:
    return [each for each in watching.ended if each.kind == "model"]
