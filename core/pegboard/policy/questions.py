"""The questions to the user that wait for an answer."""

import asyncio

from pegboard.errors import InvalidInputError, NotFoundError, QuestionRejectedError, ToolError
from pegboard.policy.clock import asking
from pegboard.schema.question import Answers, QuestionRequest

_NOBODY = (
    "Nobody is there to be asked. Go on with the likeliest choice, and say in your answer what"
    " you took for granted."
)


class Questions:
    """The open questions of an App; for one event loop.

    `interactive` says whether somebody can answer.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive
        self._open: dict[str, tuple[QuestionRequest, asyncio.Future[Answers]]] = {}

    async def wait(self, request: QuestionRequest) -> Answers:
        """The answers; without a time limit, because a person gives them.

        The clock of the current work is stopped meanwhile. Cancelling the wait removes the
        request.

        :raises ToolError: at once, when nobody can be asked.
        :raises QuestionRejectedError: when the user does not want to answer.
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
        """Answer a request, each question by some labels or by none, and return it.

        :raises NotFoundError: when no request of this id waits.
        :raises InvalidInputError: when there is not one answer for each question.
        """
        request, waiting = self._found(request_id)
        if len(answers) != len(request.questions):
            raise InvalidInputError(
                f"{request_id} has {len(request.questions)} questions, not {len(answers)}"
            )
        del self._open[request_id]
        if not waiting.done():
            waiting.set_result(answers)
        return request

    def reject(self, request_id: str) -> QuestionRequest:
        """Reject a request, and return it.

        :raises NotFoundError: when no request of this id waits.
        """
        request, waiting = self._found(request_id)
        del self._open[request_id]
        if not waiting.done():
            waiting.set_exception(QuestionRejectedError("The user did not want to answer."))
        return request

    def pending(self, session_id: str | None = None) -> tuple[QuestionRequest, ...]:
        """The waiting requests, oldest first; of one session, or of all."""
        requests = (request for request, _ in self._open.values())
        return tuple(request for request in requests if session_id in (None, request.session_id))

    def _found(self, request_id: str) -> tuple[QuestionRequest, asyncio.Future[Answers]]:
        if request_id not in self._open:
            raise NotFoundError("question", request_id)
        return self._open[request_id]
