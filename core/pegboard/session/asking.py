"""One permission request: rules and plugins first, then what was approved, then a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pegboard.context import SessionView
from pegboard.errors import (
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
)
from pegboard.permissions import UNCLEAR, Answer, unapproved
from pegboard.schema.event import PermissionAsked, PermissionReplied
from pegboard.schema.permission import PermissionRequest, Rule, Scope, ToolReference, Verdict
from pegboard.session.engine import Engine
from pegboard.session.writer import Writer
from pegboard.storage.changes import PutApproval

_ASK = Verdict(action="ask", reason="no rule and no plugin has an opinion")
USER_SCOPE = "user"
"""Stands for a project's id before what the user approved for all projects."""
ONCE = "once"
"""In a request's metadata: it is asked every time, and cannot be approved for good."""
REJECTED = "The user rejected permission to use this specific tool call."


def make_request(  # noqa: PLR0913 - the fields of a request, all keyword-only
    engine: Engine,
    *,
    session_id: str,
    permission: str,
    patterns: Sequence[str],
    always: Sequence[str],
    metadata: Mapping[str, Any],
    tool: ToolReference | None,
) -> PermissionRequest:
    """A request with an id of its own."""
    return PermissionRequest(
        id=engine.ids.new("permission"),
        session_id=session_id,
        permission=permission,
        patterns=tuple(patterns),
        metadata=dict(metadata),
        always=tuple(always),
        tool=tool,
    )


async def settle(
    engine: Engine, view: SessionView, request: PermissionRequest, writer: Writer
) -> None:
    """Nothing, once the request is allowed.

    :raises PermissionDeniedError: when it is denied, or nobody is there to be asked.
    :raises PermissionRejectedError: when the user rejects it.
    :raises PermissionCorrectedError: when the user says what to do instead.
    """
    verdict = await judged(engine, view, request)
    await _record(engine, view, request, verdict)
    if verdict.action == "allow":
        return
    if verdict.action == "deny":
        raise PermissionDeniedError(verdict.reason or f"{request.permission} is denied")
    if verdict.firm or any(pattern.startswith(UNCLEAR) for pattern in request.patterns):
        request = replace(request, always=(), metadata={**request.metadata, ONCE: True})
    answer = await _asked(engine, request, writer)
    if answer.reply == "reject" and answer.message:
        raise PermissionCorrectedError(f"{REJECTED} The user said: {answer.message}")
    if answer.reply == "reject":
        raise PermissionRejectedError(REJECTED)


async def _record(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> None:
    facts = {
        "session": request.session_id,
        "agent": view.agent.name,
        "permission": request.permission,
        "patterns": request.patterns,
        "action": verdict.action,
        "reason": verdict.reason,
        "source": verdict.source,
    }
    await engine.audit.write("decision", facts)


async def judged(engine: Engine, view: SessionView, request: PermissionRequest) -> Verdict:
    """The verdict of all rules and plugins, with what the user has approved for good."""
    verdict = await engine.hooks.permission_ask(session=view, request=request) or _ASK
    if verdict.action != "ask" or verdict.firm:
        return verdict
    approvals = [*engine.approvals, *await _wider_and_narrower(engine, view)]
    rest = unapproved(approvals, request.permission, request.patterns) if approvals else None
    if rest == ():
        return Verdict(action="allow", reason="approved before", source="approvals")
    if rest is None or rest == request.patterns:
        return verdict
    smaller = replace(request, patterns=rest)
    return await engine.hooks.permission_ask(session=view, request=smaller) or _ASK


async def _wider_and_narrower(engine: Engine, view: SessionView) -> tuple[Rule, ...]:
    """What was approved for all projects, and for this session or the one that it works for."""
    found: list[Rule] = []
    for key in (USER_SCOPE, view.info.parent_id, view.id):
        if key is not None:
            found += await engine.storage.approvals(key)
    return tuple(found)


async def _asked(engine: Engine, request: PermissionRequest, writer: Writer) -> Answer:
    if not engine.desk.interactive:
        return await engine.desk.wait(request)  # says why nobody can be asked
    writer.say(PermissionAsked(request=request))
    answer = await engine.desk.wait(request)
    facts = {"session": request.session_id, "request": request.id, "reply": answer.reply}
    await engine.audit.write("reply", {**facts, "permission": request.permission})
    if answer.reply == "always" and not request.metadata.get(ONCE):
        await _approve(engine, request, answer.scope, writer)
    writer.say(
        PermissionReplied(session_id=request.session_id, request_id=request.id, reply=answer.reply)
    )
    return answer


async def _approve(
    engine: Engine, request: PermissionRequest, scope: Scope, writer: Writer
) -> None:
    """Store what is approved for good, and settle the waiting requests that it covers."""
    rules = tuple(
        Rule(permission=request.permission, pattern=pattern, action="allow")
        for pattern in request.always or request.patterns
    )
    project = engine.workspace.project_id
    keys = {"session": request.session_id, "project": project, "user": USER_SCOPE}
    writer.change(PutApproval(keys[scope], rules))
    await writer.barrier()
    if scope == "project":
        engine.approvals.extend(rules)

    def covered(other: PermissionRequest) -> bool:
        if other.metadata.get(ONCE) or (
            scope == "session" and other.session_id != request.session_id
        ):
            return False
        return not unapproved([*engine.approvals, *rules], other.permission, other.patterns)

    engine.desk.recheck(covered)
