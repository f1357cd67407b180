"""The permissions as a user looks at them: what would be asked, and what is approved for good."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.engine.asking.approvals import check_narrowed
from pegboard.engine.asking.decision import (
    SANDBOX,
    as_asked,
    as_if,
    judged,
    make_request,
    unattended,
)
from pegboard.engine.asking.toolquestion import asked_path
from pegboard.engine.engine import Engine
from pegboard.engine.sessions import unstored_view
from pegboard.errors import NotFoundError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.policy.agents import default_agent, find_agent
from pegboard.policy.pending import PermissionAnswer
from pegboard.policy.permissions import matches, strictest
from pegboard.processes import Enclosure
from pegboard.schema.session import USER_KEY, Approval, PermissionRequest, Rule, Scope, Verdict
from pegboard.storage.changes import DropApproval


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin says of a request."""

    plugin: str
    request_id: str
    verdict: Verdict


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons why a call would be allowed, asked for or denied.

    `told` is False for a tool that does not say beforehand what it will ask: then only the
    rules about all of its calls are known. `session` is what the plugins were shown, with the
    rules that bind it. `to_allow` are rules that would allow the call, each tried; where it is
    asked for and there are none, no rule of the user's would. `verdicts` are those of the single
    requests, `headless` is the verdict where nobody is asked. `sandbox` says what encloses the
    processes of tools, and whether the verdict is due to it; it is empty where nothing does.
    """

    tool: str
    told: bool
    verdict: Verdict
    headless: Verdict
    session: SessionView
    requests: tuple[PermissionRequest, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    to_allow: tuple[Rule, ...] = ()
    sandbox: str = ""


async def explained(
    engine: Engine, name: str, args: Mapping[str, Any], *, agent: str | None = None
) -> Explanation:
    """How the permissions of this call would be decided.

    :raises ToolError: when there is no such tool, or the arguments do not fit it.
    :raises NotFoundError: when there is no such agent.
    """
    tool = engine.tools.get(name)
    if tool is None:
        raise ToolError(f"there is no tool {name!r}; there are: {', '.join(sorted(engine.tools))}")
    chosen = find_agent(engine.agents, agent or default_agent(engine.config, engine.agents).name)
    view = unstored_view(engine, chosen)
    notes = _Notes(engine, view)
    values = await asyncio.to_thread(tool.validate, args)
    told = await tool.requests(notes, values)  # type: ignore[arg-type]  # a part of a context
    if not told:
        await notes.ask(tool.permission, ("*",))
    verdicts = [await judged(engine, view, request) for request in notes.requests]
    unasked = Verdict(action="allow", reason="it asks for nothing")
    asked = [
        as_asked(view, request, verdict)
        for request, verdict in zip(notes.requests, verdicts, strict=True)
    ]
    return Explanation(
        tool=name,
        told=told,
        verdict=strictest(verdicts) or unasked,
        headless=strictest(map(unattended, notes.requests, verdicts)) or unasked,
        session=view,
        requests=tuple(asked),
        verdicts=tuple(verdicts),
        opinions=await _opinions(engine.hooks, view, notes.requests),
        to_allow=await _to_allow(engine, view, asked, verdicts),
        sandbox=_sandbox(engine.enclosure, verdicts),
    )


def _sandbox(enclosure: "Enclosure | None", verdicts: Sequence[Verdict]) -> str:
    if enclosure is None:
        return ""
    is_allowed = all(verdict.action == "allow" for verdict in verdicts)
    changed = is_allowed and any(verdict.source == SANDBOX for verdict in verdicts)
    effect = "it answers what would be asked" if changed else "it does not change the verdict"
    return f"{enclosure.described}: {effect}"


class _Notes:
    """As much of a `ToolContext` as asking takes; it only notes what is asked."""

    trusted = False
    trusted_by_user = False
    cancelled = False

    def __init__(self, engine: Engine, view: SessionView) -> None:
        self._engine = engine
        self.session = view
        self.directory = view.directory
        self.worktree = view.worktree
        self.agent = view.agent.name
        self.requests: list[PermissionRequest] = []

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.requests.append(
            make_request(
                self._engine.ids,
                session_id=self.session.id,
                permission=permission,
                patterns=patterns,
                always=always,
                metadata=metadata or {},
                tool=None,
            )
        )

    async def env(self) -> Mapping[str, str]:
        return await self._engine.tool_env(self.session)

    async def ask_path(self, path: Path) -> Path:
        return await asked_path(self._engine.workspace, self._engine.places, path, self.ask)


async def _opinions(
    hooks: Hooks, view: SessionView, requests: Sequence[PermissionRequest]
) -> tuple[Opinion, ...]:
    found: list[Opinion] = []
    for request in requests:
        said = await hooks.opinions(hookspecs.permission_ask, session=view, request=request)
        found += [
            Opinion(plugin=each.plugin, request_id=request.id, verdict=each.value) for each in said
        ]
    return tuple(found)


async def _to_allow(
    engine: Engine,
    view: SessionView,
    requests: Sequence[PermissionRequest],
    verdicts: Sequence[Verdict],
) -> tuple[Rule, ...]:
    """What the user could allow so that nothing is asked; nothing where that would not do."""
    found: list[Rule] = []
    for request, verdict in zip(requests, verdicts, strict=True):
        if verdict.action == "allow":
            continue
        patterns = request.always or request.patterns
        rules = tuple(Rule(request.permission, pattern, "allow") for pattern in patterns)
        after = await judged(engine, as_if(view, rules), request)
        if verdict.action == "deny" or after.action != "allow":
            return ()
        found += rules
    return tuple(found)


class Policy:
    """The permissions of one App, as its user looks at them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def sandbox(self) -> str:
        """What encloses the processes of tools, on one line; empty where nothing does."""
        enclosure = self._engine.enclosure
        return "" if enclosure is None else enclosure.described

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that enclosed processes reach, where there is a list of them."""
        enclosure = self._engine.enclosure
        return () if enclosure is None else enclosure.hosts

    async def explain(
        self, tool: str, args: Mapping[str, Any], *, agent: str | None = None
    ) -> Explanation:
        """What would be asked for this call, and who would answer what; nothing runs.

        :raises ToolError: when there is no such tool, or the arguments do not fit it.
        :raises NotFoundError: when there is no such agent.
        """
        return await explained(self._engine, tool, args, agent=agent)

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow what waits, and the like of it from now on, as far as `scope` goes.

        `agent_only` limits that to the agent that asked, `patterns` to what they match: they may
        only narrow what the request offers as `always`, and cover what it covers of the request.

        Returns once it is stored.

        :raises NotFoundError: when no request of this id waits.
        :raises InvalidInputError: for patterns that allow more, or less than the request; it waits.
        """
        requests = self._engine.requests
        answer = PermissionAnswer(
            reply="always", scope=scope, agent_only=agent_only, patterns=tuple(patterns)
        )
        for request in requests.pending():
            if request.id == request_id:
                check_narrowed(request, answer.patterns)
        await requests.answer(request_id, answer)

    async def approvals(self) -> tuple[Approval, ...]:
        """What was approved for good: for single sessions, for the project, for all projects."""
        storage, project = self._engine.storage, self._engine.workspace.project_id
        return (
            *await storage.session_approvals(project),
            *await storage.approvals(project),
            *await storage.approvals(USER_KEY),
        )

    async def revoke(
        self, permission: str = "*", pattern: str = "*", *, ids: Collection[int] = ()
    ) -> tuple[Approval, ...]:
        """The approvals that are hereby taken back, from all Apps at once.

        They are those with these numbers, or those whose texts fit both wildcards.

        :raises NotFoundError: when none fits, or one of the numbers is no approval's.
        """
        found = await self.approvals()
        if unknown := sorted(set(ids) - {each.id for each in found}):
            raise NotFoundError("approval", ", ".join(map(str, unknown)))
        chosen = tuple(
            each
            for each in found
            if (each.id in ids or not ids)
            and matches(permission, each.rule.permission)
            and matches(pattern, each.rule.pattern)
        )
        if not chosen:
            raise NotFoundError("approval", f"{permission} {pattern}")
        await self._engine.storage.commit(DropApproval(tuple(each.id for each in chosen)))
        for each in chosen:
            facts = {"scope": each.scope, "agent": each.agent, "pattern": each.rule.pattern}
            facts |= {"permission": each.rule.permission, "by": "user"}
            await self._engine.decided("revoke", facts)
        return chosen
