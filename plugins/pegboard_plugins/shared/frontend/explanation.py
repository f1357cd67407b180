"""An explanation why a tool call would be allowed, asked for or denied."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard import App, SessionView
from pegboard.app import Judgement
from pegboard.permissions import strictest_verdict
from pegboard.schema.session import Action, PermissionRequest, Rule, Verdict
from pegboard_plugins.shared.frontend.permissionmodes import MODES, PLAN, with_mode

_SANDBOX = "sandbox"
"""The source of a verdict that the sandbox has changed."""


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one plugin on a request."""

    plugin: str
    request_id: str
    verdict: Verdict


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation why a tool call would be allowed, asked for or denied.

    `session` is the session that the policies judged, with its rules. `verdicts` has one verdict
    for each of `requests`, and `headless` is the verdict on the call without a user. `to_allow` are
    rules that the user could add to allow the call, or () if no rule could. `sandbox` names the
    sandbox and whether it decides; it is empty without a sandbox. `modes` has the action in each
    permission mode.
    """

    tool: str
    verdict: Verdict
    headless: Verdict
    session: SessionView
    requests: tuple[PermissionRequest, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    to_allow: tuple[Rule, ...] = ()
    sandbox: str = ""
    modes: Mapping[str, Action] = {}

    @property
    def line(self) -> str:
        """The command line that a shell tool call would run; "" for calls of other tools."""
        return next((request.line for request in self.requests if request.line), "")


async def explain(
    app: App, name: str, args: Mapping[str, Any], *, agent: str | None = None
) -> Explanation:
    """Predict the permission requests of a tool call and the verdicts on them; do not run the call.

    :raises ToolError: when the tool does not exist, or rejects the arguments.
    :raises NotFoundError: when the agent does not exist.
    """
    call = await app.policy.foresee(name, args, agent=agent)
    judged = [await app.policy.judge(call.session, request) for request in call.requests]
    unasked = Verdict(action="allow", reason="it requires nothing")
    verdicts = tuple(each.verdict for each in judged)
    return Explanation(
        tool=name,
        verdict=strictest_verdict(verdicts) or unasked,
        headless=strictest_verdict(each.headless for each in judged) or unasked,
        session=call.session,
        requests=tuple(each.asked for each in judged),
        verdicts=verdicts,
        opinions=tuple(
            Opinion(plugin=said.plugin, request_id=each.asked.id, verdict=said.value)
            for each in judged
            for said in each.opinions
        ),
        to_allow=await _to_allow(app, call.session, judged),
        sandbox=_sandbox(app, verdicts),
        modes={
            name: await _in_mode(app, call.session, call.requests, name)
            for name in MODES
            if name != PLAN
        },
    )


async def _in_mode(
    app: App, session: SessionView, requests: Sequence[PermissionRequest], mode: str
) -> Action:
    """Return the strictest action for the requests in a session with this permission mode."""
    info = replace(session.info, metadata=with_mode(session.info, mode))
    view = replace(session, info=info)
    judged = [await app.policy.judge(view, request) for request in requests]
    verdict = strictest_verdict(each.verdict for each in judged)
    return verdict.action if verdict is not None else "allow"


def _sandbox(app: App, verdicts: Sequence[Verdict]) -> str:
    if app.enclosure is None:
        return ""
    is_allowed = all(verdict.action == "allow" for verdict in verdicts)
    changed = is_allowed and any(verdict.source == _SANDBOX for verdict in verdicts)
    effect = "it answers what would be asked" if changed else "it does not change the verdict"
    return f"{app.enclosure.described}: {effect}"


async def _to_allow(app: App, view: SessionView, judged: Sequence[Judgement]) -> tuple[Rule, ...]:
    """Return rules that would allow the tool call if the user added them, or () if none can."""
    found: list[Rule] = []
    for request, verdict in ((each.asked, each.verdict) for each in judged):
        if verdict.action == "allow":
            continue
        patterns = request.always or request.patterns
        rules = tuple(Rule(request.permission, pattern, "allow") for pattern in patterns)
        after = await app.policy.judge(view, request, allowing=rules)
        if verdict.action == "deny" or after.verdict.action != "allow":
            return ()
        found += rules
    return tuple(found)
