"""How far an approval goes, what none can cover, and what holds where nobody is asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import PermissionContext, Prompt, ToolContext, hookimpl, tool
from pegboard.policy.permissions import UNCLEAR, judge_rules, unapproved
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.config import Agent
from pegboard.schema.event import PermissionReplied
from pegboard.schema.session import PermissionRequest, Rule, Scope, Verdict
from pegboard.storage.changes import PutApproval
from pegboard_plugins import audit
from pegboard_plugins.shared.frontend import ShellOrder, approvals_of, mentioned, revoke, run_shell
from support.models.played import (
    HI,
    Played,
    PlayedPlugin,
    ToolsPlugin,
    call,
    calls,
    heard,
    opened,
    text,
    texts,
)
from support.sessions.asked import asked, outcomes

OTHER = Agent(name="other", mode="primary", permission=(Rule("*", "*", "allow"),), options={})


async def may(context: PermissionContext, what: str, once: bool) -> None:
    metadata = {"once": True} if once else {}
    await context.require("careful", [what], always=["*"], metadata=metadata)


@tool(requires=may)
async def careful(what: str = "a", once: bool = False) -> str:
    """Ask first."""
    return "done"


class Asks:
    """Asks for everything but `forbidden`; `firm` asks whatever was approved."""

    def __init__(self, *, firm: bool = False) -> None:
        self._firm = firm

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        if "forbidden" in request.patterns:
            return Verdict(action="deny", reason="it is forbidden")
        return Verdict(action="ask", reason="it might hurt", firm=self._firm)


@asynccontextmanager
async def app_with(folder: Path, plugin: object, *arguments: str, **options: Any) -> Any:
    """An App whose model makes these calls of `careful` in one answer."""
    answer = calls(*(call("careful", each, call_id=f"c{at}") for at, each in enumerate(arguments)))
    provider = Played(answer, text("ok"))
    given = {"allow": False, "interactive": True, **options}
    async with opened(folder, provider, plugin, ToolsPlugin(careful), audit, **given) as app:
        yield app


def audited(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "state" / "audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def one_turn(
    folder: Path, plugin: object, scope: Scope, arguments: str = "{}", *, agent_only: bool = False
) -> tuple[Any, ...]:
    """A turn whose one call somebody approves; the request, and what is approved then."""
    async with app_with(folder, plugin, arguments) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await app.policy.approve(request.id, scope, agent_only=agent_only)
        await prompt
        return session.id, request, await approvals_of(app)


async def asked_again(
    folder: Path, session_id: str | None = None, *, agent: str | None = None, once: bool = False
) -> bool:
    provider = Played(calls(call("careful", json.dumps({"once": once}))), text("ok"))
    plugins = (Asks(), ToolsPlugin(careful), PlayedPlugin(provider, agents=[OTHER]))
    async with opened(folder, Played(), *plugins, allow=False) as app:
        used = session_id or (await app.create_session()).id
        await app.prompt(used, Prompt(HI, agent=agent))
        return (await outcomes(app, used))[-1] != "done"


async def test_an_approval_for_a_session_ends_with_it(tmp_path: Path) -> None:
    session_id, _, approvals = await one_turn(tmp_path, Asks(), "session")

    assert [(each.scope, each.key) for each in approvals] == [("session", session_id)]
    assert not await asked_again(tmp_path, session_id)
    assert await asked_again(tmp_path)
    async with opened(tmp_path, Played(text("x"))) as app:
        await app.delete_session(session_id)
        assert await approvals_of(app) == ()


async def test_an_approval_for_the_user_holds_in_every_project(tmp_path: Path) -> None:
    await one_turn(tmp_path, Asks(), "user")
    (tmp_path / "project").rename(tmp_path / "other")

    assert not await asked_again(tmp_path)


@pytest.mark.parametrize("scope", ["session", "project", "user"])
async def test_an_approval_for_an_agent_holds_for_no_other(tmp_path: Path, scope: Scope) -> None:
    session_id, request, approvals = await one_turn(tmp_path, Asks(), scope, agent_only=True)

    assert request.metadata == {
        "agent": "build",
        "reason": "plugin Asks: it might hurt",
        "arguments": {"what": "a", "once": False},
    }
    assert [each.agent for each in approvals] == ["build"]
    assert await asked_again(tmp_path, session_id, agent="other")
    assert not await asked_again(tmp_path, session_id, agent="build")


async def test_approvals_name_their_scope_and_can_be_taken_back(tmp_path: Path) -> None:
    _, _, approvals = await one_turn(tmp_path, Asks(), "project")

    async with opened(tmp_path, Played(text("x")), audit) as app:
        gone = await revoke(app, "care*")
        left = await approvals_of(app)

    assert [(each.scope, each.rule) for each in approvals] == [
        ("project", Rule("careful", "*", "allow"))
    ]
    assert (gone, left) == (approvals, ())
    [line] = [line for line in audited(tmp_path) if line["kind"] == "revoke"]
    assert (line["permission"], line["pattern"], line["scope"]) == ("careful", "*", "project")
    assert await asked_again(tmp_path)


async def test_what_is_taken_back_elsewhere_is_asked_again_in_an_app_that_is_open(
    tmp_path: Path,
) -> None:
    await one_turn(tmp_path, Asks(), "project")

    async with app_with(tmp_path, Asks(), "{}", interactive=False) as app:
        async with opened(tmp_path, Played(text("x"))) as other:
            await revoke(other, "careful")
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert await outcomes(app, session.id) != ["done"]


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        (Asks(firm=True), "{}"),
        (Asks(), '{"once": true}'),
    ],
    ids=["firm", "the tool says so"],
)
async def test_what_is_asked_every_time_cannot_be_approved_for_good(
    tmp_path: Path, plugin: Asks, arguments: str
) -> None:
    _, request, approvals = await one_turn(tmp_path, plugin, "project", arguments)

    assert (request.always, request.metadata["once"]) == ((), True)
    assert approvals == ()
    assert await asked_again(tmp_path)


async def test_what_is_unclear_can_be_approved_as_this_very_text_alone(tmp_path: Path) -> None:
    text = f"{UNCLEAR}$CMD * x"

    _, request, approvals = await one_turn(tmp_path, Asks(), "project", json.dumps({"what": text}))

    assert request.always == (text,)
    assert [each.rule.pattern for each in approvals] == [text]
    assert unapproved([each.rule for each in approvals], "careful", [text]) == ()
    assert unapproved([each.rule for each in approvals], "careful", [f"{UNCLEAR}$CMD y x"])


async def test_what_a_tool_wants_asked_every_time_is_asked_though_the_like_was_approved(
    tmp_path: Path,
) -> None:
    await one_turn(tmp_path, Asks(), "project")

    assert not await asked_again(tmp_path)
    assert await asked_again(tmp_path, once=True)


async def test_one_approval_settles_what_waits_and_is_covered(tmp_path: Path) -> None:
    async with app_with(tmp_path, Asks(), "{}", '{"what": "b"}', '{"once": true}') as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        waiting = await asked(app, 3)
        [last] = [request for request in waiting if request.metadata.get("once")]
        first = next(request for request in waiting if request is not last)
        await app.policy.approve(first.id, "session")
        async with app.subscribe() as subscription, asyncio.timeout(30):
            events = aiter(subscription)
            while len(app.permissions.pending()) > 1:
                await anext(events)
        assert app.permissions.pending() == (last,)
        await app.answer_permission(last.id, "once")
        await prompt
        assert await outcomes(app, session.id) == ["done", "done", "done"]

    replies = [line for line in audited(tmp_path) if line["kind"] == "reply"]
    assert [(line["by"], line["reply"], line.get("approved")) for line in replies] == [
        ("user", "always", ["*"]),
        ("approval", "always", None),
        ("user", "once", None),
    ]


async def test_an_approval_settles_a_request_that_a_rule_allows_in_part(tmp_path: Path) -> None:
    class Parts:
        @hookimpl
        async def permission_ask(self, request: PermissionRequest) -> Verdict:
            is_asked = {"a", "b"} & {*request.patterns}
            return Verdict(action="ask" if is_asked else "allow")

    @tool(requires=False)
    async def several(context: ToolContext, what: str) -> str:
        """Ask for several things."""
        await context.require("careful", what.split(), always=["a"])
        return "done"

    wanted = [call("several", json.dumps({"what": what}), call_id=what) for what in ("a", "a x")]
    provider = Played(calls(*wanted), text("ok"))
    plugins = (Parts(), ToolsPlugin(several))
    async with opened(tmp_path, provider, *plugins, audit, allow=False, interactive=True) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        waiting = await asked(app, 2)
        await app.policy.approve(waiting[0].id, "project")
        async with asyncio.timeout(30):
            await prompt
        assert await outcomes(app, session.id) == ["done", "done"]


@tool(requires=False)
async def delegate(context: ToolContext, deeper: bool = True) -> str:
    """Have a subagent of a subagent work."""
    return (await context.run_subagent("helper", f"deeper {deeper}", description="work")).text


async def test_an_approval_for_a_session_holds_for_all_that_work_for_it(tmp_path: Path) -> None:
    sessions: list[str] = []

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.session_id not in sessions:
            sessions.append(request.session_id)
        depth = sessions.index(request.session_id)
        steps = {0: ["delegate", "careful"], 1: ["delegate"], 2: ["careful"]}[depth]
        done = sum(message.role == "tool" for message in request.messages)
        script = calls(call(steps[done], "{}")) if done < len(steps) else text("ok")
        for event in script:
            yield event

    plugins = (Asks(), ToolsPlugin(careful, delegate))
    options = {"allow": False, "interactive": True}
    async with opened(tmp_path, Played(answer), *plugins, audit, **options) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await app.storage.commit(PutApproval(session.id, (Rule("careful", "*", "allow"),)))
        await app.permissions.recheck()
        async with asyncio.timeout(30):
            await prompt

        assert request.session_id == sessions[2]
        assert await outcomes(app, session.id) == ["ok", "done"]


async def test_guidance_reaches_all_calls_of_the_session_that_it_rejects(tmp_path: Path) -> None:
    async with app_with(tmp_path, Asks(), "{}", '{"what": "b"}') as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        first, _ = await asked(app, 2)
        await app.answer_permission(first.id, "reject", "use a branch")
        turn = await prompt

        told = await outcomes(app, session.id)
    assert all("use a branch" in each for each in told)
    assert texts(turn) == ["ok"]  # it went on


async def test_an_abort_ends_what_waits_and_tells_clients(tmp_path: Path) -> None:
    async with app_with(tmp_path, Asks(), "{}") as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, PermissionReplied))
        )
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        await app.abort(session.id)
        await asyncio.gather(prompt, return_exceptions=True)
        async with asyncio.timeout(30):
            replied = (await listening)[-1].properties

        assert app.permissions.pending() == ()
        assert (replied.request_id, replied.reply) == (request.id, "reject")


async def test_where_nobody_is_there_ask_is_recorded_as_the_deny_that_it_is(
    tmp_path: Path,
) -> None:
    async with app_with(tmp_path, Asks(), "{}", interactive=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [told] = await outcomes(app, session.id)

    assert "(plugin Asks: it might hurt) and nobody is there to be asked" in told
    [decision] = [line for line in audited(tmp_path) if line["kind"] == "decision"]
    assert (decision["action"], decision["by"], decision["agent"]) == ("deny", "headless", "build")
    assert decision["reason"] == told


async def test_auto_allows_what_would_be_asked_and_nothing_that_is_denied_or_firm(
    tmp_path: Path,
) -> None:
    given = {"interactive": False, "config": {"model": "played/m", "auto_approve": True}}
    arguments = ("{}", '{"what": "forbidden"}')
    async with app_with(tmp_path, Asks(), *arguments, **given) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert await outcomes(app, session.id) == ["done", "plugin Asks: it is forbidden"]
    async with app_with(tmp_path, Asks(firm=True), "{}", **given) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert "nobody is there" in (await outcomes(app, session.id))[0]

    decisions = [line for line in audited(tmp_path) if line["kind"] == "decision"]
    assert sorted((line["action"], line["by"]) for line in decisions) == [
        ("allow", "auto"),
        ("deny", "Asks"),
        ("deny", "headless"),
    ]


async def test_a_decision_names_the_rule_and_no_secret(tmp_path: Path) -> None:
    config = {"model": "played/m", "permission": {"careful": {"tok*": "allow"}}}
    env = {"PATH": "/bin", "HOME": str(tmp_path), "PLAYED_KEY": "hunter2-hunter2"}
    arguments = json.dumps({"what": "token=abc hunter2-hunter2"})
    provider = Played(calls(call("careful", arguments)), text("ok"))
    plugins = (ToolsPlugin(careful), Rules())
    options = {"allow": False, "config": config, "env": env}
    async with opened(tmp_path, provider, *plugins, audit, **options) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert await outcomes(app, session.id) == ["done"]

    [decision] = [line for line in audited(tmp_path) if line["kind"] == "decision"]
    assert decision["rule"] == ["careful", "tok*", "allow"]
    assert decision["patterns"] == ["token=[secret] [secret]"]


async def test_what_the_user_runs_and_attaches_is_recorded_too(tmp_path: Path) -> None:
    async with app_with(tmp_path, Asks(), "{}") as app:
        (app.workspace.directory / "notes.txt").write_text("x")
        session = await app.create_session()
        await run_shell(app, session.id, ShellOrder(command="echo out"))
        await mentioned(app, session.id, "see @notes.txt")

    ran, attached = audited(tmp_path)
    assert (ran["kind"], ran["tool"], ran["by"], ran["patterns"]) == (
        *("call", "shell", "user"),
        ["echo out"],
    )
    assert (attached["kind"], attached["permission"], attached["action"]) == (
        *("decision", "read"),
        "deny",
    )


class Rules:
    """The rules of the session as the only policy."""

    @hookimpl
    async def permission_ask(self, session: Any, request: PermissionRequest) -> Verdict:
        return judge_rules(session.rulesets, request.permission, request.patterns)
