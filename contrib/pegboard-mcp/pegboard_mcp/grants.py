"""Grants: what a user's sign-in to a remote server has left, by server and issuer."""

import time
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import lock_file, replace_file

EXPIRY_MARGIN_S = 30.0
"""A token that is about to expire is not sent any more."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The client and the tokens of one issuer, as it gave them; `expires_at` is since the epoch.

    `metadata` is the issuer's own description, with the endpoint at which tokens are refreshed.
    `wanted_scope` is what the server has refused a request for want of; the next sign-in asks for
    it.
    """

    issuer: str
    client: dict[str, Any] = {}
    tokens: dict[str, Any] = {}
    expires_at: float | None = None
    metadata: dict[str, Any] = {}
    wanted_scope: str = ""

    @property
    def access_token(self) -> str:
        """The token for requests, "" without one."""
        return str(self.tokens.get("access_token") or "")

    @property
    def refresh_token(self) -> str:
        """The token for a new access token, "" where there is no endpoint that it may go to."""
        is_known = bool(self.metadata.get("token_endpoint"))
        return str(self.tokens.get("refresh_token") or "") if is_known else ""

    @property
    def wider_scope(self) -> str:
        """The scope for another sign-in: the granted one with the wanted one, "" without one."""
        if not self.wanted_scope:
            return ""
        return joined_scopes(str(self.tokens.get("scope") or ""), self.wanted_scope)

    def is_expired(self) -> bool:
        """Return whether the access token is, or is about to be, too old."""
        return self.expires_at is not None and time.time() > self.expires_at - EXPIRY_MARGIN_S


def joined_scopes(*scopes: str) -> str:
    """Return all scopes as one, each word once, in their order."""
    return " ".join(dict.fromkeys(word for scope in scopes for word in scope.split()))


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """The grants for one server; the tokens of the `current` issuer are used, and no others."""

    url: str = ""
    current: str = ""
    by_issuer: dict[str, Grant] = {}

    @property
    def grant(self) -> Grant | None:
        """The grant of the current issuer."""
        return self.by_issuer.get(self.current)


class GrantFile:
    """The grants for one server on disk, for this user alone."""

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url

    def read(self) -> Grants:
        """Return the grants; none where there is no file, or one for another URL."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=Grants)
        except (OSError, msgspec.MsgspecError):
            return Grants(url=self._url)
        return found if found.url == self._url else Grants(url=self._url)

    def store(self, grant: Grant) -> None:
        """Store this grant as the current one.

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
        """Forget all grants; False when there were none."""
        if not self._path.is_file():
            return False
        self._path.unlink()
        return True
