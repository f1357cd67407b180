"""May this project's code run? Asked as a question of the session that is used first."""

import asyncio

from pegboard import App, PegboardError
from pegboard.schema.question import Question, QuestionOption, QuestionRequest
from pegboard.schema.wire import to_json
from pegboard_plugins.server.house import House, Place

YES, NO = "Trust", "Do not trust"
SHOWN_FILES = 10
LOOK_EVERY_S = 0.2


def ask_once(house: House, place: Place) -> None:
    """Ask about the project's code, if it has any that nobody has decided about yet.

    The turn does not wait for the answer; until there is one, the code does not run.
    """
    directory = place.app.workspace.directory
    if place.app.untrusted and directory not in house.asked_about:
        house.asked_about.add(directory)
        house.start(_ask(house, place), f"trust {directory}")


async def _ask(house: House, place: Place) -> None:
    app, directory = place.app, place.app.workspace.directory
    request = _request(house, place)
    told = to_json(request)
    house.feed.say("question.asked", told, directory=directory)
    about = {"sessionID": request.session_id, "requestID": request.id}
    try:
        # Without a limit: a person answers, and the house ends the wait.
        answers = await app.questions.wait(request)
    except PegboardError:
        house.feed.say("question.rejected", about, directory=directory)
        return
    house.feed.say("question.replied", {**about, "answers": answers}, directory=directory)
    if answers[0] == (YES,):
        await _reopen(house, app)


async def _reopen(house: House, app: App) -> None:
    """Open the App again with the project's code, once nothing runs in it."""
    member = house.pool.member(app)
    while not member.rests:  # noqa: ASYNC110 - turns, permissions and questions can all end last
        await asyncio.sleep(LOOK_EVERY_S)
    house.pool.trust(app.workspace.directory)
    await house.pool.close(app.workspace.directory)


def _request(house: House, place: Place) -> QuestionRequest:
    files = [str(path) for path in place.app.untrusted]
    more = f", and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    question = Question(
        header="Project code",
        question=f"This project brings code of its own: {', '.join(files[:SHOWN_FILES])}{more}."
        " May it run while this server does?",
        options=(
            QuestionOption(label=YES, description="It runs from the next prompt on."),
            QuestionOption(label=NO, description="It does not run."),
        ),
        custom=False,
    )
    return QuestionRequest(
        id=house.feed.ids.new("question"), session_id=place.session.id, questions=(question,)
    )
