"""Questions to the user, asked by tools and by programs."""

from collections.abc import Callable, Sequence

from pegboard.engine.engine import Engine
from pegboard.engine.run import Run
from pegboard.engine.sessions import Preparations
from pegboard.errors import AbortedError, InvalidInputError, QuestionRejectedError, ToolError
from pegboard.policy.pending import Questions
from pegboard.schema.event import (
    Event,
    Properties,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from pegboard.schema.session import Answers, Question, QuestionRequest, ToolReference
from pegboard.schema.wire import check_json


async def ask_user(run: Run, questions: Sequence[Question], tool: ToolReference) -> Answers:
    """Ask the user a tool's questions, and return the answers in the order of the questions.

    :raises ToolError: when no user is present.
    :raises QuestionRejectedError: when the user dismisses the questions.
    """
    engine, session_id = run.engine, run.session.id
    request = _request(engine, session_id, questions, tool)
    if not request.questions:
        raise ToolError("there is no question to ask")
    return await _answers(engine.questions, request, run.writer.say)


async def ask_person(
    engine: Engine, beside: Preparations, session_id: str, questions: Sequence[Question]
) -> Answers | None:
    """Ask the user the questions of a program, and return the answers.

    Return None if no user is present, the user dismisses the questions, or the session is aborted.
    The wait has no time limit because a user answers; `beside` holds its task.

    :raises NotFoundError: when the session is unknown.
    :raises InvalidInputError: when `questions` is empty.
    """
    await engine.storage.session(session_id)
    request = _request(engine, session_id, questions, None)
    if not request.questions:
        raise InvalidInputError("there is no question to ask")
    if not engine.interactive:
        return None

    def say(properties: Properties) -> None:
        engine.bus.publish(Event(properties=properties))

    try:
        asking = _answers(engine.questions, request, say)
        return await beside.run(session_id, asking, idle=True)
    except (QuestionRejectedError, AbortedError):
        return None


def _request(
    engine: Engine, session_id: str, questions: Sequence[Question], tool: ToolReference | None
) -> QuestionRequest:
    check_json(list(questions), "the question")
    return QuestionRequest(
        id=engine.ids.new("question"), session_id=session_id, questions=tuple(questions), tool=tool
    )


async def _answers(
    pending: Questions, request: QuestionRequest, say: Callable[[Properties], None]
) -> Answers:
    if not pending.interactive:
        return await pending.wait(request)  # says that nobody can be asked
    say(QuestionAsked(request=request))
    answers: Answers | None = None
    try:
        answers = await pending.wait(request)
        return answers
    finally:  # a call that is stopped takes its question back too
        session_id, request_id = request.session_id, request.id
        if answers is None:
            say(QuestionRejected(session_id=session_id, request_id=request_id))
        else:
            say(QuestionReplied(session_id=session_id, request_id=request_id, answers=answers))
