"""The permission requests and the questions to the user that wait for an answer."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from pegboard.errors import (
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    QuestionRejectedError,
    ToolError,
)
from pegboard.kit.threads import shield
from pegboard.policy.clock import asking
from pegboard.schema.session import (
    Answers,
    PermissionRequest,
    QuestionRequest,
    Reply,
    Rule,
    Scope,
    Verdict,
)

_ANYTHING = ("*",)
_SHOWN_CHARACTERS = 200
_ASKING = {
    "": "a plugin",
    "config": "another rule of yours",
    "agent": "a rule of the agent",
    "project": "a rule of the project",
    "session": "a rule of the session",
    "parent": "a rule of the session that it works for",
}
"""The phrase for what asks, by the source of a verdict that is not a plugin's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """The answer to a permission request; after a rejection, `message` tells the model what to do.

    `scope` is how far an `always` applies, and `agent_only` limits it to the agent that asked.
    `patterns` replace the patterns to approve by narrower ones. `by` is the source of the answer:

    - `user`: a user answered the request.
    - `approval`, `rejection`: the answer to another request also decided this one.
    - `nobody`: no user was present.
    """

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False
    patterns: tuple[str, ...] = ()
    by: Literal["user", "approval", "rejection", "nobody"] = "user"


Note = Callable[[PermissionAnswer, Callable[[], None]], Coroutine[Any, Any, None]]
"""Takes an answer to its effect, and calls what it is given once no crash can lose the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A permission request that waits for an answer.

    `allowed` returns whether an approval that was given meanwhile allows the request. `kept`
    completes when the answer is stored, with None, or with the error that prevented it.
    """

    request: PermissionRequest
    answer: asyncio.Future[PermissionAnswer]
    kept: asyncio.Future[Exception | None]
    allowed: Callable[[], Awaitable[bool]] | None

    async def settle(self, note: Note) -> None:
        """Call `note` to apply and store the answer; `kept` gets None or the error of `note`."""
        try:
            await note(self.answer.result(), self._keep)
        except Exception as error:
            self._keep(error)
            raise
        self._keep()

    def _keep(self, error: Exception | None = None) -> None:
        if not self.kept.done():
            self.kept.set_result(error)


class PendingRequests:
    """The permission requests that wait for an answer, on one event loop.

    `interactive` is whether a user can answer. `rechecks` counts the calls of `recheck`.
    `allowed_lines` maps each session to the tool and command line that a user allowed last.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive
        self.rechecks = 0
        self.allowed_lines: dict[str, tuple[object, object]] = {}
        self._open: dict[str, Waiting] = {}

    async def wait(
        self,
        request: PermissionRequest,
        *,
        note: Note,
        allowed: Callable[[], Awaitable[bool]] | None = None,
    ) -> PermissionAnswer:
        """Wait for the answer to a request, without a time limit because a user gives it.

        The clock of the current work is stopped meanwhile. `recheck` calls `allowed` to test
        whether the request is allowed by now. `note` applies the answer before this method returns.
        Cancelling the wait removes the request. If it is already answered, `note` is still called,
        because the user's answer must take effect.

        :raises PermissionDeniedError: at once, when no user is present.
        """
        if not self.interactive:
            raise PermissionDeniedError(nobody(request), advice=advice(request))
        loop = asyncio.get_running_loop()
        waiting = Waiting(
            request=request, answer=loop.create_future(), kept=loop.create_future(), allowed=allowed
        )
        self._open[request.id] = waiting
        try:
            with asking():
                answer = await waiting.answer
        except asyncio.CancelledError:
            if not waiting.answer.cancelled():
                await shield(waiting.settle(note))
            raise
        finally:
            self._open.pop(request.id, None)
        await shield(waiting.settle(note))
        return answer

    async def reply(
        self, request_id: str, reply: Reply, message: str | None = None
    ) -> PermissionRequest:
        """Answer a request like `answer`; `message` tells the model what to do instead."""
        return await self.answer(request_id, PermissionAnswer(reply=reply, message=message))

    async def leave_unattended(self, request_id: str) -> None:
        """Reject a permission request because no user is present.

        :raises NotFoundError: when no request with this id waits.
        :raises PegboardError: when the answer could not be stored; it then has no effect.
        """
        await self.answer(request_id, PermissionAnswer(reply="reject", by="nobody"))

    async def answer(self, request_id: str, answer: PermissionAnswer) -> PermissionRequest:
        """Answer a permission request; return it when the answer is stored, if it must be stored.

        A `reject` also rejects all other requests of the session, with the same message.

        :raises NotFoundError: when no request with this id waits.
        :raises PegboardError: when the answer could not be stored; it then has no effect.
        """
        waiting = self._open.get(request_id)
        if waiting is None or waiting.answer.done():
            raise NotFoundError("permission request", request_id)
        request = waiting.request
        self._settle(request, answer)
        if answer.reply == "reject" and answer.by != "nobody":
            self.cancel(request.session_id, answer.message)
        await asyncio.wait({waiting.kept})  # `note` has time limits of its own
        if (error := waiting.kept.result()) is not None:
            raise error
        return request

    async def recheck(self) -> tuple[PermissionRequest, ...]:
        """Answer all requests that approvals allow by now with `always`; return these requests."""
        self.rechecks += 1
        settled = []
        for each in tuple(self._open.values()):
            allowed = each.allowed is not None and await each.allowed()
            if allowed and each.request.id in self._open:
                self._settle(each.request, PermissionAnswer(reply="always", by="approval"))
                settled.append(each.request)
        return tuple(settled)

    def pending(self, session_id: str | None = None) -> tuple[PermissionRequest, ...]:
        """Return the permission requests that wait, of one session or of all, oldest first."""
        requests = (waiting.request for waiting in self._open.values())
        return tuple(request for request in requests if session_id in (None, request.session_id))

    def cancel(self, session_id: str, message: str | None = None) -> None:
        """Reject all permission requests of a session that wait for an answer."""
        for request in self.pending(session_id):
            self._settle(request, PermissionAnswer(reply="reject", message=message, by="rejection"))

    def _settle(self, request: PermissionRequest, answer: PermissionAnswer) -> None:
        waiting = self._open.pop(request.id)
        if not waiting.answer.done():
            waiting.answer.set_result(answer)


def nobody(request: PermissionRequest, *, because: Verdict | None = None) -> str:
    """Return the error message for the model when a request needs a user, but none is present.

    `because` is the verdict that requires the user.
    """
    patterns = request.patterns or _ANYTHING
    wanted = json.dumps(", ".join(patterns)[:_SHOWN_CHARACTERS], ensure_ascii=False)
    why = f" ({because.reason})" if because and because.reason else ""
    return (
        f"{request.permission} {wanted} needs a permission{why} and nobody is there to be asked. "
        "Do not look for another way to the same end: go on without it, and say so."
    )


def advice(request: PermissionRequest, *, because: Verdict | None = None) -> str:
    """Return advice how the user can allow the request, or that no rule can allow the request."""
    if because and (because.firm or because.source not in ("", "config")):
        return no_rule(because)
    rules = advised_rules(request)
    lines = ", ".join(f'{_key(rule.pattern)} = "allow"' for rule in rules)
    place = ", after its other rules" if because and because.decider == "config" else ""
    return (
        f"to allow it, add to your own (not the project's) pegboard.toml{place}: "
        f"permission = {{ {_key(request.permission)} = {{ {lines} }} }}"
    )


def advised_rules(request: PermissionRequest) -> tuple[Rule, ...]:
    """Return the rules that the advice to the user suggests; never `*`, which allows everything."""
    patterns = request.patterns or _ANYTHING
    narrow = patterns if "*" in request.always else request.always or patterns
    return tuple(Rule(request.permission, each, "allow") for each in dict.fromkeys(narrow))


def no_rule(because: Verdict) -> str:
    """Explain why no rule of the user can allow the request: which source of rules prevents it."""
    who = _ASKING.get(because.source) or f"{'the plugin ' * (not because.rule)}{because.decider}"
    if because.action == "deny":
        return f"no rule allows it: {who} denies it"
    if because.firm:
        return f"no rule allows it: {who} wants it asked every time"
    return f"no rule allows it: {who} asks; `pegboard run --allow` allows it for a run"


def _key(text: str) -> str:
    """Put a string in quotation marks if it needs them as a TOML key."""
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text, ensure_ascii=False)


_NOBODY = (
    "Nobody is there to be asked. Go on with the likeliest choice, and say in your answer what"
    " you took for granted."
)


class Questions:
    """The questions to the user that wait for an answer, on one event loop.

    `interactive` is whether a user can answer.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive
        self._open: dict[str, tuple[QuestionRequest, asyncio.Future[Answers]]] = {}

    async def wait(self, request: QuestionRequest) -> Answers:
        """Wait for the user's answers, without a time limit.

        The clock of the current work is stopped meanwhile. Cancelling the wait removes the request.

        :raises ToolError: at once, when no user is present.
        :raises QuestionRejectedError: when the user dismisses the questions.
        """
        if not self.interactive:
            raise ToolError(_NOBODY)
        answers: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._open[request.id] = (request, answers)
        try:
            with asking():
                return await answers
        finally:
            self._open.pop(request.id, None)

    def answer(self, request_id: str, answers: Answers) -> QuestionRequest:
        """Answer a request with any number of labels per question, and return the request.

        :raises NotFoundError: when no request with this id waits.
        :raises InvalidInputError: when the number of answers and questions differs.
        """
        request, waiting = self._get(request_id)
        if len(answers) != len(request.questions):
            raise InvalidInputError(
                f"{request_id} has {len(request.questions)} questions, not {len(answers)}"
            )
        del self._open[request_id]
        if not waiting.done():
            waiting.set_result(answers)
        return request

    def reject(self, request_id: str) -> QuestionRequest:
        """Reject a request of questions, and return the request.

        :raises NotFoundError: when no request with this id waits.
        """
        request, waiting = self._get(request_id)
        del self._open[request_id]
        if not waiting.done():
            waiting.set_exception(QuestionRejectedError("The user did not want to answer."))
        return request

    def pending(self, session_id: str | None = None) -> tuple[QuestionRequest, ...]:
        """Return the requests of questions that wait, of one session or of all, oldest first."""
        requests = (request for request, _ in self._open.values())
        return tuple(request for request in requests if session_id in (None, request.session_id))

    def _get(self, request_id: str) -> tuple[QuestionRequest, asyncio.Future[Answers]]:
        if request_id not in self._open:
            raise NotFoundError("question", request_id)
        return self._open[request_id]
