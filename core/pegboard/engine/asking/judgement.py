"""The permission requests of a tool call and their verdicts, without running the call."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard.contract import toolhooks
from pegboard.contract.context import SessionView
from pegboard.contract.plugin import Answer
from pegboard.engine.asking.approvals import check_narrowed
from pegboard.engine.asking.decision import (
    as_asked,
    as_if,
    judged,
    make_request,
    record,
    unattended,
)
from pegboard.engine.asking.requirements import Requirements
from pegboard.engine.engine import Engine
from pegboard.engine.input.usermessage import model_for, unasked
from pegboard.engine.sessions import ancestors_of, imposed_rulesets, make_view, unstored_view
from pegboard.errors import ToolError
from pegboard.hooks.isolation import blaming
from pegboard.policy.agents import default_agent, find_agent
from pegboard.policy.pending import PermissionAnswer
from pegboard.providers import ToolDefinition
from pegboard.schema.session import Approval, PermissionRequest, Rule, Scope, Verdict
from pegboard.storage.changes import DropApproval


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The expected decision about a permission request; `asked` is what a user would see.

    `verdict` is the result of all rules, plugins and approvals. `headless` is the verdict if no
    user is present. `opinions` are the verdicts of the individual plugins.
    """

    asked: PermissionRequest
    verdict: Verdict
    headless: Verdict
    opinions: tuple[Answer[Verdict], ...]


class ForeseenCall(msgspec.Struct, frozen=True, kw_only=True):
    """The permission requests that a tool call would make in a new session.

    `session` is the view of that session, as hooks of plugins would receive it.
    """

    session: SessionView
    requests: tuple[PermissionRequest, ...]


class Policy:
    """The tools and permissions of one App, for programs that inspect them but ask no user."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def offered(self) -> tuple[ToolDefinition, ...]:
        """Return the tool definitions for the default agent's model in a new session."""
        from pegboard.engine.request import offered_tools  # few look at them

        engine = self._engine
        view = unstored_view(engine, default_agent(engine.config, engine.agents))
        return await offered_tools(engine.hooks, engine.tools, view, {})

    async def foresee(
        self, tool_id: str, args: Mapping[str, Any], *, agent: str | None = None
    ) -> ForeseenCall:
        """Return the requests that a call of this tool would make, without running the tool.

        :raises ToolError: when there is no such tool, or the arguments do not match it, or its
          `requires` refuses them or exceeds the time limit of a call.
        :raises PluginError: for all other errors of `requires`.
        :raises NotFoundError: when there is no such agent.
        """
        engine = self._engine
        if (tool := engine.tools.get(tool_id)) is None:
            names = ", ".join(sorted(engine.tools))
            raise ToolError(f"there is no tool {tool_id!r}; there are: {names}")
        name = agent or default_agent(engine.config, engine.agents).name
        view = unstored_view(engine, find_agent(engine.agents, name))
        requests: list[PermissionRequest] = []

        async def note(request: PermissionRequest, _: bool) -> None:  # noqa: FBT001 - `Decide`
            made = [(each.permission, each.patterns) for each in requests]
            if (request.permission, request.patterns) not in made:  # one that is made again later
                requests.append(request)

        values = await asyncio.to_thread(tool.validate, args)
        requirements = Requirements(engine, view, tool, note)
        limit_s = tool.timeout_s or engine.config.tool_timeout_s
        code = f"`requires` of the tool {tool.id}"
        try:
            with blaming(requirements.plugin.name, code, passing=(TimeoutError,)):
                async with asyncio.timeout(limit_s):
                    await requirements.settle(values)
        except TimeoutError as error:
            raise ToolError(f"{code} did not end within {limit_s:g} s") from error
        return ForeseenCall(session=view, requests=tuple(requests))

    async def judge(
        self, session: SessionView, request: PermissionRequest, *, allowing: tuple[Rule, ...] = ()
    ) -> Judgement:
        """Return how the request would be decided if the user's rules ended with `allowing`."""
        view = as_if(session, allowing)
        verdict = await judged(self._engine, view, request)
        return Judgement(
            asked=as_asked(view, request, verdict),
            verdict=verdict,
            headless=unattended(request, verdict),
            opinions=await self._engine.hooks.opinions(
                toolhooks.permission_ask, session=view, request=request, stash=self._engine.stash
            ),
        )

    async def decide(
        self,
        session_id: str,
        permission: str,
        patterns: Sequence[str],
        *,
        agent: str,
        metadata: Mapping[str, Any],
    ) -> Verdict:
        """Judge a request of a session without asking the user, and report the verdict to plugins.

        A verdict of ask becomes deny.

        :raises NotFoundError: when the session or agent is unknown.
        """
        engine = self._engine
        session = await engine.storage.session(session_id)
        model = unasked(model_for(engine, session, None, agent))  # no rule depends on it
        ancestors = await ancestors_of(engine.storage, session)
        parents, depth = imposed_rulesets(engine, ancestors), len(ancestors)
        speaker = find_agent(engine.agents, agent)
        view = make_view(engine, session, speaker, model, depth=depth, parents=parents)
        request = make_request(
            engine.ids,
            session_id=session_id,
            permission=permission,
            patterns=patterns,
            metadata=metadata,
        )
        verdict = await judged(engine, view, request)
        if verdict.action == "ask":
            verdict = replace(verdict, action="deny")
        await record(engine, view, request, verdict)
        return verdict

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow the request that waits, and similar requests from now on, within `scope`.

        `agent_only` limits the approval to the agent that asked. `patterns` may narrow what the
        request offers as `always`, but must still cover the request. The method returns when the
        approval is stored.

        :raises NotFoundError: when no request with this id waits.
        :raises InvalidInputError: for patterns that allow more than offered, or do not cover the
          request. The request then still waits.
        """
        requests = self._engine.requests
        answer = PermissionAnswer(
            reply="always", scope=scope, agent_only=agent_only, patterns=tuple(patterns)
        )
        for request in requests.pending():
            if request.id == request_id:
                check_narrowed(request, answer.patterns)
        await requests.answer(request_id, answer)

    async def revoke(self, approvals: Sequence[Approval]) -> None:
        """Revoke permanent approvals, in all Apps at once."""
        await self._engine.storage.commit(DropApproval(tuple(each.id for each in approvals)))
        for each in approvals:
            rule, facts = each.rule, {"scope": each.scope, "agent": each.agent, "by": "user"}
            said = {**facts, "permission": rule.permission, "pattern": rule.pattern}
            await self._engine.decided("revoke", said)
