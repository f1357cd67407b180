"""The HTTP server in a fleet worker, with which other servers reach the sessions of its jobs."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qsl, quote, urlencode

import uvicorn
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard import App, AppOptions, PegboardError
from pegboard.app import UserFolders
from pegboard.errors import NotFoundError
from pegboard_plugins.server import FleetServer
from pegboard_plugins.server.auth import Credentials
from pegboard_plugins.server.factory import answer_error, application
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.fleet import read_secret, token_of
from pegboard_plugins.server.forwarding import DIRECTORY_HEADER, REQUEST_PATH, SESSION_PATH
from pegboard_plugins.server.guard import AccessPolicy, Guard
from pegboard_plugins.server.lifecycle import (
    ServerSettings,
    config_of,
    fleet_url,
    hosts_of,
    listening,
)
from pegboard_plugins.server.pool import Pool
from pegboard_plugins.server.responses import PeerError
from pegboard_plugins.server.running import RunningSessions
from pegboard_plugins.server.serverstate import ServerState
from pegboard_plugins.server.terminals import Terminals
from pegboard_plugins.shared.frontend import KeyFile

_DIRECTORY_KEYS = ("directory", "location[directory]")


class JobServer:
    """The server for the Apps of a worker's jobs; `own` has its address within the fleet.

    Its only clients are the fleet's servers, which use the fleet's secret. No password is accepted.
    """

    def __init__(self, own: FleetServer, pool: Pool) -> None:
        self.own = own
        self._pool = pool

    async def add(self, app: App) -> None:
        """Serve the sessions of an App until the App is closed."""
        await self._pool.adopt(app)


@asynccontextmanager
async def job_server(
    secret_file: Path, host: str, env: Mapping[str, str]
) -> AsyncIterator[JobServer]:
    """Serve the Apps that are added, on a free port of an address of this machine.

    :raises InvalidInputError: when the address cannot be listened on, or the secret not be used.
    """
    secret = read_secret(secret_file)
    settings = ServerSettings(
        directory=Path.cwd(), options=AppOptions(), host=host, port=0, secret=secret
    )
    with listening(settings) as listener:
        port = listener.getsockname()[1]
        url = fleet_url(settings, port)
        host_name = socket.gethostname()
        own = FleetServer(id=secrets.token_hex(8), host=host_name, url=url, is_worker=True)
        state = _state(settings.directory, UserFolders.of(env))
        policy = AccessPolicy(
            credentials=Credentials(token=token_of(secret, own.id)),
            hosts=hosts_of(settings, port),
            admits=state.terminals.admits,
        )
        server = _SignalFreeServer(config_of(Guard(_application(state), policy)))
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="serve jobs")
        try:
            yield JobServer(own, state.pool)
        finally:
            state.feed.close()
            server.should_exit = True
            await serving


def _state(directory: Path, places: UserFolders) -> ServerState:
    feed = EventFeed()
    return ServerState(
        directory=directory,
        pool=Pool(_refuse, feed, running=None),
        feed=feed,
        keys=KeyFile(places.keys),
        places=places,
        terminals=Terminals(feed),
        running=RunningSessions(places.state / "running"),
    )


def _refuse() -> NoReturn:
    raise NotFoundError("job", "in this folder")


def _application(state: ServerState) -> ASGIApp:
    app = application(state)
    return ExceptionMiddleware(_JobRoutes(app, state.pool), handlers={PegboardError: answer_error})


class _SignalFreeServer(uvicorn.Server):
    """uvicorn's server without signal handlers, because the worker process handles signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers, because the worker process handles signals."""
        yield


class _JobRoutes:
    """The ASGI application in front of the routes, which selects the App that runs a session.

    The client's directory is ignored, because it is on another machine.
    """

    def __init__(self, app: ASGIApp, pool: Pool) -> None:
        self._app = app
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the App that runs its session."""
        if scope["type"] == "http" and (found := self._asked(scope["path"])) is not None:
            name = DIRECTORY_HEADER.encode()
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            scope = {
                **scope,
                "headers": [
                    *(pair for pair in scope["headers"] if pair[0] != name),
                    (name, quote(str(found.workspace.directory)).encode()),
                ],
                "query_string": urlencode(
                    [pair for pair in query if pair[0] not in _DIRECTORY_KEYS]
                ).encode(),
            }
        await self._app(scope, receive, send)

    def _asked(self, path: str) -> App | None:
        """Return the App of the session or request in a URL path; None for other paths.

        :raises PeerError: when no job has the session or the request.
        """
        session, request = SESSION_PATH.fullmatch(path), REQUEST_PATH.fullmatch(path)
        if session is None and request is None:
            return None
        for member in self._pool.members():
            app = member.app
            waiting = {each.id for each in app.permissions.pending()}
            waiting |= {each.id for each in app.questions.pending()}
            if session is not None and session[1] in member.statuses:
                return app
            if request is not None and request[1] in waiting:
                return app
        raise PeerError("the worker does not run this session now; send the request again")
