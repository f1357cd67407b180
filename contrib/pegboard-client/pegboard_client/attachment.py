"""One project of a server, as a front end uses it: sessions, and the answers of a user."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pegboard.errors import AbortedError, NotFoundError, ServerError
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import FileInput
from pegboard.schema.session import Reply, Scope, Session
from pegboard_client.aio.client import AsyncClient

_NOT_FOUND, _ABORTED = "NotFoundError", "MessageAbortedError"


class AttachedFrontEnd:
    """The common behaviour of front ends with the server of their client.

    What the server says is not there is a `NotFoundError`, as an App says it.
    """

    _client: AsyncClient

    async def models(self) -> Sequence[Model]:
        """Return the models of the server that can be asked."""
        listed = (await self._client.providers()).providers
        return [model for each in listed for model in each.models.values()]

    async def _posted(
        self,
        session_id: str,
        prompt: Prompt,
        *,
        command: tuple[str, str, bool] | None = None,
        mentions: str | None = None,
        checked: bool = False,
    ) -> Turn:
        """Return the last answer to a prompt, or to a slash command with the prompt's files.

        A `command` is its name, its arguments, and whether a user has typed them; `mentions` are a
        prompt's words that a user has typed. A `checked` prompt that no model can answer is refused
        before it is stored.

        :raises AbortedError: when the turn was stopped before there was an answer.
        """
        client = self._client
        try:
            if command is None:
                return await client.prompt(
                    session_id, prompt, mentions=mentions or None, checked=checked
                )
            name, arguments, typed = command
            return await client.command(
                session_id,
                name,
                arguments,
                typed=typed,
                agent=prompt.agent,
                model=prompt.model,
                variant=prompt.variant,
                files=[part for part in prompt.parts if isinstance(part, FileInput)],
            )
        except ServerError as error:
            if error.name == _ABORTED:
                raise AbortedError(error.message) from error
            raise

    async def session(self, session_id: str) -> Session:
        """Return the session."""
        with gone("session", session_id):
            return await self._client.sessions.get(session_id)

    async def fork(self, session_id: str, message_id: str | None = None) -> Session:
        """Create a copy of the session up to a message, or of all of it."""
        return await self._client.sessions.fork(session_id, message_id)

    async def approve(
        self,
        request_id: str,
        scope: Scope,
        *,
        agent_only: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        """Allow what waits, and the like of it, or less if the patterns say so."""
        with gone("permission request", request_id):
            await self._client.permissions.approve(
                request_id, scope, agent_only=agent_only, patterns=patterns
            )

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        with gone("permission request", request_id):
            await self._client.permissions.reply(request_id, reply, message)

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because no user is there to answer it."""
        with gone("permission request", request_id):
            await self._client.permissions.leave_unattended(request_id)

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions."""
        with gone("question", request_id):
            await self._client.questions.reply(request_id, answers)

    async def reject_question(self, request_id: str) -> None:
        """Leave questions unanswered."""
        with gone("question", request_id):
            await self._client.questions.reject(request_id)


@contextmanager
def gone(kind: str, name: str) -> Iterator[None]:
    """Raise a server's "not found" in this block as the error that an App raises."""
    try:
        yield
    except ServerError as error:
        if error.name != _NOT_FOUND:
            raise
        raise NotFoundError(kind, name) from error
