"""Grants: the OAuth clients and tokens from sign-ins, a grant per OAuth authorization server."""

import time
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import lock_file, replace_file

EXPIRY_MARGIN_S = 30.0
"""A token that is about to expire is not sent any more."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """An OAuth client with tokens from an issuer; `expires_at` is in seconds since the epoch.

    `metadata` is the issuer's metadata document, with the token endpoint. `wanted_scope` is the
    scope that a refused request needed; the next sign-in asks for it.
    """

    issuer: str
    client: dict[str, Any] = {}
    tokens: dict[str, Any] = {}
    expires_at: float | None = None
    metadata: dict[str, Any] = {}
    wanted_scope: str = ""

    @property
    def access_token(self) -> str:
        """The access token for requests, or "" if there is none."""
        return str(self.tokens.get("access_token") or "")

    @property
    def refresh_token(self) -> str:
        """The refresh token, or "" if the issuer's token endpoint is not known."""
        is_known = bool(self.metadata.get("token_endpoint"))
        return str(self.tokens.get("refresh_token") or "") if is_known else ""

    @property
    def wider_scope(self) -> str:
        """The granted scope with the scope that a request lacked; "" if no request lacked any."""
        if not self.wanted_scope:
            return ""
        return joined_scopes(str(self.tokens.get("scope") or ""), self.wanted_scope)

    def is_expired(self) -> bool:
        """Return whether the access token has expired or will expire soon."""
        return self.expires_at is not None and time.time() > self.expires_at - EXPIRY_MARGIN_S


def joined_scopes(*scopes: str) -> str:
    """Join OAuth scopes into a space-separated string, in order and without duplicates."""
    return " ".join(dict.fromkeys(word for scope in scopes for word in scope.split()))


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """The grants for the server at `url` by issuer.

    `current` is the issuer of the latest sign-in; only its tokens are used.
    """

    url: str = ""
    current: str = ""
    by_issuer: dict[str, Grant] = {}

    @property
    def grant(self) -> Grant | None:
        """The grant of the current issuer, or None before the first sign-in."""
        return self.by_issuer.get(self.current)


class GrantFile:
    """The file with the OAuth grants for an MCP server, readable only by this user."""

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url

    def read(self) -> Grants:
        """Read the grants; return empty grants if the file is missing or for another URL."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=Grants)
        except (OSError, msgspec.MsgspecError):
            return Grants(url=self._url)
        return found if found.url == self._url else Grants(url=self._url)

    def store(self, grant: Grant) -> None:
        """Store a grant as the grant to use from now on.

        :raises OSError: when the file cannot be written.
        """
        with lock_file(self._path):
            known = self.read()
            grants = Grants(
                url=self._url,
                current=grant.issuer,
                by_issuer={**known.by_issuer, grant.issuer: grant},
            )
            replace_file(self._path, msgspec.json.encode(grants))

    def remove(self) -> bool:
        """Delete all grants; return False if the file had no grants."""
        if not self._path.is_file():
            return False
        self._path.unlink()
        return True
