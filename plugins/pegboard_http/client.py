"""Requests to model servers: connecting, proxies, TLS, and sockets that are used again."""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from pegboard_http.connection import BrokenAnswerError, Connection

IDLE_LIMIT = 8
"""Sockets that are kept for later: as many as subagents are likely to run at once."""
_PORTS = {"http": 80, "https": 443}
_OK = 200


class Origin(msgspec.Struct, frozen=True):
    """Where a socket leads to, directly or through a proxy."""

    scheme: str
    host: str
    port: int
    proxy: str | None = None

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL, the port left out when it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Client:
    """Sends requests; one for each provider, closed with it.

    `env` gives the proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`) and
    `SSL_CERT_FILE`. Redirects are not followed, so that no credential goes to another host.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._idle: list[tuple[Origin, Connection]] = []
        self._tls: ssl.SSLContext | None = None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes = b"") -> Connection:
        """The connection, when the head of the answer is there; give it back with `release`.

        With a body it is a POST, else a GET. The caller limits the time; cancelling closes the
        socket at once.

        :raises OSError: when the server cannot be reached, or breaks the connection.
        :raises ValueError: when `url` is not an HTTP URL.
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
        return await _exchange(await self._connect(origin), head, body)

    def release(self, url: str, connection: Connection) -> None:
        """Give a connection back whose answer is no longer read; the last bytes may still come."""
        connection.leave()
        self._idle.append((self._origin(urlsplit(url)), connection))
        for _, surplus in self._idle[:-IDLE_LIMIT]:
            surplus.abort()
        del self._idle[:-IDLE_LIMIT]

    async def aclose(self) -> None:
        """Close all sockets that wait for a next request."""
        for _, connection in self._idle:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # asyncio closes a socket in the next round of its loop

    def _origin(self, parts: SplitResult) -> Origin:
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"not an http or https URL: {parts.geturl()}")
        port = parts.port or _PORTS[parts.scheme]
        return Origin(parts.scheme, parts.hostname, port, self._proxy(parts))

    def _proxy(self, parts: SplitResult) -> str | None:
        names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
        proxy = next((self._env[name] for name in names if self._env.get(name)), None)
        if not proxy:
            return None
        no_proxy = self._env.get("no_proxy") or self._env.get("NO_PROXY") or ""
        return None if _is_exempt(parts.hostname or "", no_proxy) else proxy

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
        loop = asyncio.get_running_loop()
        if origin.proxy:
            return await self._connect_by_proxy(origin, urlsplit(origin.proxy))
        tls = await self._context() if origin.scheme == "https" else None
        _, connection = await loop.create_connection(
            Connection, origin.host, origin.port, ssl=tls, happy_eyeballs_delay=0.25
        )
        return connection

    async def _connect_by_proxy(self, origin: Origin, proxy: SplitResult) -> Connection:
        if proxy.scheme != "http" or not proxy.hostname:
            raise ValueError(f"only http:// proxies can be used, not {proxy.scheme}://")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            Connection, proxy.hostname, proxy.port or _PORTS["http"]
        )
        if origin.scheme == "https":
            await self._tunnel(connection, origin, proxy)
        return connection

    async def _tunnel(self, connection: Connection, origin: Origin, proxy: SplitResult) -> None:
        target = f"{origin.authority}:443" if origin.port == _PORTS["https"] else origin.authority
        lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}", *_proxy_login(proxy), "", ""]
        await _exchange(connection, "\r\n".join(lines).encode("latin-1"))
        if connection.status != _OK:
            connection.abort()
            raise BrokenAnswerError(
                f"the proxy {proxy.hostname} refuses the connection ({connection.status})"
            )
        tls = await self._context()
        try:
            transport = await asyncio.get_running_loop().start_tls(
                connection.transport, connection, tls, server_hostname=origin.host
            )
        except BaseException:
            connection.abort()
            raise
        assert transport
        connection.tunnel(transport)

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            # Reading the system's certificates takes 20 ms, in which the loop goes on.
            self._tls = await asyncio.to_thread(_tls_context, self._env.get("SSL_CERT_FILE"))
        return self._tls


def _tls_context(cert_file: str | None) -> ssl.SSLContext:
    """The system's certificates, or the file that `SSL_CERT_FILE` names, or certifi's."""
    context = ssl.create_default_context(cafile=cert_file)
    if not context.get_ca_certs() and not any(ssl.get_default_verify_paths()[:2]):
        import certifi  # only where the system has no certificates

        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_exempt(host: str, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names the host, a domain above it, or everything."""
    entries = (entry.strip().lstrip("*.").partition(":")[0] for entry in no_proxy.split(","))
    named = any(entry and (host == entry or host.endswith(f".{entry}")) for entry in entries)
    return named or "*" in no_proxy.split(",")


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
    by_proxy = origin.proxy and origin.scheme == "http"
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
    login = _proxy_login(urlsplit(origin.proxy or "")) if by_proxy else []
    first = f"{'POST' if body else 'GET'} {target} HTTP/1.1"
    return "\r\n".join([first, *lines, *login, "", ""]).encode("latin-1")


def _proxy_login(proxy: SplitResult) -> list[str]:
    if proxy.username is None:
        return []
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"proxy-authorization: Basic {base64.b64encode(login.encode()).decode()}"]
