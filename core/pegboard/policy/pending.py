"""The permission requests that wait for an answer, and what an answer settles."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from pegboard.errors import NotFoundError, PermissionDeniedError
from pegboard.policy.clock import asking
from pegboard.schema.permission import PermissionRequest, Reply, Rule, Scope, Verdict

_ANYTHING = ("*",)
_SHOWN_CHARACTERS = 200
_OF_THE_USER = "config"
_ASKING = {
    "": "a plugin",
    "config": "another rule of yours",
    "agent": "a rule of the agent",
    "project": "a rule of the project",
    "session": "a rule of the session",
    "parent": "a rule of the session that it works for",
}
"""Who asks, by the source of a verdict that is no plugin's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """How a request was answered; `message` is what to do instead of what was rejected.

    `scope` is how far an `always` goes, `agent_only` limits it to the agent that asked. `by` is
    what answered: a user, or the answer to another request.
    """

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False
    by: Literal["user", "approval", "rejection"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A request that waits; `allowed` says whether other answers allow it by now."""

    request: PermissionRequest
    answer: asyncio.Future[PermissionAnswer]
    allowed: Callable[[], Awaitable[bool]] | None


class PendingRequests:
    """The permission requests that wait for somebody's answer; for one event loop.

    `interactive` says whether somebody can answer, `rechecks` counts the calls of `recheck`.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive
        self.rechecks = 0
        self._open: dict[str, Waiting] = {}

    async def wait(
        self, request: PermissionRequest, *, allowed: Callable[[], Awaitable[bool]] | None = None
    ) -> PermissionAnswer:
        """The answer to a request; without a time limit, because a person gives it.

        The clock of the current work is stopped meanwhile. `recheck` calls `allowed` to see
        whether the request is allowed by now. Cancelling the wait removes the request.

        :raises PermissionDeniedError: at once, when nobody can be asked.
        """
        if not self.interactive:
            raise PermissionDeniedError(nobody(request), advice=advice(request))
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._open[request.id] = Waiting(request=request, answer=answer, allowed=allowed)
        try:
            with asking():
                return await answer
        finally:
            self._open.pop(request.id, None)

    def reply(
        self,
        request_id: str,
        reply: Reply,
        message: str | None = None,
        *,
        scope: Scope = "project",
        agent_only: bool = False,
    ) -> PermissionRequest:
        """Answer a request, and return it; a `reject` rejects all requests of its session.

        The `message` goes to all that are rejected. After `always` the caller stores the
        approvals and calls `recheck`.

        :raises NotFoundError: when no request of this id waits.
        """
        if request_id not in self._open:
            raise NotFoundError("permission request", request_id)
        request = self._open[request_id].request
        answer = PermissionAnswer(reply=reply, message=message, scope=scope, agent_only=agent_only)
        self._settle(request, answer)
        if reply == "reject":
            self.cancel(request.session_id, message)
        return request

    async def recheck(self) -> tuple[PermissionRequest, ...]:
        """Answer the requests, of any session, that are allowed by now with `always`; these."""
        self.rechecks += 1
        settled = []
        for each in tuple(self._open.values()):
            allowed = each.allowed is not None and await each.allowed()
            if allowed and each.request.id in self._open:
                self._settle(each.request, PermissionAnswer(reply="always", by="approval"))
                settled.append(each.request)
        return tuple(settled)

    def pending(self, session_id: str | None = None) -> tuple[PermissionRequest, ...]:
        """The waiting requests, oldest first; of one session, or of all."""
        requests = (waiting.request for waiting in self._open.values())
        return tuple(request for request in requests if session_id in (None, request.session_id))

    def cancel(self, session_id: str, message: str | None = None) -> None:
        """Reject all waiting requests of a session."""
        for request in self.pending(session_id):
            self._settle(request, PermissionAnswer(reply="reject", message=message, by="rejection"))

    def _settle(self, request: PermissionRequest, answer: PermissionAnswer) -> None:
        waiting = self._open.pop(request.id)
        if not waiting.answer.done():
            waiting.answer.set_result(answer)


def nobody(request: PermissionRequest, *, because: Verdict | None = None) -> str:
    """The text for a model whose request nobody can answer."""
    patterns = request.patterns or _ANYTHING
    wanted = json.dumps(", ".join(patterns)[:_SHOWN_CHARACTERS], ensure_ascii=False)
    why = f" ({because.reason})" if because and because.reason else ""
    return (
        f"{request.permission} {wanted} needs a permission{why} and nobody is there to be asked. "
        "Do not look for another way to the same end: go on without it, and say so."
    )


def advice(request: PermissionRequest, *, because: Verdict | None = None) -> str:
    """How the user can allow the request, or that no rule of theirs does."""
    if because and (because.firm or because.source not in ("", _OF_THE_USER)):
        return no_rule(because)
    rules = advised_rules(request)
    lines = ", ".join(f'{_key(rule.pattern)} = "allow"' for rule in rules)
    return (
        "to allow it, add to your own (not the project's) pegboard.toml: "
        f"permission = {{ {_key(request.permission)} = {{ {lines} }} }}"
    )


def advised_rules(request: PermissionRequest) -> tuple[Rule, ...]:
    """The rules that the advice is about: never `*`, which allows everything, for one thing."""
    patterns = request.patterns or _ANYTHING
    narrow = patterns if "*" in request.always else request.always or patterns
    return tuple(Rule(request.permission, each, "allow") for each in dict.fromkeys(narrow))


def no_rule(because: Verdict) -> str:
    """That no rule of the user's allows what is asked, with who asks and what does."""
    who = _ASKING.get(because.source) or f"the plugin {because.source}"
    if because.action == "deny":
        return f"no rule allows it: {who} denies it"
    if because.firm:
        return f"no rule allows it: {who} wants it asked every time"
    return f"no rule allows it: {who} asks; --auto allows what is asked"


def _key(text: str) -> str:
    """The text as a part of a TOML key."""
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text, ensure_ascii=False)
