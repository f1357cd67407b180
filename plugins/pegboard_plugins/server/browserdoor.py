"""Access for pages in a browser: one-time keys, and the sessions that they open.

A session consists of a cookie that no script can read, and a proof that the page sends as a header.
Browsers send cookies to every port of a host, so the cookie alone gives no access.
"""

import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import TypeVar

from starlette.datastructures import Headers

KEY_WITHIN_S = 60.0
SESSION_WITHIN_S = 12 * 3600
MOST_KEYS = 16
MOST_SESSIONS = 64
"""More keys or sessions end the oldest ones."""
SECRET_BYTES = 32
SESSION_PATH = "/pegboard/browser/session"
PROOF_HEADER = "x-pegboard-proof"
_READABLE = re.compile(
    r"/(session|event|permission|question|agent|path|plugin/.*|pegboard/(?!browser).*)"
    r"|/session/.*|/global/health"
)
_ACTIONS = re.compile(
    r"/session|/session/[^/]+/(prompt_async|abort)|/permission/[^/]+/reply"
    r"|/question/[^/]+/(reply|reject)|/pegboard/trace"
)
"""The routes of a page: prompt, stop, answer; none changes settings, files or trust."""
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """The session of a browser page: its proof, its end time, and whether it may approve calls."""

    proof: str
    ends_at: float
    approve: bool


class BrowserDoor:
    """The keys and browser sessions of a server process; `port` is part of the cookie's name."""

    def __init__(self, port: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.cookie = f"pegboard_{port}"
        self._clock = clock
        self._keys: dict[bytes, tuple[float, bool]] = {}
        self._sessions: dict[bytes, BrowserSession] = {}

    def new_key(self, *, approve: bool = False) -> str:
        """Return a key for one browser session; `approve` lets its page approve tool calls."""
        key = secrets.token_urlsafe(SECRET_BYTES)
        _make_room(self._keys, MOST_KEYS)
        self._keys[_digest(key)] = (self._clock() + KEY_WITHIN_S, approve)
        return key

    def open(self, key: str) -> tuple[str, BrowserSession] | None:
        """Return the cookie of a new session, and the session; None if the key is wrong."""
        ends_at, approve = self._keys.pop(_digest(key), (0.0, False))
        if self._clock() >= ends_at:
            return None
        cookie = secrets.token_urlsafe(SECRET_BYTES)
        session = BrowserSession(
            proof=secrets.token_urlsafe(SECRET_BYTES),
            ends_at=self._clock() + SESSION_WITHIN_S,
            approve=approve,
        )
        _make_room(self._sessions, MOST_SESSIONS)
        self._sessions[_digest(cookie)] = session
        return cookie, session

    def session(self, method: str, path: str, headers: Headers) -> BrowserSession | None:
        """Return a request's session; None without a session, or if its page may not do this.

        The caller has checked the `Origin` and the `Sec-Fetch-Site` of the request.
        """
        reads = method == "GET" and _READABLE.fullmatch(path)
        if not (reads or (method == "POST" and _ACTIONS.fullmatch(path))):
            return None
        found = self._sessions.get(_digest(self._value(headers)))
        proof = headers.get(PROOF_HEADER, "")
        if found is None or self._clock() >= found.ends_at:
            return None
        return found if hmac.compare_digest(_digest(proof), _digest(found.proof)) else None

    def _value(self, headers: Headers) -> str:
        """Return the value of the session's cookie, or "" if the headers have no such cookie."""
        for pair in headers.get("cookie", "").split(";"):
            try:
                morsel = SimpleCookie(pair.strip()).get(self.cookie)
            except CookieError:
                continue
            if morsel is not None:
                return morsel.value
        return ""


def _make_room(table: dict[bytes, _Value], most: int) -> None:
    while len(table) >= most:
        del table[next(iter(table))]


def _digest(secret: str) -> bytes:
    """Return the digest of a secret, so that looking up secrets leaks no timing."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
