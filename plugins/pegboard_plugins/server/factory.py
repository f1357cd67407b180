"""The ASGI application: all routes, with errors in the format of OpenCode's protocol."""

import logging
from collections.abc import Iterable

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from pegboard import PegboardError
from pegboard_plugins.server import (
    browser,
    catalogue,
    configuration,
    files,
    insight,
    messages,
    projects,
    providers,
    pty,
    register_routes,
    remote,
    requests,
    sessions,
    sse,
    toolservers,
    turns,
)
from pegboard_plugins.server.forwarding import Forwarder
from pegboard_plugins.server.responses import failure, problem
from pegboard_plugins.server.serverstate import ServerState
from pegboard_plugins.server.unsupported import unsupported_routes

_RESOURCES = (
    remote,
    sse,
    sessions,
    messages,
    turns,
    requests,
    configuration,
    providers,
    projects,
    files,
    catalogue,
    toolservers,
    insight,
    pty,
    browser,
)
_log = logging.getLogger("pegboard.server")


async def add_plugin_routes(app: FastAPI, state: ServerState) -> None:
    """Add the routers of plugins in the server's own directory, under each plugin's name."""
    opened = await state.pool.app(state.directory)
    for found in await opened.hooks.collect(register_routes):
        if not isinstance(found.value, APIRouter):
            _log.warning("plugin %s: a router is a fastapi.APIRouter", found.plugin)
            continue
        before = len(app.routes)
        app.include_router(found.value, prefix=f"/plugin/{found.plugin}")
        app.state.plugins.setdefault(found.plugin, []).extend(app.routes[before:])
        own = (each for each in found.value.routes if isinstance(each, APIRoute))
        public = browser.PUBLIC.items()
        open_to_all = (each for each in own if public <= (each.openapi_extra or {}).items())
        state.public |= {f"/plugin/{found.plugin}{each.path}" for each in open_to_all}


def forwarding(app: FastAPI, state: ServerState) -> ASGIApp:
    """Wrap the application so that it forwards requests to other servers of the fleet."""
    handlers = {
        PegboardError: answer_error,
        HTTPException: _unknown,
        ClientDisconnect: _broken_off,
    }
    return ExceptionMiddleware(Forwarder(app, state), handlers=handlers)


def application(state: ServerState) -> FastAPI:
    """Return the application with all routes, which share the given server state."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.server = state
    own = (module.routes for module in _RESOURCES)
    app.state.routers = (*own, remote.order_routes(), unsupported_routes())
    app.state.plugins = {}
    for router in app.state.routers:
        app.include_router(router)
    app.add_exception_handler(PegboardError, answer_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(ClientDisconnect, _broken_off)
    app.add_exception_handler(Exception, _broken)
    return app


async def answer_error(_request: Request, error: Exception) -> Response:
    """Return a Pegboard error as a response in the format of OpenCode's protocol."""
    assert isinstance(error, PegboardError)
    return failure(error)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"][1:])
    return problem(400, "BadRequest", f'{first["msg"]}\n  at ["{place}"]', kind="Query")


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    if error.status_code == 404:  # noqa: PLR2004 - the status itself
        return problem(404, "NotFoundError", f"no such route: {path[:200]}")
    answer = problem(error.status_code, "BadRequest", error.detail)
    if error.status_code == 405:  # noqa: PLR2004 - the status itself
        routes = (each for router in request.app.state.routers for each in router.routes)
        of_a_plugin = (error.headers or {}).get("Allow", "")
        answer.headers["allow"] = ", ".join(_methods(routes, path)) or of_a_plugin
    return answer


def _methods(routes: Iterable[BaseRoute], path: str) -> list[str]:
    """Return the methods of all routes with this path (RFC 9110 §15.5.6)."""
    found = (
        route.methods or ()
        for route in routes
        if isinstance(route, Route) and route.path_regex.match(path)
    )
    return sorted({method for methods in found for method in methods})


async def _broken_off(_request: Request, _error: Exception) -> Response:
    """Return an error for a request with an incomplete body, and close the connection."""
    return problem(400, "BadRequest", "the body broke off; send the request again", kind="Payload")


async def _broken(request: Request, error: Exception) -> Response:
    reference = f"err_{request.state.request_id}"
    _log.error("%s: %s", reference, error, exc_info=error)
    message = "Unexpected server error. The server's log has the details."
    return problem(500, "UnknownError", message, ref=reference)
