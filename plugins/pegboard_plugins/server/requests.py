"""Routes for permission requests and questions that wait for an answer, and for the answers."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import App, InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.schema.session import Answers, PermissionRequest, Question, QuestionRequest
from pegboard_plugins.server.browser import require_approval
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import answer, body_of
from pegboard_plugins.server.serverstate import (
    AtSession,
    Here,
    OpenSession,
    Served,
    ServerState,
    named_directory,
    valid_id,
)
from pegboard_plugins.server.waiting import wait_while_connected
from pegboard_plugins.shared.frontend import AnswersBody, QuestionsBody, ReplyBody, ResponseBody

routes = APIRouter()


@routes.get("/permission", **operation("permission.list", gives=tuple[PermissionRequest, ...]))
async def permissions(app: Here, state: Served) -> Response:
    """List the permission requests that wait for an answer."""
    return answer((*app.permissions.pending(), *state.elsewhere(app).permissions))


@routes.post(
    "/permission/{requestID}/reply",
    **operation("permission.reply", gives=bool, takes=ReplyBody),
)
async def reply(request: Request, requestID: str, app: Here, state: Served) -> Response:
    """Answer a permission request that waits."""
    body = await body_of(request, ReplyBody)
    request_id = valid_id("permission", requestID)
    asked_in = _permission_app(_apps(request, state, app), request_id)
    if body.reply == "always":
        if body.scope != "session":
            require_approval(request)
        await asked_in.policy.approve(
            request_id, body.scope, agent_only=body.agent_only, patterns=body.patterns
        )
    elif body.reply == "reject" and body.unattended:
        await asked_in.permissions.leave_unattended(request_id)
    else:
        await asked_in.answer_permission(request_id, body.reply, body.message)
    return answer(value=True)


@routes.post(
    "/session/{sessionID}/permissions/{permissionID}",
    **operation("permission.respond", gives=bool, takes=ResponseBody),
)
async def respond(request: Request, opened: AtSession, permissionID: str) -> Response:
    """Answer a permission request, in the form that older OpenCode clients send."""
    body = await body_of(request, ResponseBody)
    request_id = valid_id("permission", permissionID)
    waiting = opened.app.permissions.pending(opened.session.id)
    if not any(each.id == request_id for each in waiting):
        raise NotFoundError("Permission", request_id)
    await opened.app.answer_permission(request_id, body.response)
    return answer(value=True)


@routes.get("/question", **operation("question.list", gives=tuple[QuestionRequest, ...]))
async def questions(app: Here, state: Served) -> Response:
    """List the questions that wait for an answer."""
    return answer((*app.questions.pending(), *state.elsewhere(app).questions))


@routes.post(
    "/session/{sessionID}/question",
    **operation("question.ask", gives=Answers | None, takes=QuestionsBody),
)
async def ask(request: Request, opened: AtSession, state: Served) -> Response:
    """Ask the user the questions in the body; return the answers, or null if no user is present."""
    body = await body_of(request, QuestionsBody)
    if not body.questions:
        raise InvalidInputError("there is no question to ask")
    asking = state.start(_ask(state, opened, body.questions), f"question {opened.session.id}")
    await wait_while_connected(request, state, asking)
    return answer(None if asking.cancelled() else asking.result())


async def _ask(
    state: ServerState, opened: OpenSession, questions: tuple[Question, ...]
) -> Answers | None:
    with state.pool.hold(opened.app):
        return await opened.app.ask_user(opened.session.id, questions)


@routes.post(
    "/question/{requestID}/reply",
    **operation("question.reply", gives=bool, takes=AnswersBody),
)
async def answer_question(request: Request, requestID: str, app: Here, state: Served) -> Response:
    """Answer the questions of a question request."""
    body = await body_of(request, AnswersBody)
    request_id = valid_id("question", requestID)
    asked_in = _question_app(_apps(request, state, app), request_id)
    await asked_in.answer_question(request_id, body.answers)
    return answer(value=True)


@routes.post("/question/{requestID}/reject", **operation("question.reject", gives=bool))
async def reject_question(request: Request, requestID: str, app: Here, state: Served) -> Response:
    """Decline the questions of a question request."""
    request_id = valid_id("question", requestID)
    await _question_app(_apps(request, state, app), request_id).reject_question(request_id)
    return answer(value=True)


def _permission_app(apps: tuple[App, ...], request_id: str) -> App:
    for each in apps:
        if any(waiting.id == request_id for waiting in each.permissions.pending()):
            return each
    return apps[0]


def _question_app(apps: tuple[App, ...], request_id: str) -> App:
    for each in apps:
        if any(waiting.id == request_id for waiting in each.questions.pending()):
            return each
    return apps[0]


def _apps(request: Request, state: ServerState, app: App) -> tuple[App, ...]:
    """Return the Apps to search for the permission request or question that a client answers.

    These are the Apps of the project that the client names, or all if it names none.
    """
    others = (member.app for member in state.pool.members())
    if named_directory(request):
        others = (each for each in others if _project(each) == _project(app))
    return (app, *others)


def _project(app: App) -> str:
    return app.workspace.project_id
