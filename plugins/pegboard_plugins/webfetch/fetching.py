"""One page over HTTP: each hop checked, the connection made to the checked address, all bounded."""

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from pegboard import ToolError
from pegboard_http import is_public_address
from pegboard_plugins.webfetch import LIMIT_BYTES

if TYPE_CHECKING:
    import httpx

import socket
from collections.abc import Sequence

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_addresses(host: str, port: int) -> tuple[str, ...]:
    """The host's addresses as the system resolves them, in its order of preference.

    :raises OSError: when there are none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def checked_addresses(
    host: str, port: int, *, resolve: Resolve, allowed: Callable[[str], bool]
) -> tuple[str, ...]:
    """The addresses to connect to, none of which may be resolved again.

    :raises ToolError: when the host has none, or one that is not allowed.
    """
    try:
        found = tuple(await resolve(host, port))
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{host} cannot be resolved: {error}") from error
    refused = [each for each in found if not allowed(each)]
    if refused:
        raise ToolError(
            f"{host} has the address {refused[0]}, which is not on the public internet; the user"
            " can allow it with plugins.webfetch.options.allow_private"
        )
    if not found:
        raise ToolError(f"{host} has no address")
    return found


MOST_HOPS = 10
MOST_ADDRESSES = 3
CONNECT_S = 10.0
AGENT = "Mozilla/5.0 (compatible; Pegboard; a coding agent fetching for its user)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = range(200, 300)
_ANY_ZLIB = 47
"""Of `zlib`: the largest window, with a gzip or a zlib header."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What came from `url`, the last of the hops; `cut` says that there was more.

    `mime` is in lower case, `charset` what the header says, "" if nothing.
    """

    url: str
    mime: str
    charset: str
    content: bytes
    cut: bool


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for; `agree` is awaited with each hop's URL and raises to refuse it."""

    url: str
    accept: str
    timeout_s: float
    agree: Callable[[str], Awaitable[None]]


class Fetcher:
    """Fetches pages.

    `resolve` gives a host's addresses, the one time that they are asked for; `allowed` says to
    which of them a connection may be made.
    """

    def __init__(
        self,
        *,
        allowed: Callable[[str], bool] = is_public_address,
        resolve: Resolve = system_addresses,
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve

    async def fetch(self, wish: Wish) -> Page:
        """The page, after at most ten redirects; waits of `agree` do not count as time.

        :raises ToolError: for any other scheme than http and https, an address that is not
            allowed, a status that is no success, too much time, and a failing connection.
        """
        import httpx  # 0.1 s that only a fetch pays

        # No connection is kept: another host at the same address must make its own.
        limits = httpx.Limits(max_keepalive_connections=0)
        left_s = wish.timeout_s
        url = parsed_url(wish.url)
        async with httpx.AsyncHTTPTransport(trust_env=False, limits=limits) as transport:
            for _ in range(MOST_HOPS):
                await wish.agree(str(url))
                started = time.monotonic()
                answer = await self._within(left_s, transport, url, wish)
                if isinstance(answer, Page):
                    return answer
                left_s -= time.monotonic() - started
                url = parsed_url(str(answer))
        raise ToolError(f"{wish.url} was redirected more than {MOST_HOPS} times")

    async def _within(
        self, left_s: float, transport: "httpx.AsyncHTTPTransport", url: "httpx.URL", wish: Wish
    ) -> "Page | httpx.URL":
        import httpx

        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                return await self._hop(transport, url, wish.accept)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{url} took longer than {wish.timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
            text = str(error) or type(error).__name__
            raise ToolError(f"{url} cannot be fetched: {text}") from error

    async def _hop(
        self, transport: "httpx.AsyncHTTPTransport", url: "httpx.URL", accept: str
    ) -> "Page | httpx.URL":
        """The page, or where it is said to be."""
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await checked_addresses(
            url.host, port, resolve=self._resolve, allowed=self._allowed
        )
        response = await _answer(transport, url, addresses[:MOST_ADDRESSES], accept)
        try:
            location = response.headers.get("location")
            if response.status_code in _REDIRECTS and location:
                return url.join(location)
            if response.status_code not in _OK:
                reason = f"{response.status_code} {response.reason_phrase}".strip()
                raise ToolError(f"{url} answered with {reason}")
            return await _page(url, response)
        finally:
            await response.aclose()


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
    return parsed.copy_with(host=host, fragment=None)


async def _answer(
    transport: "httpx.AsyncHTTPTransport",
    url: "httpx.URL",
    addresses: tuple[str, ...],
    accept: str,
) -> "httpx.Response":
    """The answer's head, from the first of the addresses that takes the connection."""
    import httpx

    *others, last = addresses
    for address in others:
        try:
            return await transport.handle_async_request(_request(url, address, accept))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return await transport.handle_async_request(_request(url, last, accept))


def _request(url: "httpx.URL", address: str, accept: str) -> "httpx.Request":
    """A request that goes to this very address, with the host's name in header and TLS."""
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
    """The decoded content up to the limit, and whether there is more."""
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
    """What comes out of gzip or deflate (RFC 9110 8.4.1), no more at once than may be needed.

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
        """What this piece holds.

        :raises zlib.error: when it is not packed so.
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
