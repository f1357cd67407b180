"""What a call requires is decided before the tool runs, whatever its author has written."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard import PermissionContext, Tool, ToolContext
from pegboard import tool as as_tool
from pegboard.errors import InvalidInputError, PluginError, ToolError
from pegboard.providers import StreamEvent
from pegboard.schema.config import Agent
from pegboard.schema.session import Rule
from pegboard_plugins import rules
from pegboard_plugins.shared.frontend import explain
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from support.sessions.asked import asked, outcomes

ASK = {"model": "played/m", "permission": {"careful": "ask"}}
LIMIT_S = 1.5
Requires = Callable[..., Any]


async def required(context: PermissionContext, what: str) -> str:
    """The `requires` of an honest tool."""
    await context.require("careful", [what], always=["*"])
    return what.upper()


async def raises(context: PermissionContext) -> None:
    raise KeyError("x")


async def catches_everything(context: PermissionContext) -> None:
    with suppress(BaseException):
        await context.require("careful", ["x"])


async def hangs(context: PermissionContext) -> None:
    await asyncio.Event().wait()


class Bodies:
    """Tools whose bodies note that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tool(self, name: str, requires: Requires | None) -> Tool:
        def body(what: str) -> str:
            """Act."""
            self.ran.append(f"{name} {what}")
            return "done"

        make = as_tool(id=name, permission="careful", timeout_s=LIMIT_S, requires=requires)
        made = make(body)
        assert isinstance(made, Tool)
        return made


def once(name: str, *, call_id: str = "call_0") -> list[StreamEvent]:
    return call(name, '{"what": "x"}', call_id=call_id)


FREE = Agent(name="free", mode="all", permission=(Rule("*", "*", "allow"),), options={})


async def test_a_tool_that_says_nothing_requires_its_permission(tmp_path: Path) -> None:
    bodies = Bodies()
    tool = bodies.tool("act", None)
    async with guarded(tmp_path, tool, once("act"), interactive=True) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        assert (request.permission, request.patterns, request.always) == ("careful", ("*",), ("*",))
        assert bodies.ran == []
        await app.answer_permission(request.id, "once")
        await prompt
        assert await outcomes(app, session.id) == ["done"]


async def test_a_tool_may_require_nothing(tmp_path: Path) -> None:
    @as_tool(permission="careful", requires=False)
    async def act() -> str:
        """Act."""
        return "done"

    async with guarded(tmp_path, act, call("act", "{}")) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert await outcomes(app, session.id) == ["done"]
        found = await explain(app, "act", {})
    assert (found.requests, found.headless.action) == ((), "allow")


async def test_the_answer_of_requires_is_the_tools(tmp_path: Path) -> None:
    @as_tool(permission="careful", requires=required)
    async def act(context: ToolContext, what: str) -> str:
        """Act."""
        await context.require("careful", [what])  # granted, so nobody is asked again
        with pytest.raises(TypeError, match="is not the `requires` of the tool act"):
            context.granted(raises)
        return f"{what} {context.granted(required)}"

    async with guarded(tmp_path, act, once("act"), interactive=True) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await app.answer_permission(request.id, "once")
        await prompt
        assert await outcomes(app, session.id) == ["x X"]


async def test_requires_gets_the_arguments_as_a_plugin_has_changed_them(tmp_path: Path) -> None:
    from pegboard import hookimpl
    from pegboard.contract.results import PendingCall

    class Changes:
        @hookimpl
        async def tool_execute_before(self, call: PendingCall) -> PendingCall:
            from msgspec.structs import replace

            return replace(call, input={"what": "changed"})

    bodies = Bodies()
    tool = bodies.tool("act", required)
    config = {**ASK, "permission": {"careful": {"*": "deny", "changed": "allow"}}}
    plugins = (rules, Changes(), ToolsPlugin(tool))
    script = Played(calls(once("act")), text("ok"))
    async with opened(tmp_path, script, *plugins, allow=False, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    assert bodies.ran == ["act changed"]


async def test_requires_may_take_all_arguments(tmp_path: Path) -> None:
    async def every(context: PermissionContext, **args: str) -> None:
        await context.require("careful", [*args.values()])

    bodies = Bodies()
    async with guarded(tmp_path, bodies.tool("act", every), once("act")) as app:
        foreseen = await app.policy.foresee("act", {"what": "x"})
    assert [each.patterns for each in foreseen.requests] == [("x",)]


async def later(context: PermissionContext, path: str) -> Path:
    """Require an edit whose diff comes later."""
    await context.require("careful", [path], later=True)
    return context.directory / path


class Writes:
    """Tools that write and differ in when they ask."""

    @staticmethod
    @as_tool(permission="careful", requires=later, effect="edits")
    async def asks(context: ToolContext, path: str) -> str:
        """Ask, then write."""
        await context.require("careful", [path], metadata={"diff": "+x"})
        await context.files.replace(context.granted(later), b"x")
        return "done"

    @staticmethod
    @as_tool(permission="careful", requires=later, effect="edits")
    async def replaces(context: ToolContext, path: str) -> str:
        """Write without a question."""
        await context.files.replace(context.granted(later), b"x")
        return "done"

    @staticmethod
    @as_tool(permission="careful", requires=later, effect="edits")
    async def intends(context: ToolContext, path: str) -> str:
        """Announce a change without a question."""
        await context.files.will_change(context.granted(later))
        context.granted(later).write_text("x")
        return "done"

    @staticmethod
    @as_tool(permission="careful", requires=later, effect="edits")
    async def returns(context: ToolContext, path: str) -> str:
        """Return without a question."""
        return "done"


async def test_a_request_that_comes_later_is_asked_once_with_its_metadata(tmp_path: Path) -> None:
    async with guarded(
        tmp_path, Writes.asks, call("asks", '{"path": "a"}'), interactive=True
    ) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        assert request.metadata["diff"] == "+x"
        await app.answer_permission(request.id, "once")
        await prompt
        assert await outcomes(app, session.id) == ["done"]
        foreseen = await app.policy.foresee("asks", {"path": "a"})
    assert (tmp_path / "project" / "a").read_text() == "x"
    assert [(each.permission, each.patterns) for each in foreseen.requests] == [
        (request.permission, request.patterns)
    ]


@pytest.mark.parametrize("tool", [Writes.replaces, Writes.intends, Writes.returns], ids=str)
async def test_no_call_ends_well_with_an_open_request(tmp_path: Path, tool: Tool) -> None:
    script = call(tool.id, '{"path": "a"}')
    async with guarded(tmp_path, tool, script, interactive=True) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [said] = await outcomes(app, session.id)
    assert said.startswith(f"{tool.id} has not asked for what it requires: careful.")
    assert not (tmp_path / "project" / "a").exists()


async def test_a_later_request_that_is_denied_fails_before_the_tool(tmp_path: Path) -> None:
    bodies = Bodies()

    async def denied(context: PermissionContext, what: str) -> None:
        await context.require("careful", [what], later=True)

    async with guarded(tmp_path, bodies.tool("act", denied), once("act")) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))
    assert part.state.metadata["denied"]  # type: ignore[union-attr, index]
    assert bodies.ran == []


async def test_the_clock_stands_while_the_user_is_asked_and_not_while_requires_works(
    tmp_path: Path,
) -> None:
    bodies = Bodies()
    tools = (bodies.tool("act", required), bodies.tool("stuck", hangs))
    script = [*once("act", call_id="a"), *once("stuck", call_id="b")]
    async with guarded(tmp_path, tools, script, interactive=True) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await asyncio.sleep(2 * LIMIT_S)  # longer than the calls may take
        await app.answer_permission(request.id, "once")
        await prompt
        said = await outcomes(app, session.id)
    assert said == ["done", f"stuck did not end within {LIMIT_S:g} s."]


async def test_who_foresees_a_call_whose_requires_fails_learns_why(tmp_path: Path) -> None:
    bodies = Bodies()
    names = {"a": raises, "b": catches_everything, "stuck": hangs}
    tools = tuple(bodies.tool(*each) for each in names.items())
    async with guarded(tmp_path, tools, once("a")) as app:
        with pytest.raises(PluginError, match="`requires` of the tool a raised KeyError"):
            await explain(app, "a", {"what": "x"})
        with pytest.raises(ToolError, match=f"did not end within {LIMIT_S:g} s"):
            await explain(app, "stuck", {"what": "x"})
        found = await explain(app, "b", {"what": "x"})  # nothing is denied, so nothing is hidden
    assert found.headless.action == "deny"


@pytest.mark.parametrize("requires", [True, "edit", 1])
def test_a_requires_that_is_none_is_refused_when_the_tool_is_made(requires: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be an async function, False or None"):
        Bodies().tool("act", requires)


def guarded(
    folder: Path, tools: Tool | tuple[Tool, ...], script: list[StreamEvent], **options: Any
) -> Any:
    """An App in which `careful` is asked for and the model makes these calls."""
    plugin = ToolsPlugin(*(tools if isinstance(tools, tuple) else (tools,)))
    provider = Played(calls(script), text("ok"))
    return opened(folder, provider, rules, plugin, allow=False, config=ASK, **options)
