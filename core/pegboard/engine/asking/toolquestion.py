"""Questions of a tool to the user: asked, then answered or rejected."""

from collections.abc import Sequence

from pegboard.engine.run import Run
from pegboard.errors import ToolError
from pegboard.schema.event import QuestionAsked, QuestionRejected, QuestionReplied
from pegboard.schema.session import Answers, Question, QuestionRequest, ToolReference


async def ask_user(run: Run, questions: Sequence[Question], tool: ToolReference) -> Answers:
    """The user's answers, in the order of the questions.

    :raises ToolError: when nobody is there to be asked.
    :raises QuestionRejectedError: when the user does not want to answer.
    """
    pending, writer = run.engine.questions, run.writer
    request = QuestionRequest(
        id=run.engine.ids.new("question"),
        session_id=run.session.id,
        questions=tuple(questions),
        tool=tool,
    )
    if not request.questions:
        raise ToolError("there is no question to ask")
    if not pending.interactive:
        return await pending.wait(request)  # says that nobody can be asked
    writer.say(QuestionAsked(request=request))
    answers: Answers | None = None
    try:
        answers = await pending.wait(request)
        return answers
    finally:  # a call that is stopped takes its question back too
        session_id, request_id = request.session_id, request.id
        if answers is None:
            writer.say(QuestionRejected(session_id=session_id, request_id=request_id))
        else:
            writer.say(
                QuestionReplied(session_id=session_id, request_id=request_id, answers=answers)
            )
