"""May this project's code run? Asked as a question of the session that is used first."""

import asyncio
from collections.abc import Iterator

from pegboard import App, PegboardError
from pegboard.schema.question import Question, QuestionOption, QuestionRequest
from pegboard.schema.wire import to_json
from pegboard_plugins.server.house import House, Place

YES, NO = "Trust", "Do not trust"
SHOWN_FILES = 10
SHOWN_FINDINGS = 5
LOOK_EVERY_S = 0.2


def ask_once(house: House, place: Place) -> None:
    """Ask about the project's code, if it has any that nobody has decided about as it is now.

    The turn does not wait for the answer; until there is one, the code does not run.
    """
    directory = place.app.workspace.directory
    about = (directory, place.app.decision.key)
    if place.app.untrusted and about not in house.asked_about:
        house.asked_about.add(about)
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
    house.pool.trust(app.workspace.directory, app.decision)
    await house.pool.close(app.workspace.directory)


def _described(app: App) -> Iterator[str]:
    """Each file, with what its syntax says that it does, or which of its settings wait."""
    decision = app.decision
    scans = decision.scans()
    settings = {
        path: line.partition(": ")[2]
        for path in app.loaded.untrusted
        for line in app.loaded.warnings
        if line.startswith(f"{path}: ")
    }
    for path in app.untrusted[:SHOWN_FILES]:
        notes = ["changed since it was trusted"] if path in decision.changed else []
        if path in scans:
            found = dict.fromkeys(each.what for each in scans[path].findings)
            notes += [f"imports {', '.join(scans[path].imports) or 'nothing'}"]
            notes += [*found][:SHOWN_FINDINGS]
        elif path in settings:
            notes.append(settings[path])
        yield f"- {path}" + (f" ({'; '.join(notes)})" if notes else "")
    if (more := len(app.untrusted) - SHOWN_FILES) > 0:
        yield f"- and {more} more"


def _request(house: House, place: Place) -> QuestionRequest:
    question = Question(
        header="Project code",
        question="\n".join(
            [
                "This project brings code or settings of its own:",
                *_described(place.app),
                "May they be used while this server runs? What changes is asked about again.",
            ]
        ),
        options=(
            QuestionOption(label=YES, description="It runs from the next prompt on."),
            QuestionOption(label=NO, description="It does not run."),
        ),
        custom=False,
    )
    return QuestionRequest(
        id=house.feed.ids.new("question"), session_id=place.session.id, questions=(question,)
    )
