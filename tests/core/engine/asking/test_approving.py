"""What an approval covers: what is on its way to be asked, and no more than was shown."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Prompt, ToolContext, hookimpl, tool
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.config import Agent
from pegboard.schema.event import PermissionReplied
from pegboard.schema.session import PermissionRequest, Rule, Verdict
from pegboard.storage.changes import PutApproval
from pegboard_plugins.shared.frontend import approvals_of
from support.models.played import Played, PlayedPlugin, ToolsPlugin, call, calls, opened, text
from support.sessions.asked import asked, outcomes
from support.storage.slow_storage import VARIABLE

HI = "hi"
WATCHED = {"allow": False, "interactive": True}


class Asks:
    """Asks for everything."""

    @hookimpl
    async def permission_ask(self) -> Verdict:
        return Verdict(action="ask")


async def test_an_approval_settles_a_request_that_is_on_its_way(tmp_path: Path) -> None:
    slow: list[str] = []
    approved = asyncio.Event()

    class Slow:
        """Asks, about the rest of the first request when something else is approved."""

        @hookimpl(timeout_s=60)
        async def permission_ask(self, request: PermissionRequest) -> Verdict:
            if len(request.patterns) > 1:
                slow.append(request.id)
            elif slow == [request.id]:
                await approved.wait()
            return Verdict(action="ask")

    @tool(requires=False)
    async def several(context: ToolContext, what: str) -> str:
        """Ask for several things."""
        await context.require("careful", what.split(), always=what.split())
        return "done"

    wanted = [call("several", json.dumps({"what": what}), call_id=what) for what in ("a x", "x")]
    provider = Played(calls(*wanted), text("ok"))
    async with opened(tmp_path, provider, Slow(), ToolsPlugin(several), **WATCHED) as app:
        project = app.workspace.project_id
        await app.storage.commit(PutApproval(project, (Rule("careful", "a", "allow"),)))
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        async with app.subscribe(limit=100_000) as subscription, asyncio.timeout(30):
            await app.policy.approve(request.id, "project")
            events = aiter(subscription)
            while not isinstance((await anext(events)).properties, PermissionReplied):
                pass
        approved.set()
        async with asyncio.timeout(30):
            await prompt
        assert await outcomes(app, session.id) == ["done", "done"]


@pytest.mark.parametrize(
    ("patterns", "always", "approved"),
    [
        (["/srv/*/*"], ["/srv/*/*"], ["/srv/?/*"]),
        (["* x"], ["* *"], ["? *"]),
        (["src/*.py"], [], ["src/?.py"]),
        (["ls *.py"], ["ls *"], ["ls *"]),
        (["*.py"], ["*"], ["*"]),
        (["/srv/a/b"], ["/srv/*/b"], ["/srv/*/b"]),
    ],
)
async def test_no_wildcard_in_what_is_asked_for_widens_what_is_approved(
    tmp_path: Path, patterns: list[str], always: list[str], approved: list[str]
) -> None:
    @tool(requires=False)
    async def wild(context: ToolContext) -> str:
        """Ask for what has wildcards in its name."""
        await context.require("careful", patterns, always=always)
        return "done"

    once = calls(call("wild", "{}"))
    provider = Played(once, text("ok"), once, text("ok"))
    async with opened(tmp_path, provider, Asks(), ToolsPlugin(wild), **WATCHED) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await app.policy.approve(request.id, "project")
        await prompt
        async with asyncio.timeout(30):
            await app.prompt(session.id, HI)  # nobody is asked again
        found = await approvals_of(app)

    assert [each.rule.pattern for each in found] == approved
    assert request.always == tuple(approved if always else ())


@tool
async def delegate(context: ToolContext) -> str:
    """Have a subagent work."""
    return (await context.run_subagent("helper", "do it", description="work")).text


async def test_a_subagent_is_bound_by_who_called_it_though_another_agent_comes_next(
    tmp_path: Path,
) -> None:
    """The user asks another agent while the first one works; its subagent has no more rights."""
    sessions: list[str] = []
    waiting: list[asyncio.Task[object]] = []

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.session_id not in sessions:
            sessions.append(request.session_id)
        is_first = not waiting
        if is_first:
            prompt = app.prompt(session.id, Prompt(HI, agent="build"))
            waiting.append(asyncio.create_task(prompt))
            async with asyncio.timeout(30):
                while (await app.session(session.id)).agent != "build":  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.01)
        worked = request.messages[-1].role == "tool"
        name = "delegate" if is_first else "careful"
        is_child = request.session_id != session.id
        called = (is_first or is_child) and not worked
        for event in calls(call(name, "{}")) if called else text("ok"):
            yield event

    @tool(requires=False)
    async def careful(context: ToolContext) -> str:
        """Ask first."""
        await context.require("careful", ["x"])
        return "done"

    tight = Agent(
        name="tight", mode="primary", permission=(Rule("careful", "*", "deny"),), options={}
    )
    plugins = (ToolsPlugin(careful, delegate), PlayedPlugin(Played(answer), agents=[tight]))
    async with opened(tmp_path, Played(), *plugins) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(HI, agent="tight"))
        await asyncio.gather(*waiting)

        assert len(sessions) == 2
        [told] = await outcomes(app, sessions[1])
    assert told == "there is no tool 'careful'; there are: delegate"


async def test_an_approval_for_good_outlives_the_end_of_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    ask, wait_s = calls(call("careful", "{}")), [number / 1000 for number in range(1, 16, 2)]

    @tool(requires=False)
    async def careful(context: ToolContext) -> str:
        """Ask first."""
        await context.require("careful", ["a"], always=["*"])
        return "done"

    async with opened(tmp_path, Played(ask), Asks(), ToolsPlugin(careful), **WATCHED) as app:
        sessions = [(await app.create_session()).id for _ in wait_s]
        for session_id, passing_s in zip(sessions, wait_s, strict=True):
            prompt = asyncio.create_task(app.prompt(session_id, HI))
            [request] = await asked(app)
            await app.policy.approve(request.id, "session")
            await asyncio.sleep(passing_s)
            await app.abort(session_id)
            await asyncio.gather(prompt, return_exceptions=True)
        approvals = await approvals_of(app)

    assert {each.key for each in approvals} == set(sessions)
