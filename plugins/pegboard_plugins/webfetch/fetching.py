"""One page over HTTP: each hop checked, the connection made to the checked address, all bounded."""

import asyncio
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from pegboard import ToolError
from pegboard.unstable import CERTIFICATES_HINT, is_public_address, proxy_for, tls_context
from pegboard_plugins.webfetch.addresses import (
    Resolve,
    addresses_for_proxy,
    checked_addresses,
    system_addresses,
)

if TYPE_CHECKING:
    import httpx

    from pegboard.unstable import Proxy

LIMIT_BYTES = 5 << 20
"""The longest content, decoded; what comes after it is not read (opencode `tool/webfetch.ts`)."""
MOST_HOPS = 10
MOST_ADDRESSES = 3
CONNECT_S = 10.0
AGENT = "Mozilla/5.0 (compatible; Pegboard; a coding agent fetching for its user)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = range(200, 300)
_LOGIN = 407
_ANY_ZLIB = 47
"""Of `zlib`: the largest window, with a gzip or a zlib header."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The answer from `url`, the last of the hops; `cut` means that there was more.

    `mime` is in lower case, `charset` what the header says, "" if nothing.
    """

    url: str
    mime: str
    charset: str
    content: bytes
    cut: bool


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The request; `agree` is awaited with each hop's URL and raises to refuse it."""

    url: str
    accept: str
    timeout_s: float
    agree: Callable[[str], Awaitable[None]]


class Fetcher:
    """Fetches pages.

    `resolve` gives a host's addresses, the one time that they are asked for; `allowed` says to
    which of them a connection may be made. `environ` gives proxies and certificates, `proxy` is
    one that the configuration names.
    """

    def __init__(
        self,
        *,
        allowed: Callable[[str], bool] = is_public_address,
        resolve: Resolve = system_addresses,
        environ: Mapping[str, str] | None = None,
        proxy: str = "",
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._environ = environ or {}
        self._proxy = proxy
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, wish: Wish) -> Page:
        """Fetch a page, after at most ten redirects; waits of `agree` do not count as time.

        :raises ToolError: for any other scheme than http and https, an address that is not
            allowed, an error status, too much time, and a failing connection.
        """
        left_s = wish.timeout_s
        url = parsed_url(wish.url)
        for _ in range(MOST_HOPS):
            await wish.agree(str(url))
            started = time.monotonic()
            answer = await self._within(left_s, url, wish)
            if isinstance(answer, Page):
                return answer
            left_s -= time.monotonic() - started
            url = parsed_url(str(answer))
        raise ToolError(f"{wish.url} was redirected more than {MOST_HOPS} times")

    async def _within(self, left_s: float, url: "httpx.URL", wish: Wish) -> "Page | httpx.URL":
        import httpx  # 0.1 s that only a fetch pays

        limit = asyncio.timeout(left_s)
        proxy: Proxy | None = None
        try:
            proxy = proxy_for(urlsplit(str(url)), self._environ, self._proxy)
            async with limit:
                return await self._hop(url, proxy, wish.accept)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{url} took longer than {wish.timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
            raise ToolError(f"{url} cannot be fetched{_reason(error, url, proxy)}") from error

    async def _hop(
        self, url: "httpx.URL", proxy: "Proxy | None", accept: str
    ) -> "Page | httpx.URL":
        """Return the page, or the URL of a redirect."""
        port = url.port or (443 if url.scheme == "https" else 80)
        check = checked_addresses if proxy is None else addresses_for_proxy
        addresses = await check(url.host, port, resolve=self._resolve, allowed=self._allowed)
        if self._tls is None and url.scheme == "https":
            self._tls = await asyncio.to_thread(tls_context, self._environ)
        async with _transport(proxy, self._tls) as transport:
            response = await _answer(transport, url, addresses[:MOST_ADDRESSES], accept)
            try:
                location = response.headers.get("location")
                if response.status_code in _REDIRECTS and location:
                    return url.join(location)
                if response.status_code not in _OK:
                    reason = f"{response.status_code} {response.reason_phrase}".strip()
                    by = f" by the {proxy}" if proxy and response.status_code == _LOGIN else ""
                    raise ToolError(f"{url} answered with {reason}{by}")
                return await _page(url, response)
            finally:
                await response.aclose()


def _transport(
    proxy: "Proxy | None", tls: ssl.SSLContext | None
) -> "AbstractAsyncContextManager[httpx.AsyncHTTPTransport]":
    import httpx

    return httpx.AsyncHTTPTransport(
        trust_env=False,
        # No connection is reused: another host at the same address must make its own.
        limits=httpx.Limits(max_keepalive_connections=0),
        proxy=proxy.url if proxy else None,
        verify=tls or False,  # without TLS nothing is verified
    )


def _reason(error: Exception, url: "httpx.URL", proxy: "Proxy | None") -> str:
    """Return why a connection failed, and what can be set."""
    text = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f": {text}; {CERTIFICATES_HINT}"
    if proxy is None or isinstance(error, ValueError):
        return f": {text}"
    hint = f"correct {proxy.source}, or name {url.host} in NO_PROXY"
    return f" through the {proxy}: {text}; {hint}"


def parsed_url(url: str) -> "httpx.URL":
    """Return the URL in its canonical form, as rules name it.

    :raises ToolError: for any that is not fetched.
    """
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{url!r} is not a URL: {error}") from error
    host = parsed.host.rstrip(".")  # the same host, which rules name without its dot
    if parsed.scheme not in ("http", "https") or not host:
        raise ToolError(f"{url!r} is not fetched: only http:// and https:// URLs are")
    if parsed.userinfo:
        raise ToolError("a URL with a name or password in it is not fetched")
    parsed = parsed.copy_with(host=host, fragment=None)
    # With the slash that `https://HOST?query` leaves out: a rule says `https://HOST/*`.
    return parsed.copy_with(raw_path=parsed.raw_path) if parsed.query else parsed


async def _answer(
    transport: "httpx.AsyncHTTPTransport",
    url: "httpx.URL",
    addresses: tuple[str, ...],
    accept: str,
) -> "httpx.Response":
    """Return the answer's head, from the first address that accepts the connection."""
    import httpx

    *others, last = addresses
    for address in others:
        try:
            return await transport.handle_async_request(_request(url, address, accept))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(url, last, accept))


def _request(url: "httpx.URL", address: str, accept: str) -> "httpx.Request":
    """Make a request to this very address, with the host's name in header and TLS."""
    import httpx

    headers = {
        "Host": url.netloc.decode("ascii"),
        "User-Agent": AGENT,
        "Accept": accept,
        "Accept-Encoding": "gzip, deflate",
        "Accept-Language": "en-US,en;q=0.9",
        "Connection": "close",
    }
    return httpx.Request(
        "GET",
        url.copy_with(host=address),
        headers=headers,
        extensions={
            "sni_hostname": url.raw_host.decode("ascii"),
            # The limit of the whole fetch bounds the rest.
            "timeout": {"connect": CONNECT_S, "read": None, "write": None, "pool": None},
        },
    )


async def _page(url: "httpx.URL", response: "httpx.Response") -> Page:
    kind, _, rest = response.headers.get("content-type", "").partition(";")
    content, cut = await _content(url, response)
    return Page(
        url=str(url),
        mime=kind.strip().lower(),
        charset=_charset(rest),
        content=content,
        cut=cut,
    )


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return ""


async def _content(url: "httpx.URL", response: "httpx.Response") -> tuple[bytes, bool]:
    """Return the decoded content up to the limit, and whether there is more."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise ToolError(f"{url} answered in the encoding {coding}, which was not asked for")
    packed = _Packed() if coding not in ("identity", "") else None
    content = bytearray()
    try:
        async for piece in response.aiter_raw(1 << 16):
            for plain in packed.unpacked(piece) if packed else (piece,):
                content += plain
                if len(content) > LIMIT_BYTES:
                    return bytes(content[:LIMIT_BYTES]), True
    except zlib.error as error:
        raise ToolError(f"{url} cannot be unpacked: {error}") from error
    if packed and not packed.whole:
        raise ToolError(f"{url} cannot be unpacked: it ends too early")
    return bytes(content), False


class _Packed:
    """The content of gzip or deflate (RFC 9110 8.4.1), no more at once than is needed.

    There may be several gzip members; what follows the last one and is none is left out. Some
    servers send deflate without its header.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_ANY_ZLIB)
        self._begun = self._ended = False

    @property
    def whole(self) -> bool:
        """Whether it has come to its end."""
        return self._ended or not self._begun

    def unpacked(self, piece: bytes) -> Iterator[bytes]:
        """Decompress a piece.

        :raises zlib.error: when it is not compressed so.
        """
        while piece.strip(b"\0") if self._ended else piece:
            try:
                plain = self._inflate.decompress(piece, LIMIT_BYTES + 1)
            except zlib.error:
                if self._ended:
                    return
                if self._begun:
                    raise
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                plain = self._inflate.decompress(piece, LIMIT_BYTES + 1)
            self._begun = True
            yield plain
            piece = self._inflate.unconsumed_tail
            self._ended = self._inflate.eof
            if self._ended:
                piece = self._inflate.unused_data
                self._inflate = zlib.decompressobj(_ANY_ZLIB)
