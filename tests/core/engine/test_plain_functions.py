"""Tools that are plain functions: their thread uses the context, and waits for what it does."""

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from pegboard import ToolContext, tool
from pegboard.errors import AbortedError
from pegboard.schema.event import PartUpdated
from pegboard.schema.part import Completed, Failed, Running, ToolPart
from pegboard.schema.session import Todo
from support.models.played import (
    HI,
    Played,
    ToolsPlugin,
    call,
    calls,
    heard,
    opened,
    text,
    tools_of,
)


@dataclass
class Point:
    x: int
    y: int


class PointStruct(msgspec.Struct):
    x: int
    y: int


class PointModel(BaseModel):
    x: int
    y: int


async def state_of(tmp_path: Path, *tools: Any, arguments: str = "{}") -> Any:
    """How a call of the first tool ended."""
    played = Played(calls(call(tools[0].id, arguments)), text("done"))
    async with opened(tmp_path, played, ToolsPlugin(*tools)) as app:
        session = await app.create_session()
        await app.prompt(session, HI)
        [part] = tools_of(await app.list_turns(session.id))
    return part.state


async def test_a_plain_function_waits_for_what_the_context_does(tmp_path: Path) -> None:
    threads = []

    @tool
    def work(context: ToolContext) -> dict[str, object]:
        """Work in a thread."""
        threads.append(threading.current_thread())
        context.progress(title="half", metadata={"done": 1})
        ended = context.wait(context.run(["echo", "hi"]))
        context.wait(context.set_todos([Todo(content="look", status="pending")]))
        file = context.wait(context.require_path(context.directory / "a.txt"))
        context.wait(context.files.replace(file, b"written"))
        todos = context.wait(context.todos())
        return {"output": ended.output.strip(), "todos": [each.content for each in todos]}

    state = await state_of(tmp_path, work)

    assert isinstance(state, Completed), state
    assert msgspec.json.decode(state.output) == {"output": "hi", "todos": ["look"]}
    assert (tmp_path / "project" / "a.txt").read_text() == "written"
    assert threads != [threading.main_thread()]


async def test_the_progress_of_a_thread_is_published_by_the_loop(tmp_path: Path) -> None:
    seen = threading.Event()

    @tool
    def work(context: ToolContext) -> str:
        """Work in a thread."""
        context.progress(title="half way")
        assert seen.wait(60)
        return "done"

    def is_shown(event: Any) -> bool:
        match event.properties:
            case PartUpdated(part=ToolPart(state=Running(title="half way"))):
                seen.set()
                return True
        return False

    played = Played(calls(call("work", "{}")), text("done"))
    async with opened(tmp_path, played, ToolsPlugin(work)) as app:
        session = await app.create_session()
        listening = asyncio.create_task(heard(app, is_shown))
        await asyncio.sleep(0)
        await app.prompt(session, HI)

        assert await asyncio.wait_for(listening, 20)


async def test_an_async_function_is_told_to_await(tmp_path: Path) -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Wait where it must not."""
        context.wait(context.todos())
        return "never"

    state = await state_of(tmp_path, work)

    assert isinstance(state, Failed)
    assert "wait() is for plain functions in a thread" in state.error


async def test_an_abort_ends_the_wait_of_a_thread(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    @tool
    def work(context: ToolContext) -> str:
        """Wait for long."""
        begun.set()
        try:
            context.wait(context.run(["sleep", "600"], timeout_s=900))
        except AbortedError as error:
            failures.append(error)
        try:
            context.wait(context.todos())
        except AbortedError as error:
            failures.append(error)
        ended.set()
        return "never"

    played = Played(calls(call("work", "{}")), text("done"))
    async with opened(tmp_path, played, ToolsPlugin(work)) as app:
        session = await app.create_session()
        prompting = asyncio.create_task(app.prompt(session, HI))
        assert await asyncio.to_thread(begun.wait, 20)
        await app.abort(session.id)
        assert await asyncio.to_thread(ended.wait, 20)
        await prompting

    assert [str(each) for each in failures] == ["the call was stopped"] * 2


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (["a", 1.5], '["a",1.5]'),
        ((1, 2), "[1,2]"),
        (Point(1, 2), '{"x":1,"y":2}'),
        (PointStruct(1, 2), '{"x":1,"y":2}'),
        (PointModel(x=1, y=2), '{"x":1,"y":2}'),
        ([PointModel(x=1, y=2), Point(3, 4)], '[{"x":1,"y":2},{"x":3,"y":4}]'),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_value_becomes_json(
    tmp_path: Path, value: object, output: str, is_async: bool
) -> None:
    @tool(id="work")
    async def awaited() -> object:
        """Give a value."""
        return value

    @tool(id="work")
    def plain() -> object:
        """Give a value."""
        return value

    state = await state_of(tmp_path, awaited if is_async else plain)

    assert isinstance(state, Completed), state
    assert state.output == output


@pytest.mark.parametrize("value", [None, 3, b"x", {"a": object()}, object(), Point])
async def test_a_value_that_json_does_not_have_fails_the_call(
    tmp_path: Path, value: object
) -> None:
    @tool
    def work() -> object:
        """Give a value."""
        return value

    state = await state_of(tmp_path, work)

    assert isinstance(state, Failed)
    assert "return str, ToolResult, or a value that JSON has" in state.error
