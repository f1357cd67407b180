"""The forwarding of requests for sessions that another server of the fleet runs."""

import asyncio
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.errors import NotFoundError
from pegboard.http import is_loopback
from pegboard_plugins.server import FleetServer
from pegboard_plugins.server.browser import MAY_NOT_APPROVE, may_not_approve
from pegboard_plugins.server.fleet import (
    FORWARDED,
    LOOK_S,
    TAKEN_OVER_WITHIN_S,
    ServerFleet,
)
from pegboard_plugins.server.responses import PeerError
from pegboard_plugins.server.serverstate import ServerState, asked_directory, named_directory
from pegboard_plugins.server.waiting import wait_for
from pegboard_plugins.shared.frontend import ASKS_UNKNOWN

SESSION_PATH = re.compile(r"(?:/pegboard)?/session/(ses_[0-9A-Za-z]+)(/.*)?")
REQUEST_PATH = re.compile(r"/(?:permission|question)/([^/]+)/(?:reply|reject)")
_ASKS = "/question"
"""The path behind a session's for a question of the client itself, which waits for it here."""
_PROMPTS = ("/message", "/prompt_async")
DIRECTORY_HEADER = "x-opencode-directory"
_PASSED_ON = ("accept", "content-type", "user-agent", DIRECTORY_HEADER, ASKS_UNKNOWN[0])
_RETURNED = ("content-type", "link", "x-next-cursor", "access-control-expose-headers")


class _LostError(Exception):
    """A server does not answer any more; `heard` says whether it may have received the request."""

    def __init__(self, *, heard: bool) -> None:
        super().__init__()
        self.heard = heard


@dataclass(slots=True)
class _Forwarded:
    """A request to forward; `rest` is the part of the URL path after the session's id."""

    scope: Scope
    body: bytes
    session_id: str
    rest: str
    message_id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The HTTP method."""
        method: str = self.scope["method"]
        return method

    @property
    def is_repeatable(self) -> bool:
        """Whether another server may get the same request without a second effect."""
        return self.method in ("GET", "DELETE", "PATCH") or self.rest in ("/abort", "/resume")

    def resuming(self) -> "_Forwarded":
        """Return a request to resume the session, for a prompt that is already stored."""
        path = f"/pegboard/session/{self.session_id}/resume"
        scope = {**self.scope, "path": path, "raw_path": path.encode()}
        return _Forwarded(scope, b"", self.session_id, "/resume", headers=self.headers)


class Forwarder:
    """The ASGI application in front of all routes, which forwards requests within a fleet."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or forward it to the server that runs the request's session."""
        fleet = self._state.fleet
        if fleet is None or scope["type"] != "http" or FORWARDED in Headers(scope=scope):
            await self._app(scope, receive, send)
            return
        waiting, session = (
            REQUEST_PATH.fullmatch(scope["path"]),
            SESSION_PATH.fullmatch(scope["path"]),
        )
        if waiting and (server := fleet.asked_in(waiting[1])):
            call = await self._call(Request(scope, receive), "", "")
            try:
                response = await self._ask(fleet, server, call)
            except _LostError as error:
                raise _unreachable(f"the request {waiting[1]} waits", server) from error
            await response(scope, receive, send)
        elif session and session[2] != _ASKS and await fleet.membership.owner(session[1]):
            call = await self._call(Request(scope, receive), session[1], session[2] or "")
            await self._follow(fleet, call, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _call(self, request: Request, session_id: str, rest: str) -> _Forwarded:
        """Return the request to forward; a prompt without a message id gets an id."""
        body = await request.body()
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        if session_id and not named_directory(request):
            headers[DIRECTORY_HEADER] = quote(str(asked_directory(request, self._state)))
        if may_not_approve(request):
            headers[MAY_NOT_APPROVE] = "1"
        call = _Forwarded(request.scope, body, session_id, rest, headers=headers)
        if request.method == "POST" and rest in _PROMPTS:
            with suppress(msgspec.DecodeError):  # the route refuses what is no object
                written = msgspec.json.decode(body, type=dict[str, Any])
                call.message_id = written.get("messageID") or self._state.feed.ids.new("message")
                call.body = msgspec.json.encode({**written, "messageID": call.message_id})
        return call

    async def _follow(
        self, fleet: ServerFleet, call: _Forwarded, receive: Receive, send: Send
    ) -> None:
        """Forward a request to the session's server; if that server dies, to its successor.

        A session of a worker continues on another worker, and never on this server.

        :raises PeerError: when a living server does not answer, or when a server dies that may have
            carried out the request.
        """
        until, was_lost = time.monotonic() + TAKEN_OVER_WITHIN_S, False
        worker: FleetServer | None = None
        while server := await fleet.membership.owner(call.session_id) or worker:
            try:
                response = await self._ask(fleet, server, call)
            except _LostError as lost:
                was_lost, worker = True, server if server.is_worker else None
                if call.method == "GET" and worker is None:
                    break  # the database has the answer
                if call.message_id is not None and await self._is_stored(call):
                    if call.rest == "/prompt_async":
                        response = Response(status_code=204)
                        await response(call.scope, receive, send)
                        return
                    call = call.resuming()
                elif lost.heard and not call.is_repeatable and call.message_id is None:
                    raise PeerError(
                        f"the server {server.url} on {server.host} broke off while it answered; "
                        f"read session {call.session_id}, and send the request again if it has "
                        "not been carried out"
                    ) from lost
                if time.monotonic() > until:
                    raise _unreachable(f"session {call.session_id} runs", server) from lost
                await asyncio.sleep(LOOK_S)
            else:
                await response(call.scope, receive, send)
                return
        if was_lost and call.message_id is not None and await self._is_stored(call):
            call = call.resuming()
        await self._app(call.scope, _replay(call.body, receive), send)

    async def _is_stored(self, call: _Forwarded) -> bool:
        request = Request(call.scope)
        app = await self._state.pool.app(asked_directory(request, self._state))
        try:
            await app.storage.turn(call.session_id, call.message_id or "")
        except NotFoundError:
            return False
        return True

    async def _ask(self, fleet: ServerFleet, server: FleetServer, call: _Forwarded) -> Response:
        """Return another server's response, without a time limit while that server lives.

        :raises _LostError: when the server cannot be reached, or dies.
        """
        if server.host != fleet.own.host and is_loopback(urlsplit(server.url).hostname or ""):
            raise _LostError(heard=False)
        query = call.scope["query_string"].decode("latin-1")
        url = f"{server.url}{quote(call.scope['path'])}" + (f"?{query}" if query else "")
        headers = {**call.headers, **fleet.headers(server)}
        asking = asyncio.create_task(
            fleet.client.request(call.method, url, content=call.body, headers=headers),
            name=f"ask {server.url}",
        )
        watching = asyncio.create_task(_until_gone(fleet, server, asking), name="watch a server")
        try:
            await wait_for(Request(call.scope), asking)
        finally:
            watching.cancel()
            asking.cancel()
        if asking.cancelled():
            raise _LostError(heard=True)
        try:
            found = asking.result()
        except httpx.HTTPError as error:
            is_new = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise _LostError(heard=not is_new) from error
        headers = {name: found.headers[name] for name in _RETURNED if name in found.headers}
        return Response(found.content, found.status_code, headers)


async def _until_gone(
    fleet: ServerFleet, server: FleetServer, asking: "asyncio.Task[httpx.Response]"
) -> None:
    """Cancel the request `asking` when the server that should answer has left the fleet.

    A dead server may send no error, and the request would wait for ever.
    """
    was_there = False
    while True:  # until it is cancelled
        lives = fleet.lives(server)
        if was_there and not lives:
            asking.cancel()
        was_there = was_there or lives
        await asyncio.sleep(LOOK_S)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` function that delivers a body that was read already."""
    pieces = [body]

    async def again() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await receive()

    return again


def _unreachable(what: str, server: FleetServer) -> PeerError:
    way = "wait until it answers or stop it, then send the request again"
    if is_loopback(urlsplit(server.url).hostname or ""):
        way += "; from other machines, it is reached only if it has a --hostname of its machine"
    return PeerError(
        f"{what} on the server {server.url} on {server.host}, which does not answer; {way}"
    )
