"""Routes for projects, their paths and their version control."""

import asyncio
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from pegboard import App, InvalidInputError
from pegboard.app import UserFolders
from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.session import Project, ProjectTime
from pegboard.schema.wire import Rest, to_json
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.gitdiff import (
    FilePatch,
    FileStatus,
    changes,
    default_branch,
    differences,
    find_branch_point,
    make_repository,
    status_of,
)
from pegboard_plugins.server.responses import UnsupportedError, answer
from pegboard_plugins.server.serverstate import Here, Served
from pegboard_plugins.shared.frontend import Branch, branch, moved_here

MOST_CONTEXT = 10_000
PATCH_CONTEXT = 3
routes = APIRouter()


class Paths(Rest, frozen=True):
    """The folders of the user and of the project, all absolute."""

    home: str
    state: str
    config: str
    worktree: str
    directory: str


class Directory(Rest, frozen=True):
    """One folder of a project."""

    directory: str


@routes.get("/path", **operation("path.get", gives=Paths))
async def paths(app: Here, state: Served) -> Response:
    """Return the folders of the user and of the project."""
    places: UserFolders = state.places
    found = Paths(
        home=str(Path.home()),
        state=str(places.state),
        config=str(places.config),
        worktree=str(app.workspace.worktree),
        directory=str(app.workspace.directory),
    )
    return answer(found)


@routes.get("/project", **operation("project.list", gives=tuple[Project, ...]))
async def projects(app: Here) -> Response:
    """List the projects in the database, including the request's project."""
    known = await app.storage.projects()
    rest = tuple(each for each in known if each.id != app.workspace.project_id)
    return answer((await _current(app), *rest))


@routes.get("/project/current", **operation("project.current", gives=Project))
async def current(app: Here) -> Response:
    """Return the project of the request's directory."""
    return answer(await _current(app))


@routes.post("/project/git/init", **operation("project.initGit", gives=Project))
async def init_git(app: Here, state: Served) -> Response:
    """Create a git repository in the directory of a project without one; return the project.

    The sessions of the directory then belong to the repository's project.
    """
    if app.workspace.git_dir is not None:
        return answer(await _current(app))
    for session_id in state.pool.member(app).statuses:
        raise SessionBusyError(session_id)
    directory = app.workspace.directory
    await make_repository(directory)
    await state.pool.close(directory)  # it is opened again as what it is now
    opened = await state.pool.app(directory)
    with state.pool.hold(opened):
        for each in await opened.storage.sessions(app.workspace.project_id, roots=True):
            if each.directory == str(directory):
                await moved_here(opened, each.id)
        project = await _current(opened)
    state.feed.say("project.updated", to_json(project), directory=directory)
    return answer(project)


@routes.patch("/project/{projectID}", **operation("project.update", gives=Project, absent=True))
async def update(projectID: str) -> Response:
    """Return an error, because a project's name is always that of its folder."""
    raise UnsupportedError(f"project {projectID[:80]} has nothing that can be changed")


@routes.get(
    "/project/{projectID}/directories",
    **operation("project.directories", gives=tuple[Directory, ...]),
)
async def directories(projectID: str, app: Here) -> Response:
    """List the folders in which the project is used."""
    if projectID != app.workspace.project_id:
        raise NotFoundError("Project", projectID[:80])
    return answer((Directory(directory=str(app.workspace.worktree)),))


@routes.get("/vcs", **operation("vcs.get", gives=Branch))
async def vcs(app: Here) -> Response:
    """Return the checked-out branch, and the default branch if the repository has one."""
    name = await asyncio.to_thread(lambda: branch(app.workspace))
    return answer(Branch(branch=name or "", default_branch=await default_branch(app)))


@routes.get("/vcs/status", **operation("vcs.status", gives=tuple[FileStatus, ...]))
async def vcs_status(app: Here) -> Response:
    """List the files that differ from the last commit."""
    return answer(tuple(map(status_of, await changes(app))))


@routes.get("/vcs/diff/raw", **operation("vcs.diff.raw", gives=str, media="text/x-diff"))
async def vcs_raw_diff(app: Here) -> Response:
    """Return a single patch of all files that differ from the last commit."""
    found = await differences(app, PATCH_CONTEXT)
    patch = "".join(each.patch for each in found)
    return Response(patch, media_type="text/x-diff; charset=utf-8")


@routes.get("/vcs/diff", **operation("vcs.diff", gives=tuple[FilePatch, ...]))
async def vcs_diff(app: Here, mode: str = "git", context: int = PATCH_CONTEXT) -> Response:
    """Return the differences from the last commit, or from the branch's start, file by file."""
    if mode not in {"git", "branch"} or not 0 <= context <= MOST_CONTEXT:
        raise InvalidInputError(f"mode is git or branch, context is at most {MOST_CONTEXT} lines")
    base = "HEAD" if mode == "git" else await find_branch_point(app)
    return answer([] if base is None else await differences(app, context, base))


async def _current(app: App) -> Project:
    """Return the project from the database, or from its folder if the database lacks it."""
    workspace = app.workspace
    for each in await app.storage.projects():
        if each.id == workspace.project_id:
            return each
    made = await asyncio.to_thread(_creation_ms, workspace.worktree)
    return Project(
        id=workspace.project_id,
        worktree=str(workspace.worktree),
        vcs="git" if workspace.git_dir is not None else None,
        time=ProjectTime(created=made, updated=made),
        sandboxes=(),
    )


def _creation_ms(folder: Path) -> int:
    """Return a folder's creation time in milliseconds since 1970; 0 if the folder is gone."""
    try:
        return int(folder.stat().st_ctime * 1000)
    except OSError:
        return 0
