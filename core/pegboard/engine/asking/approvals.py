"""Approvals for good: what covers a request, what a choice would cover, and who takes it back."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.changes import DropApproval, PutApproval
from pegboard.contract.context import SessionView
from pegboard.engine.engine import Engine
from pegboard.engine.writer import Writer
from pegboard.errors import NotFoundError
from pegboard.policy.pending import PermissionAnswer
from pegboard.policy.permissions import is_unclear, literally, matches, unapproved
from pegboard.schema.session import (
    USER_KEY,
    Approval,
    PermissionRequest,
    Rule,
    Scope,
    Verdict,
)

if TYPE_CHECKING:
    from pegboard.engine.asking.explained import Explanation

_TAILS = (" *", "/*")
"""How a tool says that a choice for good is for more than the one text."""
NO_OPINION = Verdict(action="ask", reason="no rule and no plugin has an opinion")


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
    ) -> "Explanation":
        """What would be asked for this call, and who would answer what; nothing runs.

        :raises ToolError: when there is no such tool, or the arguments do not fit it.
        :raises NotFoundError: when there is no such agent.
        """
        from pegboard.engine.asking.explained import explained  # only who asks needs it

        return await explained(self._engine, tool, args, agent=agent)

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it from now on, as far as `scope` goes.

        `agent_only` limits that to the agent that asked.

        Returns once it is stored.

        :raises NotFoundError: when no request of this id waits.
        """
        await self._engine.requests.reply(request_id, "always", scope=scope, agent_only=agent_only)

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


async def approved(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> Verdict:
    """The verdict that remains when what was approved for good is taken off the request."""
    approvals = await _approvals(engine, view)
    rest = unapproved([each.rule for each in approvals], request.permission, request.patterns)
    if rest == ():
        given = next(each for each in approvals if not _uncovered(each.rule, request))
        rule = given.rule
        reason = f'approved before, for the {given.scope}: {rule.permission} "{rule.pattern}"'
        return Verdict(action="allow", reason=reason, source="approvals", rule=rule)
    if rest == request.patterns:
        return verdict
    smaller = replace(request, patterns=rest)
    return (
        await engine.hooks.strictest(hookspecs.permission_ask, session=view, request=smaller)
        or NO_OPINION
    )


def _uncovered(rule: Rule, request: PermissionRequest) -> bool:
    """Whether the rule covers no pattern of the request."""
    rest = unapproved([rule], request.permission, request.patterns)
    return len(rest) == len(request.patterns or ("*",))


async def _approvals(engine: Engine, view: SessionView) -> list[Approval]:
    """What was approved for all projects, this one, this session, or those that it works for."""
    keys = [USER_KEY, engine.workspace.project_id, view.id]
    parent = view.info.parent_id
    while parent is not None and parent not in keys:
        keys.append(parent)
        parent = (await engine.storage.session(parent)).parent_id
    found = await engine.storage.approvals(*keys)
    return [each for each in found if each.agent in (None, view.agent.name)]


def rules_for_good(request: PermissionRequest) -> tuple[Rule, ...]:
    """What an approval for good of the request allows."""
    return tuple(
        Rule(permission=request.permission, pattern=pattern, action="allow")
        for pattern in request.always or map(literally, request.patterns)
    )


async def approve(
    engine: Engine,
    view: SessionView,
    answer: PermissionAnswer,
    rules: tuple[Rule, ...],
    writer: Writer,
) -> None:
    """Store what is approved for good."""
    only = view.agent.name if answer.agent_only else None
    keys = {"session": view.id, "project": engine.workspace.project_id, "user": USER_KEY}
    writer.change(PutApproval(keys[answer.scope], rules, agent=only, at=engine.now()))
    await writer.barrier()


def for_good(request: PermissionRequest) -> tuple[str, ...]:
    """What a choice for good would allow: no `*` counts that only stands in what is asked for.

    The agent chooses names: that of a folder `/srv/*` must not have all folders allowed.
    """
    if any(map(is_unclear, request.patterns)):
        return tuple(each if is_unclear(each) else literally(each) for each in request.patterns)
    if not any(literally(pattern) != pattern for pattern in request.patterns):
        return request.always
    return tuple(_narrow(pattern) for pattern in request.always)


def _narrow(pattern: str) -> str:
    tail = next((tail for tail in _TAILS if pattern.endswith(tail)), "")
    return pattern.removesuffix(tail).replace("*", "?") + tail if tail else literally(pattern)
