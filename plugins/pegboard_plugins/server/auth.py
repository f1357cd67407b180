"""The credentials of a server: a token in a file for the user's own clients, or a password."""

import base64
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

USER = "opencode"
"""The user name that clients of the protocol send by default."""
TOKEN_BYTES = 32
_PASSWORDS = ("PEGBOARD_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD")
_USERS = ("PEGBOARD_SERVER_USERNAME", "OPENCODE_SERVER_USERNAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The credentials that the server accepts: its token, or a user name with a password.

    The token may be sent as bearer token or as password. `token` is None for a server without
    authentication. `fleet` is the token for other servers of a fleet.
    """

    token: str | None
    password: str | None = None
    user: str = USER
    fleet: str | None = None

    def accepts(self, authorization: str | None) -> bool:
        """Return whether this `Authorization` header is valid, always in the same time."""
        if self.token is None:
            return True
        scheme, _, value = (authorization or "").partition(" ")
        if scheme.lower() == "bearer":
            by_fleet = _same(value.strip(), self.fleet or self.token)
            return _same(value.strip(), self.token) or by_fleet
        if scheme.lower() != "basic":
            return False
        user, password = _basic(value.strip())
        by_token = _same(password, self.token)
        by_password = _same(password, self.password or self.token) and _same(user, self.user)
        return by_token or by_password


def credentials_from(env: Mapping[str, str], *, is_open: bool) -> Credentials:
    """Return credentials with a new token, and with the password of the environment, if any."""
    password = next((env[name] for name in _PASSWORDS if env.get(name)), None)
    user = next((env[name] for name in _USERS if env.get(name)), USER)
    token = None if is_open and password is None else secrets.token_urlsafe(TOKEN_BYTES)
    return Credentials(token=token, password=password, user=user)


def _basic(value: str) -> tuple[str, str]:
    try:
        pair = base64.b64decode(value, validate=True).decode("utf-8", "surrogateescape")
    except ValueError:  # it is no base64, or not even ASCII
        return "", ""
    user, _, password = pair.partition(":")
    return user, password


def _same(given: str, wanted: str) -> bool:
    """Compare two secrets as bytes in constant time; the secrets need not be valid UTF-8."""
    sides = (text.encode("utf-8", "surrogateescape") for text in (given, wanted))
    return hmac.compare_digest(*sides)
