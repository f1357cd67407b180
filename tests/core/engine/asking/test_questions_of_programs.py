"""Questions of a program to a person: beside the turns of a session, and ended with it."""

import asyncio
from pathlib import Path

import pytest

from pegboard import App
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.schema.event import QuestionAsked, QuestionRejected, QuestionReplied
from pegboard.schema.session import Answers, Idle, Question, QuestionOption
from support.models.played import HI, Played, opened, text

COLOUR = Question(question="Which?", options=(QuestionOption(label="red"),), custom=False)


async def asked(app: App, session_id: str) -> tuple[str, "asyncio.Task[Answers | None]"]:
    """The id of the question that waits, and what waits for its answer."""
    task = asyncio.create_task(app.ask_user(session_id, [COLOUR]))
    async with asyncio.timeout(30):
        while not (waiting := app.questions.pending(session_id)):  # noqa: ASYNC110 - no event of it
            await asyncio.sleep(0.001)
    return waiting[0].id, task


async def test_whoever_sees_the_session_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello")), interactive=True) as app:
        session = await app.create_session()
        async with app.subscribe() as events:
            request_id, task = await asked(app, session.id)
            status = app.session_status(session.id)
            turn = await app.prompt(session.id, HI)
            await app.answer_question(request_id, [["red"]])
            answers = await task
            told = [event.properties for event in await events.batch()]

    of_it = [each for each in told if isinstance(each, QuestionAsked | QuestionReplied)]
    assert answers == (("red",),)
    assert isinstance(status, Idle), "the session rests while a person thinks"
    assert turn.parts
    assert [type(each) for each in of_it] == [QuestionAsked, QuestionReplied]


@pytest.mark.parametrize("way", ["reject", "abort", "delete", "close", "hang up"])
async def test_each_end_takes_the_question_back(tmp_path: Path, way: str) -> None:
    async with opened(tmp_path, Played(text("hello")), interactive=True) as app:
        session = await app.create_session()
        events = app.subscribe()
        request_id, task = await asked(app, session.id)
        async with asyncio.timeout(30):
            match way:
                case "reject":
                    await app.reject_question(request_id)
                case "abort":
                    await app.abort(session.id)
                case "delete":
                    await app.delete_session(session.id)
                case "close":
                    await app.aclose()
                case _:
                    task.cancel()
            answers = await asyncio.gather(task, return_exceptions=True)
        told = [event.properties for event in await events.batch()]

    gone = [each.request_id for each in told if isinstance(each, QuestionRejected)]
    assert answers == [None] or isinstance(answers[0], asyncio.CancelledError)
    assert gone == [request_id]
    assert app.questions.pending() == ()


async def test_where_nobody_is_there_nobody_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello"))) as app:
        session = await app.create_session()

        assert await app.ask_user(session.id, [COLOUR]) is None
        with pytest.raises(NotFoundError):
            await app.ask_user("ses_none", [COLOUR])
        with pytest.raises(InvalidInputError):
            await app.ask_user(session.id, [])
