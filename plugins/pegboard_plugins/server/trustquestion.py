"""The question to the user whether the project's code may run, asked at the first prompt."""

import asyncio
from collections.abc import Iterator

from pegboard import App, PegboardError
from pegboard.files import printable_name
from pegboard.schema.session import Question, QuestionOption, QuestionRequest
from pegboard.schema.wire import to_json
from pegboard_plugins.server.serverstate import OpenSession, ServerState
from pegboard_plugins.shared.frontend import scans_of

YES, NO = "Trust", "Do not trust"
SHOWN_LETTERS = 4000
"""The longest text of the dialog: a user accepts only a text that is displayed whole."""
LOOK_EVERY_S = 0.2


def ask_once(state: ServerState, opened: OpenSession) -> None:
    """Ask whether the project's code may run, once for each version of the code.

    The turn does not wait for the answer, and the code does not run before it. For an App that
    another part of the program has opened, nothing is asked.
    """
    if state.pool.is_adopted(opened.app):
        return
    directory = opened.app.workspace.directory
    about = (directory, opened.app.trust.key)
    if opened.app.untrusted and about not in state.asked_about:
        state.asked_about.add(about)
        state.start(_ask(state, opened), f"trust {directory}")


async def _ask(state: ServerState, opened: OpenSession) -> None:
    app, directory = opened.app, opened.app.workspace.directory
    described = await asyncio.to_thread(lambda: "\n".join(_describe(app)))
    request = _request(state, opened, described)
    told = to_json(request)
    state.feed.say("question.asked", told, directory=directory)
    about = {"sessionID": request.session_id, "requestID": request.id}
    try:
        # Without a limit: a person answers, and a stop of the server ends the wait.
        answers = await app.questions.wait(request)
    except PegboardError:
        state.feed.say("question.rejected", about, directory=directory)
        return
    state.feed.say("question.replied", {**about, "answers": answers}, directory=directory)
    offered = [option.label for option in request.questions[0].options]
    if answers[0] == (YES,) and YES in offered:
        await _reopen(state, app)


async def _reopen(state: ServerState, app: App) -> None:
    """Wait until the App is idle, and open it again with the project's code."""
    member = state.pool.member(app)
    while not member.rests:  # noqa: ASYNC110 - turns, permissions and questions can all end last
        await asyncio.sleep(LOOK_EVERY_S)
    state.pool.trust(app.workspace.directory, app.trust)
    await state.pool.close(app.workspace.directory)


def _describe(app: App) -> Iterator[str]:
    """Yield a line for each untrusted file: what its code can do, or which settings it has.

    All of the code is parsed, which takes some time.
    """
    decision = app.trust
    scans = scans_of(decision)
    for path in app.untrusted:
        notes = ["changed since it was trusted"] if path in decision.changed else []
        if path in scans:
            notes += [f"imports {', '.join(scans[path].imports) or 'nothing'}"]
            notes += dict.fromkeys(each.what for each in scans[path].findings)
        else:
            said = (line for line in app.config_sources.warnings if line.startswith(f"{path}: "))
            notes += [line.removeprefix(f"{path}: ") for line in said]
        # A line for each: no name of a file or a provider makes another.
        yield printable_name(f"- {path}" + (f" ({'; '.join(notes)})" if notes else ""))


def _request(state: ServerState, opened: OpenSession, described: str) -> QuestionRequest:
    yes = QuestionOption(label=YES, description="It runs from the next prompt on.")
    no = QuestionOption(label=NO, description="It does not run.")
    is_whole = len(described) <= SHOWN_LETTERS
    if is_whole:
        end = "May they be used while this server runs? What changes is asked about again."
    else:
        described = f"{described[:SHOWN_LETTERS]} ..."
        end = (
            f"That is not all of {len(opened.app.untrusted)} files, and too much for a question:"
            " `pegboard trust allow` shows them whole, and takes the answer."
        )
    question = Question(
        header="Project code",
        question=f"This project brings code or settings of its own:\n{described}\n{end}",
        options=(yes, no) if is_whole else (no,),
        custom=False,
    )
    return QuestionRequest(
        id=state.feed.ids.new("question"), session_id=opened.session.id, questions=(question,)
    )
