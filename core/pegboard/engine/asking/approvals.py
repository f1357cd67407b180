"""Permanent approvals: which requests an approval covers, and what an answer would approve."""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from pegboard.contract import toolhooks
from pegboard.contract.context import SessionView
from pegboard.engine.engine import Engine
from pegboard.engine.writer import Writer
from pegboard.errors import InvalidInputError
from pegboard.policy.pending import PermissionAnswer
from pegboard.policy.permissions import is_unclear, lies_within, literally, unapproved
from pegboard.schema.session import USER_KEY, Approval, PermissionRequest, Rule, Verdict
from pegboard.storage.changes import PutApproval

_TAILS = (" *", "/*")
"""How a tool says that a choice for good is for more than the one text."""
ONCE = "once"
"""In a request's metadata: it is asked every time, and cannot be approved for good."""
PART_OF = "part_of"
"""In a request's metadata: the permission that the whole `command` is asked for with.

A permanent approval of that request covers the other parts of the very same command.
"""
_SHOWN_CHARACTERS = 200
_NO_OPINION = Verdict(action="ask", reason="no rule and no plugin has an opinion")


async def approved(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> Verdict:
    """Return the verdict after permanent approvals have allowed patterns of the request.

    If approvals cover all patterns, the verdict is allow. Otherwise only the patterns that no
    approval covers are judged. Both approvals of this App and stored approvals count.
    """
    stored = await _approvals(engine, view)
    approvals = [("for this run", rule) for rule in engine.config.approvals]
    approvals += [(f"before, for the {each.scope}", each.rule) for each in stored]
    whole = _of_line(request)
    rest = asked = request.patterns or ("*",)
    for how, rule in approvals:
        rest = unapproved([rule], request.permission, rest)
        if rest == () or rule in whole:
            reason = f'approved {how}: {rule.permission} "{rule.pattern}"'
            return Verdict(action="allow", reason=reason, source="approvals", rule=rule)
    return (
        verdict if rest == asked else await policies(engine, view, replace(request, patterns=rest))
    )


async def policies(engine: Engine, view: SessionView, request: PermissionRequest) -> Verdict:
    """Return the strictest verdict of all permission policies, or "ask" if no policy gives one."""
    verdict = await engine.hooks.strictest(
        toolhooks.permission_ask, session=view, request=request, stash=engine.stash
    )
    return verdict or _NO_OPINION


async def _approvals(engine: Engine, view: SessionView) -> list[Approval]:
    """Return the approvals for all projects, this project, this session and its ancestors."""
    keys = [USER_KEY, engine.workspace.project_id, view.id]
    parent = view.info.parent_id
    while parent is not None and parent not in keys:
        keys.append(parent)
        parent = (await engine.storage.session(parent)).parent_id
    found = await engine.storage.approvals(*keys)
    return [each for each in found if each.agent in (None, view.agent.name)]


def rules_for_good(request: PermissionRequest, patterns: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules of a permanent approval of the request, or of these patterns only."""
    return tuple(
        Rule(permission=request.permission, pattern=pattern, action="allow")
        for pattern in patterns or request.always or map(literally, request.patterns)
    )


def rules_of(request: PermissionRequest, answer: PermissionAnswer) -> tuple[Rule, ...]:
    """Return the permission rules that an answer stores, also the rule for the command line."""
    if answer.reply != "always" or request.metadata.get(ONCE):
        return ()
    lines = [each for each in _of_line(request) if each.permission == request.permission]
    return tuple(dict.fromkeys((*rules_for_good(request, answer.patterns), *lines)))


def _of_line(request: PermissionRequest) -> tuple[Rule, ...]:
    """Return the rule for the command line that contains the request, or () without a line."""
    permission, line = (request.metadata.get(key) for key in (PART_OF, "command"))
    return (Rule(permission, literally(line), "allow"),) if permission and line else ()


def check_narrowed(request: PermissionRequest, patterns: tuple[str, ...]) -> None:
    """Check that `patterns` allow all that the request asks for, and no more than it offers.

    A pattern for an unclear string, such as a command with an unknown effect, must be equal to an
    offered pattern.

    :raises InvalidInputError: when a pattern may match more, or a part of the request is not
      covered.
    """
    if not patterns:
        return
    if request.metadata.get(ONCE):
        raise InvalidInputError("asked every time, so that nothing allows it for good")
    offered = rules_for_good(request)
    for pattern in patterns:
        if not any(_is_less(pattern, rule.pattern) for rule in offered):
            raise InvalidInputError(
                f"{_quote(pattern)} would allow more than is offered:"
                f" {', '.join(_quote(rule.pattern) for rule in offered)}"
            )
    texts = request.patterns or ("*",)
    rest = unapproved(rules_for_good(request, patterns), request.permission, texts)
    for text in rest:
        if text not in unapproved(offered, request.permission, texts):
            raise InvalidInputError(
                f"a pattern must still match {_quote(text)}, the present request"
            )


def _is_less(pattern: str, offered: str) -> bool:
    is_literal = is_unclear(pattern) or is_unclear(offered)
    return pattern == offered if is_literal else lies_within(pattern, offered)


def _quote(pattern: str) -> str:
    return json.dumps(pattern[:_SHOWN_CHARACTERS], ensure_ascii=False)


async def approve(
    engine: Engine,
    view: SessionView,
    answer: PermissionAnswer,
    rules: tuple[Rule, ...],
    writer: Writer,
) -> None:
    """Store the permanent approval that the user's answer gives."""
    only = view.agent.name if answer.agent_only else None
    keys = {"session": view.id, "project": engine.workspace.project_id, "user": USER_KEY}
    writer.change(PutApproval(keys[answer.scope], rules, agent=only, at=engine.now()))
    await writer.barrier()


def for_good(request: PermissionRequest) -> tuple[str, ...]:
    """Return the patterns of a permanent approval; a `*` in a requested name becomes `?`.

    The agent chooses names, so a folder called `/srv/*` must not allow all folders.
    """
    if any(map(is_unclear, request.patterns)):
        return tuple(each if is_unclear(each) else literally(each) for each in request.patterns)
    if not any(literally(pattern) != pattern for pattern in request.patterns):
        return request.always
    return tuple(_narrow(pattern) for pattern in request.always)


def _narrow(pattern: str) -> str:
    tail = next((tail for tail in _TAILS if pattern.endswith(tail)), "")
    return pattern.removesuffix(tail).replace("*", "?") + tail if tail else literally(pattern)
