"""The check that every request passes before routing: its sender, size and origin.

It runs before routing, so that an answer never shows which routes exist.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard_plugins.server.auth import Credentials
from pegboard_plugins.server.browserdoor import PROOF_HEADER, SESSION_PATH, BrowserDoor
from pegboard_plugins.server.responses import problem

LONGEST_BODY_BYTES = 64 << 20
"""Room for some pictures in a prompt."""
BODY_WITHIN_S = 60.0
SLOWEST_BYTES_S = 16 << 10
"""A body that is longer gets more time, if it comes as fast as a bad connection."""
LOGGED_REFUSALS_S = 10.0
"""Refusals are logged once in this time, so that they cannot fill a disk."""
_OTHER_SITES = frozenset({"cross-site", "same-site"})
"""What browsers say of pages elsewhere; another port of this machine is the same site."""
_AT_TERMINAL = re.compile(r"/pty/([^/]+)/connect")
_log = logging.getLogger("pegboard.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """The rules of access: the server's host names, the allowed sites, and the credentials.

    `admits` returns whether a ticket opens a terminal; each ticket works once. `door` has the
    browser sessions, and `public` the paths of files that need no credentials.
    """

    credentials: Credentials
    hosts: frozenset[str]
    admits: Callable[[str, str], bool]
    origins: frozenset[str] = field(default_factory=frozenset)
    door: BrowserDoor = field(default_factory=BrowserDoor)
    public: Collection[str] = ()

    def knows(self, origin: str, host: str) -> bool:
        """Return whether a page may use the server: its own page, or a page of an allowed site."""
        return origin in self.origins or origin in (f"http://{host}", f"https://{host}")


class Guard:
    """The ASGI application in front of all routes, which refuses requests by the access rules."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy) -> None:
        self._app = app
        self._policy = policy
        self._refused = 0
        self._logged_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application's routes."""
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            refusal = self._refusal(scope, headers)
            await (refusal or self._app)(scope, receive, send)
            return
        origin = headers.get("origin")
        reply = _Reply(scope, send, origin if origin in self._policy.origins else None)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, reply.send)
            self._note(refusal, scope)
            return
        body = _Body(receive, LONGEST_BODY_BYTES)
        try:
            await self._app(scope, body.receive, reply.send)
        except Exception:  # the outermost frame: when it is answered, it is logged too
            if not reply.whole:
                raise
        finally:
            reply.log()

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the error for a refused request, or None for an accepted one."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._policy.hosts:
            return problem(421, "MisdirectedRequest", "this server has other names")
        origin = headers.get("origin")
        # A page's picture or link has no origin, and brings the password that a browser keeps.
        is_elsewhere = (
            origin is None
            and headers.get("sec-fetch-site") in _OTHER_SITES
            and not self._is_link(scope, headers)
        )
        is_known = origin is not None and self._policy.knows(origin, hosts[0].lower())
        if is_elsewhere or (origin is not None and not is_known):
            return problem(403, "ForbiddenError", "requests from other sites are not taken")
        if origin is not None and scope.get("method") == "OPTIONS":
            return _preflight()
        known = self._policy.credentials.accepts(headers.get("authorization"))
        if not (known or self._has_ticket(scope) or self._is_page(scope, headers)):
            return _unauthorized_response(asks=PROOF_HEADER not in headers)
        return _bad_body(scope, headers) if scope["type"] == "http" else None

    def _is_link(self, scope: Scope, headers: Headers) -> bool:
        """Return whether a request opens a public file in a window, as a click on a link does."""
        is_public = scope.get("method") == "GET" and scope["path"] in self._policy.public
        return is_public and headers.get("sec-fetch-dest") == "document"

    def _is_page(self, scope: Scope, headers: Headers) -> bool:
        """Return whether the request may come from a page of this server without a token.

        The request is for a public file, or opens or belongs to a browser session.
        """
        if scope["type"] != "http":
            return False
        method, path = scope["method"], scope["path"]
        if method == "GET" and path in self._policy.public:
            return True
        origin, host = headers.get("origin"), headers["host"].lower()
        is_own = origin in (f"http://{host}", f"https://{host}")
        if not is_own and (origin is not None or headers.get("sec-fetch-site") != "same-origin"):
            return False
        if method == "POST" and path == SESSION_PATH:
            return is_own
        session = self._policy.door.session(method, path, headers)
        scope.setdefault("state", {})["browser"] = session
        return session is not None

    def _has_ticket(self, scope: Scope) -> bool:
        """Return whether a WebSocket has a ticket; pages cannot send a token with a WebSocket."""
        at = _AT_TERMINAL.fullmatch(scope["path"]) if scope["type"] == "websocket" else None
        tickets = parse_qs(scope["query_string"]).get(b"ticket", [])
        if at is None or len(tickets) != 1:
            return False
        return self._policy.admits(tickets[0].decode("utf-8", "replace"), at[1])

    def _note(self, refusal: Response, scope: Scope) -> None:
        self._refused += 1
        now = time.monotonic()
        if now - self._logged_at >= LOGGED_REFUSALS_S:
            path = scope["path"][:200]
            _log.warning("%d refused, last: %s %r", self._refused, refusal.status_code, path)
            self._refused, self._logged_at = 0, now


class _Reply:
    """A response in progress: its id, its line in the access log, and its CORS headers.

    `whole` says whether the client has received the complete response.
    """

    def __init__(self, scope: Scope, send: Send, origin: str | None) -> None:
        self._scope = scope
        self._send = send
        self._origin = origin
        self._status = 0
        self._since = time.perf_counter()
        self._id = secrets.token_hex(4)
        self.whole = False
        scope.setdefault("state", {})["request_id"] = self._id

    async def send(self, message: Message) -> None:
        """Send one ASGI message of the response."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-content-type-options"] = "nosniff"
            headers["x-request-id"] = self._id
            if self._origin is not None:
                headers["access-control-allow-origin"] = self._origin
                headers.add_vary_header("Origin")
        await self._send(message)
        ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        self.whole = self.whole or ended

    def log(self) -> None:
        """Log the request on one line, without the query string, which may contain secrets."""
        if not _log.isEnabledFor(logging.INFO):
            return
        took_ms = (time.perf_counter() - self._since) * 1000
        path = self._scope["path"][:200]
        method = self._scope["method"]
        _log.info("%s %s %r %d %.1f ms", self._id, method, path, self._status, took_ms)


class _Body:
    """A request's body, limited to `room` bytes."""

    def __init__(self, receive: Receive, room: int) -> None:
        self._receive = receive
        self._room = room
        self._whole = False
        self._ends_at = asyncio.get_running_loop().time() + BODY_WITHIN_S

    async def receive(self) -> Message:
        """Receive the next part of the body; a wait after the last part has no limit."""
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._ends_at):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, "the body did not come") from error
        length = len(message.get("body", b""))
        self._room -= length
        self._ends_at += length / SLOWEST_BYTES_S
        self._whole = not message.get("more_body", False)
        if self._room < 0:
            raise HTTPException(413, f"a body has at most {LONGEST_BODY_BYTES:,} bytes")
        return message


def _unauthorized_response(*, asks: bool) -> Response:
    """Return the 401 response; if `asks`, browsers ask the user for a password."""
    refusal = problem(
        401, "UnauthorizedError", "the server's token or password is missing or wrong"
    )
    if asks:
        refusal.headers["www-authenticate"] = 'Basic realm="Secure Area"'
    return refusal


def _preflight() -> Response:
    headers = {
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": "authorization, content-type, last-event-id, "
        "x-opencode-directory, x-opencode-ticket, x-opencode-workspace",
        "access-control-max-age": "600",
    }
    return Response(status_code=204, headers=headers)


def _bad_body(scope: Scope, headers: Headers) -> Response | None:
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdecimal():
        return problem(400, "BadRequest", "the content-length is not a number")
    if int(length) > LONGEST_BODY_BYTES:
        return problem(413, "BadRequest", f"a body has at most {LONGEST_BODY_BYTES:,} bytes")
    has_body = int(length) > 0 or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and scope["method"] != "GET" and kind != "application/json":
        return problem(415, "BadRequest", "a body is JSON, of the type application/json")
    return None
