"""What a call asks by itself: for a folder outside of the project, and for a person's answers."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pegboard.engine.engine import Engine
from pegboard.engine.run import Run
from pegboard.engine.sessions import Preparations
from pegboard.engine.toolresult import is_output
from pegboard.errors import AbortedError, InvalidInputError, QuestionRejectedError, ToolError
from pegboard.paths import Places, resolved_path
from pegboard.policy.pending import Questions
from pegboard.schema.event import (
    Event,
    Properties,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from pegboard.schema.session import Answers, Question, QuestionRequest, ToolReference
from pegboard.workspace import Workspace


async def asked_path(
    workspace: Workspace, places: Places, path: Path, ask: Callable[..., Awaitable[None]]
) -> Path:
    """The path with links resolved, once it is within, or `ask` lets the call out.

    A relative path starts at the session's directory. `ask` is that of a `ToolContext`.

    :raises ToolError: for what is no path.
    """
    real, folder = await asyncio.to_thread(_placed, workspace, places, path)
    if folder is not None:
        pattern = str(folder / "*")
        await ask(
            "external_directory",
            (pattern,),
            always=(pattern,),
            metadata={"filepath": str(real), "parentDir": str(folder)},
        )
    return real


def _placed(workspace: Workspace, places: Places, path: Path) -> tuple[Path, Path | None]:
    """The path with links resolved, and the folder to be asked for; None for a path within.

    Reads the disk.

    :raises ToolError: for what is no path.
    """
    try:
        with suppress(OSError):
            (workspace.directory / path).lstat()
    except ValueError as error:
        raise ToolError(f"{str(path)!r} is no path: {error}") from error
    real = Path(resolved_path(workspace.directory / path))
    if real.is_relative_to(workspace.directory) or real.is_relative_to(workspace.worktree):
        return real, None
    # An output is for who was told its name: the folders have those of all projects.
    if is_output(real, places.tool_output.resolve()):
        return real, None
    is_folder = os.path.isdir(real)  # noqa: PTH112 - no error where the name is too long for one
    return real, real if is_folder else real.parent


async def ask_user(run: Run, questions: Sequence[Question], tool: ToolReference) -> Answers:
    """The user's answers, in the order of the questions.

    :raises ToolError: when nobody is there to be asked.
    :raises QuestionRejectedError: when the user does not want to answer.
    """
    engine, session_id = run.engine, run.session.id
    request = _request(engine, session_id, questions, tool)
    if not request.questions:
        raise ToolError("there is no question to ask")
    return await _answers(engine.questions, request, run.writer.say)


async def ask_person(
    engine: Engine, beside: Preparations, session_id: str, questions: Sequence[Question]
) -> Answers | None:
    """The answers to questions of a program, or None: nobody is there, or they do not answer.

    Without a limit, for a person answers; an abort of the session ends the wait.

    :raises NotFoundError: when there is no such session.
    :raises InvalidInputError: when there is no question.
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
    return QuestionRequest(
        id=engine.ids.new("question"),
        session_id=session_id,
        questions=tuple(questions),
        tool=tool,
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
