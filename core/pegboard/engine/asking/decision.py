"""The decision about a permission request: by rules and plugins, then approvals, then a user."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pegboard.contract import toolhooks
from pegboard.contract.context import SessionView
from pegboard.engine.asking.approvals import ONCE, approve, approved, for_good, policies, rules_of
from pegboard.engine.engine import Engine
from pegboard.engine.writer import Writer
from pegboard.errors import PermissionCorrectedError, PermissionDeniedError, PermissionRejectedError
from pegboard.ids import IdSource
from pegboard.policy.pending import PermissionAnswer, advice, advised_rules, no_rule, nobody
from pegboard.policy.permissions import of_one_text
from pegboard.schema.event import PermissionAsked, PermissionReplied
from pegboard.schema.session import PermissionRequest, Reply, Rule, ToolReference, Verdict
from pegboard.schema.wire import check_json

AUTO = "auto"
SANDBOX = "sandbox"
"""The source of a verdict that the sandbox has changed."""
HEADLESS = "headless"
REJECTED = "The user rejected permission to use this specific tool call."


def make_request(  # noqa: PLR0913 - the fields of a request, all keyword-only
    ids: IdSource,
    *,
    session_id: str,
    permission: str,
    patterns: Sequence[str],
    metadata: Mapping[str, Any],
    always: Sequence[str] = (),
    tool: ToolReference | None = None,
) -> PermissionRequest:
    """Return a permission request with a new id.

    :raises InvalidInputError: when the metadata have no JSON form.
    """
    check_json(metadata, f"the metadata of the request for {permission}")
    return PermissionRequest(
        id=ids.new("permission"),
        session_id=session_id,
        permission=permission,
        patterns=tuple(map(of_one_text, patterns)),
        metadata=dict(metadata),
        always=tuple(always),
        tool=tool,
    )


async def settle(
    engine: Engine, view: SessionView, request: PermissionRequest, writer: Writer
) -> None:
    """Wait until rules, plugins or the user allow the permission request.

    If the user has allowed the command line of a call, the user is not asked again about the call's
    other requests.

    :raises PermissionDeniedError: when it is denied, or no user is present to be asked.
    :raises PermissionRejectedError: when the user rejects it.
    :raises PermissionCorrectedError: when the user rejects it with other instructions.
    """
    verdict = await _settled(engine, view, request)
    if verdict.action == "allow":
        return
    if verdict.action == "deny":
        raise _denied(request, verdict)
    line = request.tool, request.metadata.get("command")
    if not verdict.firm and line[1] and engine.requests.allowed_lines.get(view.id) == line:
        answer = PermissionAnswer(reply="once", by="approval")
        await _record_answer(engine, request, answer, agent=view.agent.name, rules=())
        return
    answer = await _asked(engine, view, as_asked(view, request, verdict), writer)
    if answer.by == "nobody":
        raise _denied(request, await _advised(engine, view, request, verdict))
    if answer.reply == "reject" and answer.message:
        raise PermissionCorrectedError(f"{REJECTED} The user said: {answer.message}")
    if answer.reply == "reject":
        raise PermissionRejectedError(REJECTED)
    if answer.by == "user":
        engine.requests.allowed_lines[view.id] = line


async def refuse_denied(engine: Engine, view: SessionView, request: PermissionRequest) -> None:
    """Judge a request that the tool will make again later, and raise if the verdict is deny.

    :raises PermissionDeniedError: when it is denied, or would be asked and no user is present.
    """
    verdict = await judged(engine, view, request)
    if not engine.interactive:
        verdict = await _advised(engine, view, request, verdict)
    if verdict.action == "deny":
        await record(engine, view, request, verdict)
        raise _denied(request, verdict)


def _denied(request: PermissionRequest, verdict: Verdict) -> PermissionDeniedError:
    return PermissionDeniedError(
        verdict.reason or f"{request.permission} is denied by the plugin {verdict.source}",
        advice=verdict.advice or ("" if verdict.rule else no_rule(verdict)),
    )


async def _settled(engine: Engine, view: SessionView, request: PermissionRequest) -> Verdict:
    """Judge the request, report the verdict to plugins, and return the verdict.

    If an approval is added meanwhile, the request is judged again. Otherwise a request that is
    about to wait for the user could miss the approval.
    """
    while True:
        known = engine.requests.rechecks
        verdict = await judged(engine, view, request)
        if not engine.interactive:
            verdict = await _advised(engine, view, request, verdict)
        await record(engine, view, request, verdict)
        if verdict.action != "ask" or known == engine.requests.rechecks:
            return verdict


async def _advised(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> Verdict:
    """Return the verdict for an App without a user: ask becomes deny, with advice to the user.

    The advice names rules that would allow the request. If judging the request with these rules
    does not allow it, the advice says instead that no rule would.
    """
    said = unattended(request, verdict)
    if said is not verdict and said.advice != no_rule(verdict):
        allowing = as_if(view, advised_rules(request))
        after = await judged(engine, allowing, request)
        if after.action != "allow":
            return replace(said, advice=no_rule(after))
    return said


def as_if(view: SessionView, rules: tuple[Rule, ...]) -> SessionView:
    """Return the session as if the user's list of rules ended with `rules`."""
    rulesets = tuple(
        replace(each, rules=each.rules + rules) if each.source == "config" else each
        for each in view.rulesets
    )
    return replace(view, rulesets=rulesets)


def as_asked(view: SessionView, request: PermissionRequest, verdict: Verdict) -> PermissionRequest:
    """Add the agent and the reason to a request, and limit what a user can approve permanently.

    Nothing can be approved permanently if a plugin or the tool wants the user to be asked every
    time. A pattern for an unclear string can only be approved literally, without wildcards.
    """
    metadata = {**request.metadata, "agent": view.agent.name, "reason": verdict.reason}
    if verdict.firm or request.metadata.get(ONCE):
        return replace(request, always=(), metadata={**metadata, ONCE: True})
    return replace(request, metadata=metadata, always=for_good(request))


def unattended(request: PermissionRequest, verdict: Verdict) -> Verdict:
    """Return the verdict that applies without a user: ask becomes deny."""
    if verdict.action != "ask":
        return verdict
    return replace(
        verdict,
        action="deny",
        reason=nobody(request, because=verdict),
        source=HEADLESS,
        advice=advice(request, because=verdict),
    )


async def judged(engine: Engine, view: SessionView, request: PermissionRequest) -> Verdict:
    """Judge a request by rules, plugins, approvals, the sandbox and `auto_approve`."""
    verdict = await policies(engine, view, request)
    if verdict.action == "ask" and not verdict.firm and not request.metadata.get(ONCE):
        verdict = await approved(engine, view, request, verdict)
    if verdict.action == "ask" and not verdict.firm:
        verdict = await _unasked_inside(engine, view, request, verdict)
    if verdict.action == "ask" and not verdict.firm and engine.config.auto_approve:
        reason = f"allowed without asking (auto_approve): {verdict.reason}"
        return replace(verdict, action="allow", reason=reason, source=AUTO)
    return verdict


async def _asked(
    engine: Engine, view: SessionView, request: PermissionRequest, writer: Writer
) -> PermissionAnswer:
    writer.say(PermissionAsked(request=request))

    async def allowed() -> bool:
        return (await judged(engine, view, request)).action == "allow"

    answered = False

    async def note(answer: PermissionAnswer, keep: Callable[[], None]) -> None:
        nonlocal answered
        answered = True
        if await _store(engine, view, request, answer, writer):
            keep()
            await engine.requests.recheck()
        _tell(writer, request, answer.reply)

    try:
        return await engine.requests.wait(request, note=note, allowed=allowed)
    except asyncio.CancelledError:
        if not answered:
            _tell(writer, request, "reject")  # nobody has to answer it any more
        raise


async def _store(
    engine: Engine,
    view: SessionView,
    request: PermissionRequest,
    answer: PermissionAnswer,
    writer: Writer,
) -> bool:
    """Report the user's answer to plugins; return whether it was stored as a permanent approval."""
    rules = rules_of(request, answer)
    await _record_answer(engine, request, answer, agent=view.agent.name, rules=rules)
    is_for_good = bool(rules) and answer.by == "user"
    if is_for_good:
        await approve(engine, view, answer, rules, writer)
    return is_for_good


def _tell(writer: Writer, request: PermissionRequest, reply: Reply) -> None:
    writer.say(PermissionReplied(session_id=request.session_id, request_id=request.id, reply=reply))


async def record(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> None:
    """Report a permission decision to plugins before the decision takes effect.

    :raises PermissionDeniedError: when a plugin objects, for example because it cannot record it.
    """
    rule = verdict.rule
    facts = _facts(request, view.agent.name) | {
        "action": verdict.action,
        "by": verdict.decider or "nobody",
        "rule": rule and [rule.permission, rule.pattern, rule.action],
        "reason": verdict.reason,
    }
    await engine.decided("decision", facts)


async def _record_answer(
    engine: Engine,
    request: PermissionRequest,
    answer: PermissionAnswer,
    *,
    agent: str,
    rules: tuple[Rule, ...],
) -> None:
    facts = _facts(request, agent) | {
        "action": "deny" if answer.reply == "reject" else "allow",
        "by": answer.by,
        "reply": answer.reply,
    }
    if rules and answer.by == "user":
        facts |= {"scope": answer.scope, "agent_only": answer.agent_only}
        facts["approved"] = [rule.pattern for rule in rules]
    await engine.decided("reply", facts)


def _facts(request: PermissionRequest, agent: str) -> dict[str, Any]:
    return {
        "session": request.session_id,
        "request": request.id,
        "call": request.tool.call_id if request.tool else None,
        "agent": agent,
        "permission": request.permission,
        "patterns": request.patterns,
        **({"line": request.line} if request.line else {}),
    }


async def _unasked_inside(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> Verdict:
    """Return allow for the verdict ask if the sandbox makes it unnecessary to ask the user.

    If a plugin's own verdict on the request is ask, the user is still asked.
    """
    enclosure = engine.enclosure
    if enclosure is None or not engine.config.sandbox_allow_commands:
        return verdict
    if not await enclosure.contains(request, view.rulesets):
        return verdict
    opinions = await engine.hooks.opinions(
        toolhooks.permission_ask, session=view, request=request, stash=engine.stash
    )
    if any(each.value.action == "ask" and each.value.rule is None for each in opinions):
        return verdict
    reason = f"it runs in the sandbox ({enclosure.level}); without it: {verdict.reason}"
    return replace(verdict, action="allow", reason=reason, source=SANDBOX)
