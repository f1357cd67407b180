"""The requests that wait for the user: permission requests and questions."""

from collections.abc import Sequence

from pegboard.schema.session import (
    Answers,
    PermissionRequest,
    Question,
    QuestionRequest,
    Reply,
    Scope,
)
from pegboard_client.address import route
from pegboard_client.aio.link import AsyncLink
from pegboard_plugins.shared.frontend import AnswersBody, QuestionsBody, ReplyBody


class AsyncPermissions:
    """The permission requests of the client's project."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link

    async def list(self) -> tuple[PermissionRequest, ...]:
        """Return the permission requests that wait for an answer."""
        return await self._link.get(tuple[PermissionRequest, ...], route("permission"))

    async def reply(
        self,
        request_id: str,
        reply: Reply,
        message: str | None = None,
        *,
        scope: Scope = "project",
        agent_only: bool = False,
    ) -> bool:
        """Answer the request; return True.

        `message` with `reject` gives the model other instructions. `scope` is where an approval by
        `always` applies, and `agent_only` limits this approval to the agent that asked.
        """
        body = ReplyBody(reply=reply, message=message, scope=scope, agent_only=agent_only)
        return await self._link.post(bool, route("permission", request_id, "reply"), body)

    async def approve(
        self,
        request_id: str,
        scope: Scope = "project",
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> bool:
        """Allow the request and similar later requests; return True.

        `scope` is where the approval applies, and `agent_only` limits it to the agent that asked.
        `patterns` may only narrow the patterns in the request's field `always`.
        """
        body = ReplyBody(
            reply="always", scope=scope, agent_only=agent_only, patterns=tuple(patterns)
        )
        return await self._link.post(bool, route("permission", request_id, "reply"), body)

    async def leave_unattended(self, request_id: str) -> bool:
        """Deny the request because no user is present to answer the request; return True."""
        body = ReplyBody(reply="reject", unattended=True)
        return await self._link.post(bool, route("permission", request_id, "reply"), body)


class AsyncQuestions:
    """The questions to a user in the client's project."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link

    async def list(self) -> tuple[QuestionRequest, ...]:
        """Return the questions that wait for an answer."""
        return await self._link.get(tuple[QuestionRequest, ...], route("question"))

    async def ask(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask a user these questions, and wait for the answers; None if the user declines."""
        body = QuestionsBody(questions=tuple(questions))
        # mypy takes a union for no class
        kind: type[Answers | None] = Answers | None  # type: ignore[assignment]
        return await self._link.turn(kind, route("session", session_id, "question"), body)

    async def reply(self, request_id: str, answers: Sequence[Sequence[str]]) -> bool:
        """Answer the questions, each with labels or a free text; return True."""
        body = AnswersBody(answers=tuple(tuple(labels) for labels in answers))
        return await self._link.post(bool, route("question", request_id, "reply"), body)

    async def reject(self, request_id: str) -> bool:
        """Decline the questions, which ends the turn that asked; return True."""
        return await self._link.post(bool, route("question", request_id, "reject"))
