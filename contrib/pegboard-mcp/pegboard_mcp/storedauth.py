"""The authorization of requests with stored grants; this module never asks the user to sign in.

The first connection to a remote server imports this module, because it imports httpx2.
"""

import asyncio
import base64
import time
from collections.abc import AsyncGenerator
from urllib.parse import quote, urlsplit

import httpx2
import msgspec
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from pegboard_mcp.grants import Grant, GrantFile

SCOPE_LETTERS = 1000
_OK = 200
_UNAUTHORIZED = 401
_FORBIDDEN = 403


class StoredAuth(httpx2.Auth):
    """The HTTP authorization with the stored OAuth token, which is refreshed when necessary."""

    def __init__(self, file: GrantFile, url: str) -> None:
        self._file = file
        self._origin = urlsplit(url)[:2]
        self._refreshing = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the access token; refresh an expired token first."""
        if urlsplit(str(request.url))[:2] != self._origin:
            yield request
            return
        is_new = False
        async with self._refreshing:
            grant = self._grant()
            if grant is not None and grant.is_expired() and grant.refresh_token:
                grant = await self._renewed(grant, (yield _refresh_request(grant)))
                is_new = True
        response = yield _with_token(request, grant)
        if grant is None:
            return
        if response.status_code == _UNAUTHORIZED and grant.refresh_token and not is_new:
            async with self._refreshing:
                newest = self._grant()
                if newest is None or newest.access_token == grant.access_token:
                    grant = await self._renewed(grant, (yield _refresh_request(grant)))
                else:
                    grant = newest  # another request has refreshed it meanwhile
            response = yield _with_token(request, grant)
        if scope := missing_scope(response):
            async with self._refreshing:
                newest = self._grant()
                if newest is not None and scope != newest.wanted_scope:
                    self._file.store(msgspec.structs.replace(newest, wanted_scope=scope))

    def _grant(self) -> Grant | None:
        return self._file.read().grant

    async def _renewed(self, grant: Grant, response: httpx2.Response) -> Grant:
        """Store and return the refreshed grant, or return `grant` if the OAuth server refused."""
        content = await response.aread()
        try:
            tokens = msgspec.json.decode(content, type=dict)
        except msgspec.MsgspecError:
            tokens = {}
        if response.status_code != _OK or not tokens.get("access_token"):
            return grant
        lasts_s = tokens.get("expires_in")
        renewed = msgspec.structs.replace(
            grant,
            tokens={**grant.tokens, **tokens},
            expires_at=time.time() + lasts_s if isinstance(lasts_s, int | float) else None,
        )
        self._file.store(renewed)
        return renewed


def missing_scope(response: httpx2.Response) -> str | None:
    """Return the scope that a refused request lacked (RFC 6750 §3.1), or None if unknown."""
    if response.status_code != _FORBIDDEN:
        return None
    if extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    return (extract_scope_from_www_auth(response) or "")[:SCOPE_LETTERS]


def _with_token(request: httpx2.Request, grant: Grant | None) -> httpx2.Request:
    if grant is not None and grant.access_token:
        request.headers["Authorization"] = f"Bearer {grant.access_token}"
    return request


def _refresh_request(grant: Grant) -> httpx2.Request:
    """Return the request that refreshes a grant's access token (RFC 6749 §6)."""
    client_id = str(grant.client.get("client_id") or "")
    secret = str(grant.client.get("client_secret") or "")
    data = {
        "grant_type": "refresh_token",
        "refresh_token": grant.refresh_token,
        "client_id": client_id,
    }
    headers = {}
    if secret and grant.client.get("token_endpoint_auth_method") == "client_secret_basic":
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif secret:
        data["client_secret"] = secret
    return httpx2.Request("POST", grant.metadata["token_endpoint"], data=data, headers=headers)
