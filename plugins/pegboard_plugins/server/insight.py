"""Routes that OpenCode's protocol lacks: plugins, their changes to prompts, and protected paths."""

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keymask import without_keys
from pegboard_plugins.server.responses import answer
from pegboard_plugins.server.serverstate import Here
from pegboard_plugins.shared.frontend import (
    PluginEntry,
    Protection,
    TraceEntry,
    begin_trace,
    default_mode,
    left_out,
    plugin_entries,
    standing,
    trace_entries,
    unseen_warnings,
)

routes = APIRouter()


@routes.get("/pegboard/plugins", **operation("pegboard.plugins", gives=tuple[PluginEntry, ...]))
async def plugins(app: Here) -> Response:
    """List the plugins with their problems and their tools."""
    return answer(without_keys(app, plugin_entries(app)))


@routes.get("/pegboard/protection", **operation("pegboard.protection", gives=Protection))
async def protection(app: Here) -> Response:
    """Return the sandbox's level, and the project's files that are ignored for lack of trust."""
    await app.reload_project_code()
    untrusted = tuple(str(path) for path in app.untrusted)
    unseen = await asyncio.to_thread(unseen_warnings, app)
    return answer(
        Protection(
            sandbox=app.config.sandbox,
            mode=default_mode(app.config),
            untrusted=untrusted,
            unseen=unseen,
            left_out=left_out(app).lines,
        )
    )


@routes.get("/pegboard/standing", **operation("pegboard.standing", gives=dict[str, int]))
async def standing_parts(app: Here, agent: str = "", session: str = "") -> Response:
    """Return how many characters each source adds to every request, besides the conversation."""
    return answer(dict(standing(app, session, agent)))


@routes.get("/pegboard/trace", **operation("pegboard.trace", gives=tuple[TraceEntry, ...]))
async def trace(app: Here, session: str = "") -> Response:
    """List the changes that plugins made to the session's prompts since tracing began."""
    return answer(without_keys(app, trace_entries(app, session)))


@routes.post("/pegboard/trace", **operation("pegboard.trace.begin", gives=bool))
async def tracing(app: Here) -> Response:
    """Begin to record how plugins change prompts."""
    begin_trace(app)
    return answer(value=True)
