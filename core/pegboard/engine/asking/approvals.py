"""Approvals for good: what covers a request, and what a choice of a person would cover."""

from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.engine.engine import Engine
from pegboard.engine.writer import Writer
from pegboard.policy.pending import PermissionAnswer
from pegboard.policy.permissions import is_unclear, literally, unapproved
from pegboard.schema.session import (
    USER_KEY,
    Approval,
    PermissionRequest,
    Rule,
    Verdict,
)
from pegboard.storage.changes import PutApproval

_TAILS = (" *", "/*")
"""How a tool says that a choice for good is for more than the one text."""
NO_OPINION = Verdict(action="ask", reason="no rule and no plugin has an opinion")


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
