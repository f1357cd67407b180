"""Browser sessions, with which a plugin's page uses the server without knowing its password.

A client with the server's token requests a key, which opens one session within a minute.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import PermissionDeniedError
from pegboard.schema.wire import Wire
from pegboard_plugins.server.browserdoor import SESSION_PATH, SESSION_WITHIN_S, BrowserSession
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import answer, body_of, problem
from pegboard_plugins.server.serverstate import Served

PUBLIC = {"x-pegboard-public": True}
"""`openapi_extra` of a plugin's GET route that needs no credentials: a file without data."""
MAY_NOT_APPROVE = "x-pegboard-may-not-approve"
"""The header by which another server passes on what a page there may not do."""
routes = APIRouter()


class BrowserKeyBody(Wire, frozen=True):
    """The rights of a new browser session: with `approve`, its page may approve tool calls."""

    approve: bool = False


class BrowserKey(Wire, frozen=True):
    """A key that opens one browser session, once and within a minute."""

    key: str


class BrowserProof(Wire, frozen=True):
    """The proof of a browser session, which the session's page sends in addition to a cookie.

    `event` is the id of the newest event. An event stream after this id misses no event of the
    session.
    """

    proof: str
    approve: bool
    event: str


def browser_session(request: Request) -> BrowserSession | None:
    """Return a request's browser session; None for a request with a token or password."""
    found: BrowserSession | None = request.scope.get("state", {}).get("browser")
    return found


def may_not_approve(request: Request) -> bool:
    """Return whether the request comes from a page without the right to permanent approvals."""
    session = browser_session(request)
    return MAY_NOT_APPROVE in request.headers or (session is not None and not session.approve)


def require_approval(request: Request) -> None:
    """Refuse a request for a permanent approval from a page that may not approve.

    :raises PermissionDeniedError: when the request comes from such a page.
    """
    if may_not_approve(request):
        raise PermissionDeniedError(
            "this page may not allow calls for good; `pegboard web --allow-approve` opens one that "
            "may, and `pegboard permission` changes rules"
        )


@routes.post(
    "/pegboard/browser/key",
    **operation("pegboard.browser.key", gives=BrowserKey, takes=BrowserKeyBody),
)
async def make_key(request: Request, state: Served) -> Response:
    """Return a key for one browser session; the client must send the server's token or password."""
    body = await body_of(request, BrowserKeyBody)
    return answer(BrowserKey(key=state.door.new_key(approve=body.approve)))


@routes.post(
    SESSION_PATH, **operation("pegboard.browser.session", gives=BrowserProof, takes=BrowserKey)
)
async def open_session(request: Request, state: Served) -> Response:
    """Open a browser session: return its proof, and set its cookie."""
    opened = state.door.open((await body_of(request, BrowserKey)).key)
    if opened is None:
        text = "the key is used or older than a minute; run `pegboard web` again"
        return problem(401, "UnauthorizedError", text)
    cookie, session = opened
    newest = state.feed.frame_id(state.feed.last)
    found = answer(BrowserProof(proof=session.proof, approve=session.approve, event=newest))
    found.headers["cache-control"] = "no-store"
    found.set_cookie(
        state.door.cookie, cookie, max_age=SESSION_WITHIN_S, httponly=True, samesite="strict"
    )
    return found
