"""Searches by a SearXNG server: the user's own, or a public one that answers in JSON."""

import asyncio
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from pegboard import ToolError
from pegboard.unstable import proxy_for, tls_context
from pegboard_plugins.websearch import SearchKind, WebHit

if TYPE_CHECKING:
    import httpx

_CATEGORIES: dict[SearchKind, str] = {"web": "general", "code": "it"}
TIME_LIMIT_S = 25.0
LIMIT_BYTES = 4 << 20
_OK = 200
_FORBIDDEN = (401, 403)


class _Result(msgspec.Struct, frozen=True):
    url: str
    title: str | None = None
    content: str | None = None


class _SearchAnswer(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] = ()


class SearXNG:
    """The server at `url`; `key` is sent as a bearer token, where there is one.

    The address is the user's, so it may be on this machine or network.
    """

    name = "searxng"

    def __init__(self, url: str, *, key: str = "") -> None:
        self._url = f"{url.rstrip('/')}/search"
        self._headers = {"Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    async def search(self, query: str, *, kind: SearchKind, limit: int) -> tuple[WebHit, ...]:
        """Return the results, best first.

        :raises ToolError: when the server cannot be reached in 25 seconds, refuses, or answers
            with an invalid value.
        """
        import httpx  # 0.1 s that only a search pays

        fields = {"q": query, "format": "json", "categories": _CATEGORIES[kind]}
        allowed, proxy = asyncio.timeout(TIME_LIMIT_S), None
        try:
            proxy = proxy_for(urlsplit(self._url), os.environ)
            secure = self._url.startswith("https:")
            tls = await asyncio.to_thread(tls_context, os.environ) if secure else False
            async with (
                allowed,
                httpx.AsyncClient(
                    timeout=TIME_LIMIT_S,
                    trust_env=False,
                    proxy=proxy.url if proxy else None,
                    verify=tls,
                ) as client,
            ):
                request = client.build_request(
                    "GET", self._url, params=fields, headers=self._headers
                )
                content = await _content(await client.send(request, stream=True))
        except TimeoutError as error:
            if not allowed.expired():
                raise
            raise ToolError(f"the search took longer than {TIME_LIMIT_S:g} s") from error
        except (httpx.HTTPError, ValueError) as error:
            text = str(error) or type(error).__name__
            by = f" through the {proxy}" if proxy else ""
            raise ToolError(f"{self._url} cannot be asked{by}: {text}") from error
        try:
            found = msgspec.json.decode(content, type=_SearchAnswer).results
        except msgspec.DecodeError as error:
            raise ToolError(
                f"{self._url} did not answer with results in JSON; its settings must allow the"
                f" format json ({error})"
            ) from error
        return tuple(
            WebHit(url=each.url, title=each.title or "", text=each.content or "")
            for each in found[:limit]
        )


async def _content(response: "httpx.Response") -> bytes:
    try:
        if response.status_code in _FORBIDDEN:
            raise ToolError(
                f"the search server refused ({response.status_code}): it wants another"
                " plugins.websearch.options.key, or does not allow the format json"
            )
        if response.status_code != _OK:
            raise ToolError(f"the search server answered with status {response.status_code}")
        content = bytearray()
        async for piece in response.aiter_bytes(1 << 16):
            content += piece
            if len(content) > LIMIT_BYTES:
                raise ToolError(f"the search server sent more than {LIMIT_BYTES >> 20} MiB")
        return bytes(content)
    finally:
        await response.aclose()
