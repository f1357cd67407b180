"""The state that all routes share: the server's Apps and events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_to_bytes

from fastapi import Depends
from starlette.requests import HTTPConnection

from pegboard import App, InvalidInputError, PegboardError
from pegboard.app import UserFolders
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.session import Session
from pegboard.unstable import check_id
from pegboard_plugins.server.browserdoor import BrowserDoor
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.fleet import Elsewhere, ServerFleet
from pegboard_plugins.server.orders import Orders
from pegboard_plugins.server.pool import Pool
from pegboard_plugins.server.running import RunningSessions
from pegboard_plugins.server.terminals import Terminals
from pegboard_plugins.shared.frontend import KeyFile, require_folder

DRAIN_S = 3.0
"""How long a stop waits for work that no client waits for."""
_log = logging.getLogger("pegboard.server")
_Value = TypeVar("_Value")


@dataclass(kw_only=True)
class ServerState:
    """The state of the server; `directory` serves requests that name no directory.

    `public` are the paths of plugins' files that need no credentials. `fleet` is None for a server
    outside of a fleet.
    """

    directory: Path
    pool: Pool
    feed: EventFeed
    keys: KeyFile
    places: UserFolders
    terminals: Terminals
    running: RunningSessions
    door: BrowserDoor = field(default_factory=BrowserDoor)
    public: set[str] = field(default_factory=set)
    orders: Orders = field(default_factory=Orders)
    work: set[asyncio.Task[Any]] = field(default_factory=set)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked_about: set[tuple[Path, str]] = field(default_factory=set)
    fleet: ServerFleet | None = None

    def start(self, work: Coroutine[Any, Any, _Value], name: str) -> "asyncio.Task[_Value]":
        """Start a task that goes on even if its client disconnects; `aclose` ends it."""
        task = asyncio.create_task(work, name=name)
        self.work.add(task)
        task.add_done_callback(self._finished)
        return task

    def elsewhere(self, app: App) -> Elsewhere:
        """Return the project's running sessions and waiting requests on other servers."""
        return self.fleet.elsewhere(app) if self.fleet is not None else Elsewhere()

    def _finished(self, task: "asyncio.Task[Any]") -> None:
        self.work.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PegboardError):
            _log.error("%s failed", task.get_name(), exc_info=error)

    async def aclose(self) -> None:
        """Cancel the tasks of requests, wait until they have ended, and close all Apps."""
        await self.terminals.aclose()
        if self.fleet is not None:
            await self.fleet.aclose()
        await self.pool.aclose()
        if self.work:
            _, pending = await asyncio.wait(self.work, timeout=DRAIN_S)
            for task in pending:
                task.cancel()


def state_of(connection: HTTPConnection) -> ServerState:
    """Return the server's state, as a dependency of a route."""
    state: ServerState = connection.app.state.server
    return state


Served = Annotated[ServerState, Depends(state_of)]


def named_directory(connection: HTTPConnection) -> str:
    """Return the directory that a request names by query or header; "" if the request names none.

    Newer clients percent-encode the header, older clients do not.
    """
    query = connection.query_params
    named = query.get("directory") or query.get("location[directory]")
    if named is None and (header := connection.headers.get("x-opencode-directory")):
        named = _unquoted(header)
    return named or ""


def asked_directory(connection: HTTPConnection, state: ServerState) -> Path:
    """Return the directory that a request names, or the server's own directory."""
    named = named_directory(connection)
    if not named:
        return state.directory
    if "\0" in named:
        raise InvalidInputError("the name of a directory has a NUL in it")
    path = Path(named)
    if not path.is_absolute():
        raise InvalidInputError(f"not an absolute path: {named[:200]}")
    return path


def _unquoted(header: str) -> str:
    """Decode a header as UTF-8; if that fails, as Latin-1, which browsers send."""
    raw = unquote_to_bytes(header.encode("latin-1"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


async def app_of(connection: HTTPConnection, state: Served) -> App:
    """Return the App of the request's directory, opened at its first use.

    :raises InvalidInputError: when the path is not a directory.
    :raises PermissionDeniedError: when the directory belongs to the operating system.
    """
    return await state.pool.app(asked_directory(connection, state))


async def _hold_app(app: Annotated[App, Depends(app_of)], state: Served) -> AsyncIterator[App]:
    with state.pool.hold(app):
        yield app


Here = Annotated[App, Depends(_hold_app)]
"""The App of the directory that the request means; it stays open until the answer is sent."""
Followed = Annotated[App, Depends(app_of)]
"""The App of the directory that the request means, for what lasts longer than an App may."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session together with the App that runs the session."""

    app: App
    session: Session


async def session_of(app: App, session_id: str) -> Session:
    """Return the session of the App's project.

    :raises NotFoundError: when there is none, or it is another project's.
    """
    session = await app.session(valid_id("session", session_id))
    if session.project_id != app.workspace.project_id:
        raise NotFoundError("Session", session_id)
    return session


async def _place(sessionID: str, app: Here, state: Served) -> AsyncIterator[OpenSession]:
    if state.pool.is_adopted(app):  # the session may have begun in another folder
        yield OpenSession(app, await app.session(sessionID))
        return
    session = await session_of(app, sessionID)
    directory = Path(session.directory)
    if directory != app.workspace.directory and await asyncio.to_thread(directory.is_dir):
        app = await state.pool.app(directory)
    with state.pool.hold(app):
        yield OpenSession(app, session)


AtSession = Annotated[OpenSession, Depends(_place)]
"""The session that the path names; 404 when there is none in the project."""


async def _working(opened: AtSession, state: Served) -> OpenSession:
    if not state.pool.is_adopted(opened.app):
        require_folder(opened.session, opened.app.workspace.directory)
    return opened


AtFolder = Annotated[OpenSession, Depends(_working)]
"""The same for what changes files; 400 when the session's folder does not exist any more."""


def known_agent(app: App, name: str | None) -> str | None:
    """Return the name of an agent if a request may use the agent.

    :raises NotFoundError: when the App has no agent of this name, with the nearest names.
    """
    if name is not None and name not in app.agents:
        raise NotFoundError("agent", name, suggestions=nearest_names(name, app.agents))
    return name


def valid_id(kind: "str", text: str) -> str:
    """Return `text` if it is a valid id of the given kind.

    :raises NotFoundError: when the id is invalid, because no object can have it.
    """
    try:
        return check_id(kind, text)  # type: ignore[arg-type] # one of the protocol's kinds
    except InvalidInputError as error:
        raise NotFoundError(kind.capitalize(), text[:80]) from error
