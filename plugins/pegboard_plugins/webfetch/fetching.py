"""A fetcher of pages, which checks each redirect and connects only to checked addresses."""

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
    """A fetched page; `url` is its URL after all redirects.

    `mime` is in lower case. `charset` is that of the header, or "". `cut` says that the content is
    longer than the limit.
    """

    url: str
    mime: str
    charset: str
    content: bytes
    cut: bool


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a fetch: the URL, the `Accept` header, and the time limit.

    `agree` is called with the URL before each request, also of redirects; it raises to refuse.
    """

    url: str
    accept: str
    timeout_s: float
    agree: Callable[[str], Awaitable[None]]


class Fetcher:
    """Fetches pages.

    `resolve` returns a host's addresses, and is called once per host and hop. `allowed` decides
    whether a connection to an address is allowed. `environ` names proxies and certificates, and
    `proxy` is the URL of a configured proxy.
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
        """Fetch a page, after at most nine redirects; waits for `agree` do not count as time.

        :raises ToolError: when the scheme is not http or https, an address is not allowed, the
            status is an error, the time limit passes, or the connection fails.
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
        """Send one request; return the page, or the URL to which the server redirects."""
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
    """Return why a connection failed, with the setting that can fix this, if any."""
    text = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f": {text}; {CERTIFICATES_HINT}"
    if proxy is None or isinstance(error, ValueError):
        return f": {text}"
    hint = f"correct {proxy.source}, or name {url.host} in NO_PROXY"
    return f" through the {proxy}: {text}; {hint}"


def parsed_url(url: str) -> "httpx.URL":
    """Return the URL in canonical form, the form that permission rules match.

    :raises ToolError: when the URL is not valid, not http(s), or contains a name or password.
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
    """Return the response, its body unread, from the first address that accepts a connection."""
    import httpx

    *others, last = addresses
    for address in others:
        try:
            return await transport.handle_async_request(_request(url, address, accept))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(url, last, accept))


def _request(url: "httpx.URL", address: str, accept: str) -> "httpx.Request":
    """Make a request to an IP address, with the host's name in the `Host` header and in TLS."""
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
    """Return the decompressed content, up to 5 MiB, and whether the content is longer."""
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
    """A decoder for gzip or deflate content (RFC 9110 8.4.1) that needs limited memory.

    It accepts several gzip members, ignores other bytes after the last member, and accepts deflate
    without a zlib header, as some servers send it.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_ANY_ZLIB)
        self._begun = self._ended = False

    @property
    def whole(self) -> bool:
        """Whether all compressed content has arrived."""
        return self._ended or not self._begun

    def unpacked(self, piece: bytes) -> Iterator[bytes]:
        """Decompress the next piece, and yield the content in parts of at most 5 MiB.

        :raises zlib.error: when the content is neither gzip nor deflate.
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
