"""Routes for sessions: created, listed, changed, forked, reverted and deleted."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from msgspec import UNSET
from msgspec.structs import asdict
from starlette.responses import Response

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.schema.session import FileDiff, Session, SessionStatus, Todo
from pegboard.schema.wire import Wire, encode
from pegboard.storage import ChangeSession
from pegboard_plugins.server.browser import require_approval
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import UnsupportedError, answer, as_json, body_of
from pegboard_plugins.server.serverstate import (
    AtFolder,
    AtSession,
    Here,
    Served,
    ServerState,
    known_agent,
    session_of,
    valid_id,
)
from pegboard_plugins.shared.frontend import (
    ForkBody,
    RevertBody,
    SessionBody,
    SessionChange,
    forked,
    reverted,
    session_diff,
    unreverted,
)

MOST_SESSIONS = 10_000
PAGE_SESSIONS = 100
"""Of all projects, in an answer to a request that sets no limit."""
LAST_MS = 1e15
NOTICE_MS = 15_000
"""How long terminal interfaces show what a revert has left."""
routes = APIRouter()

Limit = Annotated[int | None, Query(ge=1, le=MOST_SESSIONS)]


@dataclass(kw_only=True)
class Filters:
    """The filters of a list of sessions; `start` is in milliseconds since 1970."""

    directory: str | None = None
    roots: Literal["true", "false"] | None = None
    start: Annotated[float | None, Query(ge=0, le=LAST_MS, allow_inf_nan=False)] = None
    search: Annotated[str | None, Query(max_length=1000)] = None
    limit: Limit = None

    def for_storage(self, app: App) -> dict[str, Any]:
        """Return the filters for the storage; `directory` becomes the App's directory."""
        return {
            "search": self.search or None,
            "roots": self.roots == "true",
            "since": int(self.start) if self.start is not None else None,
            "directory": str(app.workspace.directory) if self.directory else None,
        }


@routes.get("/session", **operation("session.list", gives=tuple[Session, ...]))
async def sessions(
    app: Here,
    filters: Annotated[Filters, Depends()],
    scope: Literal["project"] | None = None,
    path: str | None = None,
) -> Response:
    """Return the project's sessions, the most recently used first.

    A `directory` selects its own sessions. A `scope` or a `path` overrides it; the `path` selects
    the sessions of one folder and of the folders below it.
    """
    known = filters.for_storage(app)
    if scope is not None or path is not None:
        known["directory"] = None
    project, limit = app.workspace.project_id, filters.limit
    if not path:
        return as_json(await app.storage.sessions_json(project, limit=limit, **known))
    found = await app.storage.sessions(project, **known)
    below = (each for each in found if f"{each.path}/".startswith(f"{path}/"))
    return answer(tuple(islice(below, limit)))


class ProjectOfSession(Wire, frozen=True):
    """The project that a session belongs to."""

    id: str
    worktree: str


class GlobalSession(Session, frozen=True, kw_only=True):
    """A session with its project."""

    project: ProjectOfSession


@routes.get(
    "/experimental/session",
    **operation("experimental.session.list", gives=tuple[GlobalSession, ...]),
)
async def all_sessions(
    app: Here,
    filters: Annotated[Filters, Depends()],
    cursor: Annotated[float | None, Query(ge=0, le=LAST_MS, allow_inf_nan=False)] = None,
    archived: Literal["true", "false"] | None = None,
) -> Response:
    """Return the sessions of all projects, the most recently used first.

    A `cursor` selects the sessions before it. If older sessions exist, the header `x-next-cursor`
    has the next cursor.
    """
    found = [
        each
        for each in await app.storage.sessions(**filters.for_storage(app))
        if (cursor is None or each.time.updated < cursor)
        and (archived == "true" or each.time.archived is None)
    ]
    page = found[: filters.limit or PAGE_SESSIONS]
    rows = tuple(map(_with_project, page))
    if len(page) == len(found):
        return answer(rows)
    headers = {
        "x-next-cursor": str(page[-1].time.updated),
        "access-control-expose-headers": "X-Next-Cursor",
    }
    return as_json(encode(rows), headers=headers)


def _with_project(session: Session) -> GlobalSession:
    worktree = session.directory.removesuffix(f"/{session.path}") if session.path else None
    project = ProjectOfSession(id=session.project_id, worktree=worktree or session.directory)
    return GlobalSession(**asdict(session), project=project)


@routes.post("/session", **operation("session.create", gives=Session, takes=SessionBody))
async def create(request: Request, app: Here) -> Response:
    """Create a session."""
    body = await body_of(request, SessionBody)
    if body.permission or body.metadata:  # rules, and the permission mode
        require_approval(request)
    if body.parent_id is not None:
        await session_of(app, body.parent_id)
    session = await app.create_session(
        title=body.title or None,
        parent_id=body.parent_id,
        agent=known_agent(app, body.agent),
        permission=body.permission or (),
    )
    if body.model is not None or body.metadata is not None:
        change = ChangeSession(session_id=session.id, model=body.model, metadata=body.metadata)
        await app.storage.commit(change)
        session = await app.session(session.id)
    return answer(session)


@routes.get("/session/status", **operation("session.status", gives=dict[str, SessionStatus]))
async def statuses(app: Here, state: Served) -> Response:
    """Return the state of each running session; idle sessions are left out."""
    return answer({**state.elsewhere(app).statuses, **state.pool.member(app).statuses})


@routes.get("/session/{sessionID}", **operation("session.get", gives=Session))
async def session(opened: AtSession) -> Response:
    """Return the session."""
    return answer(opened.session)


@routes.patch(
    "/session/{sessionID}", **operation("session.update", gives=Session, takes=SessionChange)
)
async def update(request: Request, opened: AtSession) -> Response:
    """Change the session, even during a turn, and return the changed session."""
    body = await body_of(request, SessionChange)
    archived = UNSET if body.time is None else body.time.archived
    change = ChangeSession(
        session_id=opened.session.id,
        title=(body.title or "").strip() or UNSET,
        archived=archived if archived is UNSET or (archived or 0) > 0 else None,
        permission=UNSET if body.permission is None else body.permission,
        metadata=UNSET if body.metadata is None else body.metadata,
    )
    await opened.app.storage.commit(change)
    if body.metadata is not None:  # the mode is there, which may allow what waits
        await opened.app.permissions.recheck()
    return answer(await opened.app.session(opened.session.id))


@routes.delete("/session/{sessionID}", **operation("session.delete", gives=bool))
async def delete(opened: AtSession) -> Response:
    """Delete the session and the sessions of its subagents."""
    await opened.app.delete_session(opened.session.id)
    return answer(value=True)


@routes.get(
    "/session/{sessionID}/children", **operation("session.children", gives=tuple[Session, ...])
)
async def children(opened: AtSession) -> Response:
    """List the sessions of the session's subagents."""
    return answer(await opened.app.children(opened.session.id))


@routes.get("/session/{sessionID}/todo", **operation("session.todo", gives=tuple[Todo, ...]))
async def todos(opened: AtSession) -> Response:
    """Return the session's todo list."""
    return answer(await opened.app.storage.todos(opened.session.id))


@routes.get("/session/{sessionID}/diff", **operation("session.diff", gives=tuple[FileDiff, ...]))
async def diff(
    opened: AtSession, message_id: Annotated[str | None, Query(alias="messageID")] = None
) -> Response:
    """Return the files that the session, or the answer to one prompt, has changed."""
    return answer(await session_diff(opened.app, opened.session.id, message_id=message_id))


@routes.post(
    "/session/{sessionID}/fork", **operation("session.fork", gives=Session, takes=ForkBody)
)
async def fork(request: Request, opened: AtSession) -> Response:
    """Create a session with a copy of all messages, or of the messages before a given message."""
    body = await body_of(request, ForkBody)
    return answer(await forked(opened.app, opened.session.id, body.message_id))


@routes.post("/session/{sessionID}/abort", **operation("session.abort", gives=bool))
async def abort(sessionID: str, app: Here, state: Served) -> Response:
    """Stop the session's work; an unknown session counts as stopped, as in OpenCode."""
    try:
        found = await app.session(valid_id("session", sessionID))
    except NotFoundError:
        return answer(value=True)
    if found.project_id != app.workspace.project_id:
        raise NotFoundError("Session", sessionID)
    for member in (state.pool.member(app), *state.pool.members()):
        if await member.app.abort(sessionID):
            break
    else:
        _publish_rest(state, found)
    return answer(value=True)


def _publish_rest(state: ServerState, session: Session) -> None:
    """Publish that the session is idle, for clients that missed the end of its turn."""
    directory = Path(session.directory)
    known = {"sessionID": session.id}
    rest = {**known, "status": {"type": "idle"}}
    state.feed.say("session.status", rest, directory=directory)
    state.feed.say("session.idle", known, directory=directory)


@routes.post(
    "/session/{sessionID}/revert", **operation("session.revert", gives=Session, takes=RevertBody)
)
async def revert(request: Request, opened: AtFolder, state: Served) -> Response:
    """Restore the session and its files to before a message; an event lists skipped files."""
    body = await body_of(request, RevertBody)
    done = await reverted(opened.app, opened.session.id, body.message_id, body.part_id)
    _tell_left(state, opened.app, done.warning)
    return answer(done.session)


@routes.post("/session/{sessionID}/unrevert", **operation("session.unrevert", gives=Session))
async def unrevert(opened: AtFolder, state: Served) -> Response:
    """Undo a revert of the session and its files; an event lists files left unchanged."""
    done = await unreverted(opened.app, opened.session.id)
    _tell_left(state, opened.app, done.warning)
    return answer(done.session)


def _tell_left(state: ServerState, app: App, text: str) -> None:
    """Notify terminal interfaces of files left unchanged, since they ignore `session.warning`."""
    if text:
        notice = {"title": "Not undone", "message": text, "variant": "warning"}
        directory = app.workspace.directory
        state.feed.say("tui.toast.show", {**notice, "duration": NOTICE_MS}, directory=directory)


@routes.post("/session/{sessionID}/share", **operation("session.share", gives=Session, absent=True))
@routes.delete(
    "/session/{sessionID}/share", **operation("session.unshare", gives=Session, absent=True)
)
async def share(opened: AtSession) -> Response:
    """Return an error, because sessions are not published anywhere."""
    raise UnsupportedError(
        f"session {opened.session.id} stays here: there is no site to share it on"
    )
