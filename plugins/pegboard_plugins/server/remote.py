"""Routes that control terminal interfaces, write to the log, and report the server's state."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pegboard import InvalidInputError, __version__
from pegboard.schema.wire import Rest
from pegboard_plugins.server.documents import document, operation, with_plugins
from pegboard_plugins.server.orders import InterfaceOrder
from pegboard_plugins.server.responses import answer, body_of, problem
from pegboard_plugins.server.serverstate import Here, Served, session_of
from pegboard_plugins.server.waiting import wait_while_connected
from pegboard_plugins.shared.frontend import Health, LogBody

routes = APIRouter()
_APPEND, _EXECUTE, _TOAST = "tui.prompt.append", "tui.command.execute", "tui.toast.show"
_SELECT = "tui.session.select"
_NEEDED: dict[str, tuple[str, ...]] = {
    _APPEND: ("text",),
    _EXECUTE: ("command",),
    _TOAST: ("message", "variant"),
    _SELECT: ("sessionID",),
}
"""The actions of terminal interfaces, with the texts that each needs."""
_SPOKEN = {"/tui/append-prompt": _APPEND, "/tui/show-toast": _TOAST}
_ORDERS = {
    "/tui/open-help": ("tui.openHelp", "help.show"),
    "/tui/open-sessions": ("tui.openSessions", "session.list"),
    "/tui/open-themes": ("tui.openThemes", "theme.switch"),
    "/tui/open-models": ("tui.openModels", "model.list"),
    "/tui/submit-prompt": ("tui.submitPrompt", "prompt.submit"),
    "/tui/clear-prompt": ("tui.clearPrompt", "prompt.clear"),
}
_COMMANDS = {
    "session_new": "session.new",
    "session_share": "session.share",
    "session_interrupt": "session.interrupt",
    "session_compact": "session.compact",
    "messages_page_up": "session.page.up",
    "messages_page_down": "session.page.down",
    "messages_line_up": "session.line.up",
    "messages_line_down": "session.line.down",
    "messages_half_page_up": "session.half.page.up",
    "messages_half_page_down": "session.half.page.down",
    "messages_first": "session.first",
    "messages_last": "session.last",
    "agent_cycle": "agent.cycle",
}
"""The keys' names of commands, with those that terminal interfaces know."""
_VARIANTS = ("info", "success", "warning", "error")
TOAST_MS = 5000
"""How long a notice is shown that says nothing about it."""
_LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}
_log = logging.getLogger("pegboard.client")


class Spoken(Rest, frozen=True):
    """An event or command for terminal interfaces."""

    type: str
    properties: dict[str, Any]


@routes.get("/global/health", **operation("global.health", gives=Health))
async def health() -> Response:
    """Report that the server runs, with the server's version."""
    return answer(Health(healthy=True, version=__version__))


@routes.get("/doc", **operation("doc", gives=dict[str, Any]))
async def doc(request: Request) -> Response:
    """Return the server's API as an OpenAPI document."""
    state = request.app.state
    return answer(with_plugins(document(state.routers), state.plugins))


@routes.post("/log", **operation("app.log", gives=bool, takes=LogBody))
async def log(request: Request) -> Response:
    """Write a client's line to the server's log."""
    body = await body_of(request, LogBody)
    _log.log(_LEVELS[body.level], "%s: %r", body.service[:80], body.message[:2000])
    return answer(value=True)


@routes.post("/instance/dispose", **operation("instance.dispose", gives=bool))
async def dispose(app: Here, state: Served) -> Response:
    """Stop all work in the request's directory, and close the directory's App."""
    await _dispose(state, app)
    return answer(value=True)


@routes.post("/global/dispose", **operation("global.dispose", gives=bool))
async def dispose_all(state: Served) -> Response:
    """Stop all work in all directories, and close all Apps."""
    for member in state.pool.members():
        await _dispose(state, member.app)
    state.feed.say("global.disposed", {})
    return answer(value=True)


async def _dispose(state: Served, app: Here) -> None:
    directory = app.workspace.directory
    await state.terminals.close(directory)
    await state.pool.close(directory)
    told = {"directory": str(directory)}
    state.feed.say("server.instance.disposed", told, directory=directory)
    state.feed.hang_up(directory)


@routes.post(
    "/tui/append-prompt", **operation("tui.appendPrompt", gives=bool, takes=dict[str, Any])
)
@routes.post("/tui/show-toast", **operation("tui.showToast", gives=bool, takes=dict[str, Any]))
async def speak(request: Request, app: Here, state: Served) -> Response:
    """Pass a command to the terminal interfaces of the request's directory."""
    said = Spoken(type=_SPOKEN[request.url.path], properties=await body_of(request, dict[str, Any]))
    return _say(said, InterfaceOrder(path=request.url.path, body=said.properties), app, state)


@routes.post("/tui/publish", **operation("tui.publish", gives=bool, takes=Spoken))
async def publish(request: Request, app: Here, state: Served) -> Response:
    """Pass an event to the terminal interfaces of the request's directory."""
    said = await body_of(request, Spoken)
    return _say(said, InterfaceOrder(path=request.url.path, body=said), app, state)


@routes.post(
    "/tui/select-session", **operation("tui.selectSession", gives=bool, takes=dict[str, Any])
)
async def select(request: Request, app: Here, state: Served) -> Response:
    """Make the terminal interfaces open a session."""
    body = await body_of(request, dict[str, Any])
    await session_of(app, str(body.get("sessionID", "")))
    said = Spoken(type=_SELECT, properties=body)
    return _say(said, InterfaceOrder(path=request.url.path, body=body), app, state)


@routes.post(
    "/tui/execute-command", **operation("tui.executeCommand", gives=bool, takes=dict[str, str])
)
async def execute(request: Request, app: Here, state: Served) -> Response:
    """Send a command to the terminal interfaces."""
    body = await body_of(request, dict[str, str])
    name = body.get("command", "")
    said = Spoken(type=_EXECUTE, properties={"command": _COMMANDS.get(name, name)})
    return _say(said, InterfaceOrder(path=request.url.path, body=body), app, state)


def order_routes() -> APIRouter:
    """Return the routes that each send one command to terminal interfaces."""
    orders = APIRouter()
    for path, (name, command) in _ORDERS.items():
        orders.add_api_route(path, _order(command), methods=["POST"], **operation(name, gives=bool))
    return orders


def _order(command: str) -> Callable[..., Awaitable[Response]]:
    async def order(request: Request, app: Here, state: Served) -> Response:
        said = Spoken(type=_EXECUTE, properties={"command": command})
        return _say(said, InterfaceOrder(path=request.url.path, body={}), app, state)

    order.__doc__ = f"Send {command} to the terminal interfaces."
    return order


@routes.get("/tui/control/next", **operation("tui.control.next", gives=InterfaceOrder))
async def next_order(request: Request, app: Here, state: Served) -> Response:
    """Wait for the next command to a terminal interface, and return the command.

    Commands are stored only after the first such request. If the client leaves while it waits, no
    command is lost.
    """
    order = state.start(state.orders.next(app.workspace.directory), "wait for an order")
    await wait_while_connected(request, state, order)
    if order.cancelled() or order.result() is None:
        return problem(503, "UnavailableError", "no order came before the server stopped")
    return answer(order.result())


@routes.post("/tui/control/response", **operation("tui.control.response", gives=bool, takes=Any))
async def order_done(request: Request, _app: Here) -> Response:
    """Return true without effect: a command counts as done when it is stored."""
    await body_of(request, object)
    return answer(value=True)


def _say(said: Spoken, order: InterfaceOrder, app: Here, state: Served) -> Response:
    if said.type not in _NEEDED:
        raise InvalidInputError(f"not an event for terminal interfaces: {said.type[:80]}")
    for name in _NEEDED[said.type]:
        if not isinstance(said.properties.get(name), str):
            raise InvalidInputError(f'Missing key\n  at ["{name}"]')
    properties = _toast(said.properties) if said.type == _TOAST else said.properties
    state.feed.say(said.type, properties, directory=app.workspace.directory)
    state.orders.add(app.workspace.directory, order)
    return answer(value=True)


def _toast(properties: dict[str, Any]) -> dict[str, Any]:
    """Validate a notice, because terminal interfaces crash on an unknown variant."""
    if properties["variant"] not in _VARIANTS:
        raise InvalidInputError(f'Expected one of {", ".join(_VARIANTS)}\n  at ["variant"]')
    if not isinstance(properties.get("title"), str | None):
        raise InvalidInputError('Expected a text\n  at ["title"]')
    duration = properties.get("duration", TOAST_MS)
    if isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0:
        raise InvalidInputError('Expected a number of milliseconds\n  at ["duration"]')
    return {**properties, "duration": duration}
