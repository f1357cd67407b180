import asyncio
import json

import pytest

from pegboard import tool
from pegboard.contract.context import ToolContext
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.schema.event import QuestionAsked, QuestionRejected, QuestionReplied
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Question
from pegboard_plugins import question
from support.models.played import Played, ToolsPlugin, call, calls, heard, opened, text

HI = "Hi."
ASKED = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Red", "description": "like fire"}, {"label": "Blue"}],
        }
    ]
}


def asking():
    return Played(calls(call("question", json.dumps(ASKED))), text("done"))


async def answered(app, answer):
    """The question's part, once `answer` has dealt with the request."""
    session = await app.create_session()
    asked = asyncio.create_task(heard(app, lambda e: isinstance(e.properties, QuestionAsked)))
    turn = asyncio.create_task(app.prompt(session.id, HI))
    request = (await asked)[-1].properties.request
    ended = asyncio.create_task(
        heard(app, lambda e: isinstance(e.properties, QuestionReplied | QuestionRejected))
    )
    await asyncio.sleep(0)
    await answer(request)
    event = (await ended)[-1]
    await turn
    [part] = [
        part
        for turn in await app.list_turns(session.id)
        for part in turn.parts
        if isinstance(part, ToolPart)
    ]
    return request, event, part


async def test_the_answer_reaches_the_model_and_those_who_watch(tmp_path):
    provider = asking()
    async with opened(tmp_path, provider, question, interactive=True) as app:

        async def answer(request):
            assert app.questions.pending() == (request,)
            await app.answer_question(request.id, [["Blue"]])

        request, event, part = await answered(app, answer)

    assert request.tool.call_id == "call_0"
    assert request.questions[0].options[0].description == "like fire"
    assert event.type == "question.replied"
    assert event.payload().answers == (("Blue",),)
    assert isinstance(part.state, Completed)
    assert part.state.output == "The user's answers:\nWhich colour?\n  Blue"
    assert part.state.metadata["answers"] == [["Blue"]]
    assert len(provider.requests) == 2


async def test_a_rejected_question_ends_the_turn(tmp_path):
    provider = asking()
    async with opened(tmp_path, provider, question, interactive=True) as app:
        _, event, part = await answered(app, lambda request: app.reject_question(request.id))

    assert event.type == "question.rejected"
    assert isinstance(part.state, Failed)
    assert part.state.error == "The user did not want to answer."
    assert len(provider.requests) == 1


async def test_a_stopped_turn_takes_its_question_back(tmp_path):
    async with opened(tmp_path, asking(), question, interactive=True) as app:
        _, event, part = await answered(app, lambda request: app.abort(request.session_id))

        assert app.questions.pending() == ()

    assert event.type == "question.rejected"
    assert isinstance(part.state, Failed)


async def test_an_answer_must_fit_its_request(tmp_path):
    async with opened(tmp_path, asking(), question, interactive=True) as app:

        async def answer(request):
            with pytest.raises(InvalidInputError, match="has 1 questions, not 2"):
                await app.answer_question(request.id, [["Red"], ["Blue"]])
            with pytest.raises(NotFoundError):
                await app.answer_question("que_unknown", [["Red"]])
            await app.answer_question(request.id, [[]])

        _, _, part = await answered(app, answer)

    assert part.state.output.endswith("(no answer)")


async def test_where_nobody_is_there_the_tool_is_not_offered(tmp_path):
    provider = asking()
    config = {"model": "played/m", "agent": {"build": {"prompt": "Work."}}}
    async with opened(tmp_path, provider, question, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    assert [tool.name for tool in provider.requests[0].tools] == []


async def test_a_tool_that_asks_is_told_when_nobody_is_there(tmp_path):
    @tool
    async def curious(context: ToolContext) -> str:
        """Ask."""
        return str(await context.ask_user([Question(question="Why?")]))

    provider = Played(calls(call("curious", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(curious)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = [
            part
            for turn in await app.list_turns(session.id)
            for part in turn.parts
            if isinstance(part, ToolPart)
        ]

    assert part.state.error.startswith("Nobody is there to be asked.")
