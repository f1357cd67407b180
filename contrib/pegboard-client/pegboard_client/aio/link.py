"""HTTP requests to a server, over connections that stay open."""

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pegboard_client.address import ServerAddress
from pegboard_client.answers import OK, UNAUTHORIZED, failure, refusal, value_of

if TYPE_CHECKING:
    import httpx

CONNECT_WITHIN_S = 5.0
ANSWER_WITHIN_S = 60.0
"""For answers that the server has at hand; opening a large project takes some of it."""
SILENCE_S = 45.0
"""An event stream gives a sign of life more often: after 10 s, with other servers 30 s."""
KEPT_S = 3.0
"""Shorter than servers keep an idle connection, so that none is used while it closes."""
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""The system finds out within 90 s that the other side is gone, also while the link is idle."""
_JSON = {"content-type": "application/json"}
_Value = TypeVar("_Value")


class AsyncLink:
    """The HTTP connections to a server, opened with the first request."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._http: httpx.AsyncClient | None = None
        self._key: str | None = None

    async def get(self, kind: type[_Value], path: str, /, **query: object) -> _Value:
        """Return the value at a path; parameters in `query` that are None are not sent."""
        return await self._send(self._request("GET", path, query=_query(query)), kind)

    async def post(
        self, kind: type[_Value], path: str, body: msgspec.Struct | None = None
    ) -> _Value:
        """Send a POST request with a body, and return the server's answer."""
        return await self._send(self._request("POST", path, body=body), kind)

    async def turn(
        self, kind: type[_Value], path: str, body: msgspec.Struct | None = None
    ) -> _Value:
        """Post a body, and return a model's answer without a time limit."""
        return await self._send(self._request("POST", path, body=body, limit_s=None), kind)

    async def patch(self, kind: type[_Value], path: str, body: msgspec.Struct) -> _Value:
        """Send a PATCH request with the changes of a resource, and return the changed resource."""
        return await self._send(self._request("PATCH", path, body=body), kind)

    async def delete(self, kind: type[_Value], path: str) -> _Value:
        """Send a DELETE request for a resource, and return the server's answer."""
        return await self._send(self._request("DELETE", path), kind)

    async def stream(self, path: str, headers: Mapping[str, str]) -> "httpx.Response":
        """Open an event stream and return the response, which the caller must close.

        :raises ServerError: when the server refuses the stream or cannot be reached.
        """
        import httpx

        request = self._opened().build_request(
            "GET",
            path,
            params={"ids": "true"},
            headers={**headers, "accept": "text/event-stream"},
            timeout=_limits(SILENCE_S),
        )
        try:
            response = await self._sent(request, stream=True)
            kind = response.headers.get("content-type", "")
            if response.status_code == OK and "event-stream" in kind:
                return response
            body = await response.aread()
        except httpx.TransportError as error:
            raise failure(error, self.address.url) from error
        raise refusal(response.status_code, body, self.address.url)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _send(self, request: "httpx.Request", kind: type[_Value]) -> _Value:
        import httpx

        try:
            response = await self._sent(request)
        except httpx.TransportError as error:
            raise failure(error, self.address.url) from error
        return value_of(response.status_code, response.content, kind, self.address.url)

    async def _sent(self, request: "httpx.Request", *, stream: bool = False) -> "httpx.Response":
        """Send a request; after a refusal, repeat the request once if there is a new token."""
        http = self._opened()
        response = await http.send(self._signed(request), stream=stream)
        if response.status_code != UNAUTHORIZED or not self._renewed():
            return response
        await response.aclose()
        return await http.send(self._signed(request), stream=stream)

    def _renewed(self) -> bool:
        """Return whether the credentials have changed since the last request."""
        known, self._key = self._key, self.address.authorization()
        return self._key != known

    def _signed(self, request: "httpx.Request") -> "httpx.Request":
        if self._key is not None:
            request.headers["authorization"] = self._key
        return request

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        query: Mapping[str, str] | None = None,
        limit_s: float | None = ANSWER_WITHIN_S,
    ) -> "httpx.Request":
        return self._opened().build_request(
            method,
            path,
            params=query,
            content=None if body is None else msgspec.json.encode(body),
            headers=None if body is None else _JSON,
            timeout=_limits(limit_s),
        )

    def _opened(self) -> "httpx.AsyncClient":
        import httpx  # 0.1 s that a program saves which only may need a server

        if self._http is None:
            self._key = self.address.authorization()
            self._http = httpx.AsyncClient(
                base_url=self.address.url,
                headers=self.address.headers,
                # No proxy and no .netrc of the environment gets to see the token.
                trust_env=False,
                transport=httpx.AsyncHTTPTransport(
                    limits=httpx.Limits(keepalive_expiry=KEPT_S), socket_options=_socket_options()
                ),
            )
        return self._http


def _limits(answer_s: float | None) -> "httpx.Timeout":
    import httpx

    return httpx.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S, read=answer_s)


def _socket_options() -> list[tuple[int, int, int]]:
    known = [(name, value) for name, value in _KEEPALIVE if hasattr(socket, name)]
    rest = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in known]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *rest]


def _query(values: Mapping[str, object]) -> dict[str, str]:
    said = {name: value for name, value in values.items() if value is not None}
    return {name: _spelt(value) for name, value in said.items()}


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
