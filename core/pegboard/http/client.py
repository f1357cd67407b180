"""The HTTP client for model servers: connections, proxies, TLS, and reuse of sockets."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import msgspec

from pegboard.http.connection import BrokenAnswerError, Connection

if TYPE_CHECKING:
    from pegboard.http.proxies import Proxy

IDLE_LIMIT = 8
"""Sockets that are kept for later: as many as subagents are likely to run at once."""
_PORTS = {"http": 80, "https": 443}
_OK = 200
_LOGIN_WANTED = 407


class Origin(msgspec.Struct, frozen=True):
    """The server that a socket leads to, directly or through a proxy."""

    scheme: str
    host: str
    port: int
    proxy: "Proxy | None" = None

    @property
    def authority(self) -> str:
        """The host and port as in a URL; the default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Client:
    """The HTTP client of one provider.

    `env` gives the proxies (see `proxy_for`) and the certificates. `proxy` is a proxy that the
    configuration sets for all requests. Redirects are not followed, so that no credential goes to
    another host.
    """

    def __init__(self, env: Mapping[str, str], proxy: str = "") -> None:
        self._env = env
        self._chosen = proxy
        self._idle: list[tuple[Origin, Connection]] = []
        self._tls: ssl.SSLContext | None = None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes = b"") -> Connection:
        """Send a request, and return the connection once the response headers have arrived.

        A request with a body is a POST, else a GET. Call `release` to reuse the connection. The
        caller limits the time; cancelling closes the socket at once.

        :raises OSError: when the server cannot be reached, or breaks the connection.
        :raises ValueError: when `url` is not an HTTP URL, or a setting is invalid.
        """
        parts = urlsplit(url)
        origin = self._origin(parts)
        head = _head(origin, parts, headers, body)
        connection = self._take(origin)
        if connection:
            try:
                return await _exchange(connection, head, body)
            except ConnectionError:
                if connection.answered:
                    raise
                # The server had closed the idle socket: what it never saw is sent once more.
        connection = await _exchange(await self._connect(origin), head, body)
        if connection.status == _LOGIN_WANTED and origin.proxy:
            connection.abort()
            raise _refused_by_proxy(origin.proxy, origin.host, connection.status)
        return connection

    def release(self, url: str, connection: Connection) -> None:
        """Keep a connection for reuse, and ignore the rest of its current response."""
        connection.leave()
        self._idle.append((self._origin(urlsplit(url)), connection))
        for _, surplus in self._idle[:-IDLE_LIMIT]:
            surplus.abort()
        del self._idle[:-IDLE_LIMIT]

    async def aclose(self) -> None:
        """Close all idle sockets."""
        for _, connection in self._idle:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # asyncio closes a socket in the next round of its loop

    def _origin(self, parts: SplitResult) -> Origin:
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"not an http or https URL: {parts.geturl()}")
        port = parts.port or _PORTS[parts.scheme]
        return Origin(parts.scheme, parts.hostname, port, self._proxy(parts))

    def _proxy(self, url: SplitResult) -> "Proxy | None":
        if not self._chosen and not any(name.lower().endswith("_proxy") for name in self._env):
            return None
        from pegboard.http.proxies import proxy_for  # not where there is none

        return proxy_for(url, self._env, self._chosen)

    def _take(self, origin: Origin) -> Connection | None:
        for place in reversed(range(len(self._idle))):
            known, connection = self._idle[place]
            if known == origin:
                del self._idle[place]
                if connection.reusable:
                    return connection
                connection.abort()
        return None

    async def _connect(self, origin: Origin) -> Connection:
        if origin.scheme == "http":
            return await _socket(origin)
        from pegboard.http.certificates import tls_context  # not for servers of this machine

        if self._tls is None:
            # Reading the system's certificates takes 20 ms, in which the loop goes on.
            self._tls = await asyncio.to_thread(tls_context, self._env)
        try:
            return await _secure(origin, self._tls)
        except ssl.SSLCertVerificationError as error:
            if issuer := await _issuer(origin):
                error.verify_message += f"; the issuer is {issuer!r}"
            raise


async def _socket(origin: Origin, tls: ssl.SSLContext | None = None) -> Connection:
    """Connect to the proxy if a proxy applies to this origin, else to the server itself."""
    loop, proxy = asyncio.get_running_loop(), origin.proxy
    if proxy is None:
        _, connection = await loop.create_connection(
            Connection, origin.host, origin.port, ssl=tls, happy_eyeballs_delay=0.25
        )
        return connection
    try:
        _, connection = await loop.create_connection(Connection, proxy.host, proxy.port)
    except OSError as error:
        raise ConnectionError(
            f"the {proxy} cannot be reached ({error.strerror or error}); correct {proxy.source}, "
            f"or name {origin.host} in NO_PROXY"
        ) from error
    return connection


async def _secure(origin: Origin, tls: ssl.SSLContext) -> Connection:
    """Connect with TLS, through a tunnel if a proxy applies."""
    if origin.proxy is None:
        return await _socket(origin, tls)
    connection = await _socket(origin)
    target = f"{origin.authority}:443" if origin.port == _PORTS["https"] else origin.authority
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}", *origin.proxy.headers, "", ""]
    await _exchange(connection, "\r\n".join(lines).encode("latin-1"))
    if connection.status != _OK:
        connection.abort()
        raise _refused_by_proxy(origin.proxy, origin.host, connection.status)
    try:
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport, connection, tls, server_hostname=origin.host
        )
    except BaseException:
        connection.abort()
        raise
    assert transport
    connection.tunnel(transport)
    return connection


def _refused_by_proxy(proxy: "Proxy", host: str, status: int) -> Exception:
    """Return the error for a proxy's status code; a request without login is not repeated."""
    text = f"the {proxy} refuses the connection to {host} ({status})"
    if status == _LOGIN_WANTED:
        return ValueError(f"{text}: set {proxy.source} to http://NAME:PASSWORD@HOST:PORT")
    return BrokenAnswerError(f"{text}; correct {proxy.source}, or name {host} in NO_PROXY")


async def untrusted_issuer(url: str, env: Mapping[str, str]) -> str:
    """Return the issuer of the untrusted certificate at an https URL, or "" if unknown."""
    parts = urlsplit(url)
    from pegboard.http.proxies import proxy_for

    proxy = proxy_for(parts, env)
    return await _issuer(Origin("https", parts.hostname or "", parts.port or 443, proxy))


async def _issuer(origin: Origin) -> str:
    """Return the issuer of a server's untrusted certificate; no request is sent to the server."""
    from pegboard.http.certificates import issuer_of, unchecked_context

    try:
        connection = await _secure(origin, unchecked_context())
    except (OSError, ValueError):
        return ""
    found = connection.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    connection.abort()
    return issuer_of(found or b"")


async def _exchange(connection: Connection, head: bytes, body: bytes = b"") -> Connection:
    try:
        connection.send(head, body)
        await connection.head()
    except BaseException:
        connection.abort()
        raise
    return connection


def _head(origin: Origin, url: SplitResult, headers: Mapping[str, str], body: bytes) -> bytes:
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    by_proxy = origin.proxy if origin.scheme == "http" else None
    target = f"http://{origin.authority}{path}" if by_proxy else path
    fields = {
        "host": origin.authority,
        **{name.lower(): value for name, value in headers.items()},
        **({"content-length": str(len(body))} if body else {}),
    }
    for name, value in fields.items():
        if any(character in name + value for character in "\r\n\0"):
            raise ValueError(f"the header {name!r} has a line break in it")
    lines = [f"{name}: {value}" for name, value in fields.items()]
    login = by_proxy.headers if by_proxy else []
    first = f"{'POST' if body else 'GET'} {target} HTTP/1.1"
    return "\r\n".join([first, *lines, *login, "", ""]).encode("latin-1")
