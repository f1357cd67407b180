"""No tool runs unasked, whatever its author has written as `requires`."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.engine.asking.test_requirements import ASK, Bodies, once, required
from pegboard import PermissionContext, ToolContext
from pegboard import tool as as_tool
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard_plugins import rules
from pegboard_plugins.batch import batch
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of

Requires = Callable[..., Any]


# Each of these forgets a request, hides its denial, fails, hangs, or is no `requires` at all.


async def is_not_awaited(context: Any) -> None:
    context.require("careful", ["x"])


async def is_answered(context: Any) -> object:
    return context.require("careful", ["x"])


async def is_left_to_a_task(context: PermissionContext) -> object:
    return [asyncio.ensure_future(as_coroutine(context.require("careful", ["x"])))]


async def as_coroutine(awaitable: Awaitable[None]) -> None:
    with suppress(PermissionDeniedError):
        await awaitable


async def catches_the_denial(context: PermissionContext) -> None:
    with suppress(PermissionDeniedError):
        await context.require("careful", ["x"])


async def catches_everything(context: PermissionContext) -> None:
    try:
        await context.require("careful", ["x"])
    except BaseException:  # noqa: BLE001 - as an author might
        return


async def gathers_the_errors(context: PermissionContext) -> None:
    await asyncio.gather(context.require("careful", ["x"]), return_exceptions=True)


async def gives_up_waiting(context: PermissionContext) -> None:
    with suppress(TimeoutError, PermissionDeniedError):
        await asyncio.wait_for(context.require("careful", ["x"]), 0.001)


async def asks_for_one_of_two(context: Any) -> None:
    context.require("careful", ["x"])
    await context.require("other", ["x"])


async def catches_the_path(context: PermissionContext) -> None:
    with suppress(PermissionDeniedError):
        await context.require_path(Path("/etc/passwd"))
    await context.require("other", ["x"])


def is_no_coroutine(context: Any) -> None:
    context.require("careful", ["x"])


def is_a_plain_function(context: Any) -> object:
    return context.require("careful", ["x"])


async def answers_with_an_awaitable(context: PermissionContext) -> object:
    return required(context, "x")


async def is_a_generator(context: PermissionContext) -> Any:
    await context.require("careful", ["x"])
    yield "x"


async def raises(context: PermissionContext) -> None:
    raise KeyError("x")


async def ends_the_process(context: PermissionContext) -> None:
    raise SystemExit(3)


async def hangs(context: PermissionContext) -> None:
    await asyncio.Event().wait()


async def wants_more(context: PermissionContext, what: str, more: str) -> None: ...


async def takes_no_context() -> None: ...


async def takes_the_context_as_an_argument(what: str) -> None: ...


class Forgets:
    """A `requires` that is an object."""

    async def __call__(self, context: Any) -> None:
        context.require("careful", ["x"])


ATTACKS: tuple[Requires | None, ...] = (
    None,
    required,
    is_not_awaited,
    is_answered,
    is_left_to_a_task,
    catches_the_denial,
    catches_everything,
    gathers_the_errors,
    gives_up_waiting,
    asks_for_one_of_two,
    catches_the_path,
    is_no_coroutine,
    is_a_plain_function,
    answers_with_an_awaitable,
    is_a_generator,
    raises,
    ends_the_process,
    hangs,
    wants_more,
    takes_no_context,
    takes_the_context_as_an_argument,
    Forgets(),
    lambda context: required,
)


@pytest.fixture
def collected() -> Iterator[None]:
    """End the coroutines that were never awaited within the test that makes them."""
    yield
    gc.collect()


@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("door", ["model", "batch", "subagent", "program"])
async def test_no_tool_runs_unasked(tmp_path: Path, door: str) -> None:
    bodies = Bodies()
    names = [f"t{number}" for number in range(len(ATTACKS))]
    tools = [bodies.tool(*each) for each in zip(names, ATTACKS, strict=True)]
    wanted = [once(name, call_id=name) for name in names]

    @as_tool(requires=False)
    async def delegate(context: ToolContext) -> str:
        """Have a subagent work."""
        return (await context.run_subagent("helper", "go", description="work")).text

    inner = [{"tool": name, "parameters": {"what": "x"}} for name in names]
    script = {
        "model": [calls(*wanted)],
        "batch": [calls(call("batch", json.dumps({"tool_calls": inner})))],
        "subagent": [calls(call("delegate", "{}")), calls(*wanted)],
        "program": [],
    }[door]
    provider = Played(*script, text("ok"))
    plugins = (rules, ToolsPlugin(*tools, batch, delegate))
    async with opened(tmp_path, provider, *plugins, allow=False, config=ASK) as app:
        session = await app.create_session()
        if door == "program":
            for name in names:
                with pytest.raises((ToolError, PermissionDeniedError)) as raised:
                    await app.call_tool(session.id, name, {"what": "x"})
                assert str(raised.value)
        else:
            await app.prompt(session.id, HI)
            turns = [
                turn
                for each in await app.storage.sessions()
                for turn in await app.list_turns(each.id)
            ]
            states = [part for part in tools_of(tuple(turns)) if part.tool in names]
            assert [part.tool for part in states] == names
            assert {type(part.state).__name__ for part in states} == {"Failed"}

    assert bodies.ran == []
