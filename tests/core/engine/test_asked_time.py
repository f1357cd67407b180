"""The time that a person takes to answer is in no limit: of tools, hooks, subagents, budgets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from pathlib import Path

import pytest

from pegboard import App, PendingCall, Prompt, ToolContext, ToolResult, hookimpl, tool
from pegboard.engine.run import MAX_WIDTH
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import PermissionRequest, Question, Verdict
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from support.sessions.asked import asked, outcomes

LIMIT_S = 5.0
AWAY_S = 5.5
ASKED = "asked for"
DO_IT = "do it"


class Rule:
    """What a tool asks is asked, all else is allowed."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        return Verdict(action="ask" if request.permission == ASKED else "allow")


@tool(timeout_s=LIMIT_S, requires=False)
async def careful(context: ToolContext) -> str:
    """Ask first."""
    await context.require(ASKED, ["x"])
    return "allowed"


@tool(timeout_s=LIMIT_S)
async def curious(context: ToolContext) -> str:
    """Ask a question."""
    [[answer]] = await context.ask_user([Question(question="Which?")])
    return answer


@tool(timeout_s=LIMIT_S)
async def outer(context: ToolContext) -> str:
    """Have another tool ask."""
    return (await context.call_tool("careful", {})).output


@tool(timeout_s=LIMIT_S, requires=False)
async def elsewhere(context: ToolContext) -> str:
    """Ask from a task that knows nothing of the call."""
    await asyncio.create_task(context.require(ASKED, ["x"]), context=Context())
    return "allowed"


@tool(timeout_s=LIMIT_S)
async def delegate(context: ToolContext) -> str:
    """Have a subagent work."""
    child = await context.run_subagent("helper", "do it", description="x", timeout_s=LIMIT_S)
    return f"{child.outcome}: {child.text}"


@tool(timeout_s=LIMIT_S, requires=False)
async def writes(context: ToolContext) -> str:
    """Ask with a file in hand."""
    async with context.files.lock(context.directory / "file"):
        await context.require(ASKED, ["x"])
    return "written"


TOOLS = ToolsPlugin(careful, curious, outer, elsewhere, delegate, writes)


async def by_agent(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    """The subagent's tool asks."""
    child = "do it" in str(request.messages[0].content)
    done = request.messages[-1].role == "tool"
    made = call("careful" if child else "delegate", "{}")
    for event in text("done") if done else calls(made):
        yield event


def interactive(
    folder: Path, provider: Played, *plugins: object, **config: object
) -> AbstractAsyncContextManager[App]:
    chosen = {"model": "played/m", **config}
    plugins = (Rule(), TOOLS, *plugins)
    return opened(folder, provider, *plugins, allow=False, interactive=True, config=chosen)


async def answered_late(app: App, session_id: str, count: int = 1) -> None:
    """Let a turn run, and answer so many requests only when all limits could have passed."""
    turn = asyncio.create_task(app.prompt(session_id, HI))
    await asked(app, count)
    await asyncio.sleep(AWAY_S)
    while not turn.done():
        for request in app.permissions.pending():
            await app.answer_permission(request.id, "once")
        for question in app.questions.pending():
            await app.answer_question(question.id, (("blue",),))
        await asyncio.wait({turn}, timeout=0.01)
    await turn


async def test_no_tool_runs_out_of_time_while_a_person_is_asked(tmp_path: Path) -> None:
    names = ("careful", "curious", "outer", "elsewhere", "writes", "writes")
    made = [call(name, "{}", call_id=f"c{n}") for n, name in enumerate(names)]
    async with interactive(tmp_path, Played(calls(*made), text("ok"))) as app:
        session = await app.create_session()
        await answered_late(app, session.id, 4)
        came = await outcomes(app, session.id)

    assert sorted(came) == ["allowed"] * 4 + ["blue", "written", "written"]


async def test_neither_a_subagent_nor_a_budget_runs_out_while_a_person_is_asked(
    tmp_path: Path,
) -> None:
    minutes = {"minutes": LIMIT_S / 60}
    budget = {**minutes, "run": minutes, "subagent": minutes}
    async with interactive(tmp_path, Played(by_agent), budget=budget) as app:
        session = await app.create_session()
        await answered_late(app, session.id)
        [child] = await app.storage.children(session.id)
        turns = (*await app.list_turns(session.id), *await app.list_turns(child.id))

    assert [part.state.output for part in tools_of(turns) if isinstance(part.state, Completed)] == [
        "done: done",
        "allowed",
    ]
    answers = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    assert [answer.error for answer in answers] == [None] * 4


async def test_a_subagent_that_the_user_has_set_to_work_is_waited_for_as_well(
    tmp_path: Path,
) -> None:
    @tool(timeout_s=LIMIT_S)
    async def resume(session: str, context: ToolContext) -> str:
        """Go on with a subagent."""
        child = await context.run_subagent("helper", "go on", description="x", session_id=session)
        return child.outcome

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.messages[-1].role == "tool":
            events = text("done")
        elif "do it" in str(request.messages[0].content):
            events = calls(call("careful", "{}"))
        else:
            events = calls(call("resume", f'{{"session": "{child.id}"}}'))
        for event in events:
            yield event

    async with interactive(tmp_path, Played(answer), ToolsPlugin(resume)) as app:
        session = await app.create_session(agent="build")
        child = await app.create_session(parent_id=session.id)
        working = asyncio.create_task(app.prompt(child.id, Prompt(DO_IT, agent="helper")))
        await asked(app)
        await answered_late(app, session.id)
        await working
        came = await outcomes(app, session.id)

    assert came == ["done"]


async def test_no_subagent_runs_out_of_time_behind_others_whose_user_is_asked(
    tmp_path: Path,
) -> None:
    count = MAX_WIDTH + 1
    made = [call("delegate", "{}", call_id=f"c{n}") for n in range(count)]

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        done = request.messages[-1].role == "tool"
        child = "do it" in str(request.messages[0].content)
        for event in text("done") if done else calls(*([call("careful", "{}")] if child else made)):
            yield event

    async with interactive(tmp_path, Played(answer)) as app:
        session = await app.create_session()
        await answered_late(app, session.id, MAX_WIDTH)
        came = await outcomes(app, session.id)

    assert came == ["done: done"] * count


async def test_no_hook_runs_out_of_time_while_a_person_is_asked(tmp_path: Path) -> None:
    class AsksAfter:
        """Asks whether an answer may be given."""

        @hookimpl(timeout_s=LIMIT_S)
        async def tool_execute_after(
            self, call: PendingCall, result: ToolResult, context: ToolContext
        ) -> ToolResult:
            await context.require(ASKED, [call.tool])
            return ToolResult(output=f"{result.output}, and agreed to")

    @tool
    async def plain() -> str:
        """Answer."""
        return "said"

    provider = Played(calls(call("plain", "{}")), text("ok"))
    async with interactive(tmp_path, provider, ToolsPlugin(plain), AsksAfter()) as app:
        session = await app.create_session()
        await answered_late(app, session.id)
        came = await outcomes(app, session.id)

    assert came == ["said, and agreed to"]


@pytest.mark.parametrize("way", ["abort", "delete", "close"])
async def test_each_end_of_a_session_ends_the_wait_for_a_person(tmp_path: Path, way: str) -> None:
    async with interactive(tmp_path, Played(by_agent)) as app:
        session = await app.create_session()
        turn = asyncio.create_task(app.prompt(session.id, HI))
        await asked(app)

        async with asyncio.timeout(30):
            match way:
                case "abort":
                    await app.abort(session.id)
                case "delete":
                    await app.delete_session(session.id)
                case _:
                    await app.aclose()
            [ended] = await asyncio.gather(turn, return_exceptions=True)

        assert app.permissions.pending() == ()
        assert not isinstance(ended, asyncio.CancelledError)
        if way == "abort":
            [part] = tools_of(await app.list_turns(session.id))
            assert isinstance(part.state, Failed)
