"""Routes for terminals: created, listed, changed, removed, and used through a WebSocket."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Request, WebSocket
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from pegboard import PegboardError
from pegboard.schema.wire import Rest, Wire, encode
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.responses import answer, body_of, failure, problem
from pegboard_plugins.server.serverstate import Here, Served, app_of, state_of
from pegboard_plugins.server.shells import TerminalOrder
from pegboard_plugins.server.terminal import TerminalSize
from pegboard_plugins.server.terminals import OpenTerminal, Pty, PtyToken, ScreenText

SHELLS_FILE = Path("/etc/shells")
SHELLS = ("/bin/bash", "/bin/sh")
TICKET_HEADER = "x-opencode-ticket"
"""Pages of other sites cannot send it without being asked first, and so get no ticket."""
routes = APIRouter()
_PTY = "/pty/{ptyID}"


class PtyBody(Wire, frozen=True):
    """The request for a new terminal; without a command, the terminal runs the user's shell."""

    command: str | None = None
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    title: str | None = None
    env: Mapping[str, str] | None = None


class PtySize(Wire, frozen=True):
    """The size of a terminal in rows and columns."""

    rows: int
    cols: int


class PtyChange(Wire, frozen=True):
    """The changes to a terminal."""

    title: str | None = None
    size: PtySize | None = None


class ShellEntry(Rest, frozen=True):
    """A shell that is installed on this machine."""

    path: str
    name: str
    acceptable: bool


@routes.get("/pty", **operation("pty.list", gives=tuple[Pty, ...]))
async def terminals(app: Here, state: Served) -> Response:
    """List the terminals of the request's directory."""
    return answer(state.terminals.of(app.workspace.directory))


@routes.get("/pty/shells", **operation("pty.shells", gives=tuple[ShellEntry, ...]))
async def shells() -> Response:
    """List the shells of this machine."""
    return answer(await asyncio.to_thread(_shells))


@routes.post("/pty", **operation("pty.create", gives=Pty, takes=PtyBody))
async def create(request: Request, app: Here, state: Served) -> Response:
    """Open a terminal in the request's directory, or in a folder of its project."""
    body = await body_of(request, PtyBody)
    order = TerminalOrder(
        command=body.command or None, args=body.args or (), cwd=body.cwd, env=body.env or {}
    )
    return answer(await state.terminals.open(app, order, body.title))


@routes.get(_PTY, **operation("pty.get", gives=Pty))
async def terminal(ptyID: str, app: Here, state: Served) -> Response:
    """Return a terminal of the project."""
    return answer(state.terminals.get(app.workspace.directory, ptyID).pty)


@routes.put(_PTY, **operation("pty.update", gives=Pty, takes=PtyChange))
async def update(request: Request, ptyID: str, app: Here, state: Served) -> Response:
    """Change the terminal's title or size."""
    opened = state.terminals.get(app.workspace.directory, ptyID)
    body = await body_of(request, PtyChange)
    size = TerminalSize(rows=body.size.rows, cols=body.size.cols) if body.size else None
    return answer(state.terminals.update(opened, body.title, size))


@routes.delete(_PTY, **operation("pty.remove", gives=bool))
async def remove(ptyID: str, app: Here, state: Served) -> Response:
    """End a terminal and all processes that it started."""
    await state.terminals.remove(state.terminals.get(app.workspace.directory, ptyID))
    return answer(value=True)


@routes.post(_PTY + "/connect-token", **operation("pty.connectToken", gives=PtyToken))
async def connect_token(request: Request, ptyID: str, app: Here, state: Served) -> Response:
    """Return a ticket for one connection, for clients that send credentials in headers."""
    opened = state.terminals.get(app.workspace.directory, ptyID)
    if request.headers.get(TICKET_HEADER) != "1":
        message = f"a ticket is for requests with the header {TICKET_HEADER}: 1"
        tagged = {"_tag": "PtyForbiddenError", "message": message}
        return answer(
            {**tagged, "name": "PtyForbiddenError", "data": {"message": message}}, status=403
        )
    return answer(state.terminals.ticket(opened))


@routes.get(_PTY + "/connect", **operation("pty.connect", gives=bool, query=("cursor", "ticket")))
async def no_upgrade(ptyID: str, app: Here, state: Served) -> Response:
    """Return an error, because a terminal is only used through a WebSocket."""
    state.terminals.get(app.workspace.directory, ptyID)
    return problem(400, "BadRequest", "connect to a terminal with a WebSocket")


@routes.websocket(_PTY + "/connect")
async def connect(socket: WebSocket, ptyID: str) -> None:
    """Send a terminal's screen text, then its new output; write received text to the terminal."""
    state = state_of(socket)
    try:
        app = await app_of(socket, state)
        opened = state.terminals.get(app.workspace.directory, ptyID)
    except PegboardError as error:
        await socket.send_denial_response(failure(error))
        return
    await socket.accept()
    both = (
        _typed(socket, opened),
        _send_screen(socket, opened.screen, _place(socket, opened.screen)),
    )
    tasks = {asyncio.create_task(each, name=f"at {ptyID}") for each in both}
    try:
        # Without a limit: it ends with the terminal, or with the client.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _typed(socket: WebSocket, opened: OpenTerminal) -> None:
    """Write the client's input to the terminal until the client leaves."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        text = message.get("text")
        content = text.encode("utf-8", "replace") if text is not None else message["bytes"]
        await opened.terminal.write(content)


async def _send_screen(socket: WebSocket, screen: ScreenText, place: int) -> None:
    """Send a terminal's output until the terminal ends; a slow client misses some output."""
    told = False
    try:
        while True:
            text, behind = screen.after(place)
            if text:
                await socket.send_text(text)
            elif not told:
                told = True
                await socket.send_bytes(b"\0" + encode({"cursor": behind}))
            elif screen.closed:
                await socket.close()
                return
            else:
                await screen.more(place)
            place = behind
    except WebSocketDisconnect:
        return


def _place(socket: WebSocket, screen: ScreenText) -> int:
    """Return the position to send output from: the client's `cursor`, -1 for the end, or 0."""
    try:
        cursor = int(socket.query_params.get("cursor", ""))
    except ValueError:
        return 0
    return screen.end if cursor == -1 else min(max(cursor, 0), screen.end)


def _shells() -> tuple[ShellEntry, ...]:
    try:
        lines = SHELLS_FILE.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = list(SHELLS)
    paths = [Path(line.strip()) for line in lines if line.startswith("/")]
    return tuple(
        ShellEntry(path=str(path), name=path.name, acceptable=True)
        for path in paths
        if os.access(path, os.X_OK)
    )
