"""Operations of OpenCode's protocol that Pegboard lacks; each answers 501 and says why."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from starlette.responses import Response

from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import UnsupportedError
from pegboard_plugins.server.serverstate import Here

_WORKTREES = "this server makes no worktrees: use `git worktree add`, and name it as `directory`"
_WORKSPACES = "this server makes no workspaces: name a folder as `directory`"
_COPIES = "this server copies no projects: use `git worktree add`, and name it as `directory`"
_CONSOLE = "this server signs in to no console: `PUT /auth/{providerID}` stores a provider's key"
_SYNC = "this server has no log of events to synchronise: read its sessions, and `/event`"
_UNSUPPORTED = (
    ("POST", "/experimental/worktree", "worktree.create", _WORKTREES),
    ("DELETE", "/experimental/worktree", "worktree.remove", _WORKTREES),
    ("POST", "/experimental/worktree/reset", "worktree.reset", _WORKTREES),
    ("POST", "/experimental/workspace", "experimental.workspace.create", _WORKSPACES),
    ("POST", "/experimental/workspace/warp", "experimental.workspace.warp", _WORKSPACES),
    ("DELETE", "/experimental/workspace/{id}", "experimental.workspace.remove", _WORKSPACES),
    ("POST", "/experimental/project/{projectID}/copy", "v2.projectCopy.create", _COPIES),
    ("DELETE", "/experimental/project/{projectID}/copy", "v2.projectCopy.remove", _COPIES),
    (
        "POST",
        "/experimental/project/{projectID}/copy/generate-name",
        "experimental.projectCopy.generateName",
        _COPIES,
    ),
    ("POST", "/experimental/project/{projectID}/copy/refresh", "v2.projectCopy.refresh", _COPIES),
    (
        "POST",
        "/experimental/control-plane/move-session",
        "experimental.controlPlane.moveSession",
        "a session stays in its folder: `pegboard session fork ID` in another one copies it",
    ),
    (
        "POST",
        "/experimental/session/{sessionID}/background",
        "experimental.session.background",
        "a subagent that runs cannot be detached: wait for it, or abort its session",
    ),
    ("POST", "/experimental/console/switch", "experimental.console.switchOrg", _CONSOLE),
    (
        "POST",
        "/global/upgrade",
        "global.upgrade",
        "this server does not upgrade itself: stop it, and run `pip install --upgrade pegboard`",
    ),
    ("POST", "/sync/start", "sync.start", _SYNC),
    ("POST", "/sync/history", "sync.history.list", _SYNC),
    ("POST", "/sync/replay", "sync.replay", _SYNC),
    ("POST", "/sync/steal", "sync.steal", _SYNC),
    ("POST", "/vcs/apply", "vcs.apply", "this server applies no patches: use `git apply`"),
)


def unsupported_routes() -> APIRouter:
    """Return the router of all unsupported operations."""
    routes = APIRouter()
    for method, path, name, reason in _UNSUPPORTED:
        known = operation(name, absent=True)
        routes.add_api_route(path, _refusal(reason), methods=[method], **known)
    return routes


def _refusal(reason: str) -> Callable[[Here], Awaitable[Response]]:
    async def refuse(_app: Here) -> Response:
        raise UnsupportedError(reason)

    refuse.__doc__ = f"Answer 501: {reason}."
    return refuse
