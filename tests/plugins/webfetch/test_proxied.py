"""Fetches through a proxy: which is used, what it is asked for, and what its failures name."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard_plugins.webfetch.addresses import Resolve
from pegboard_plugins.webfetch.fetching import Fetcher, Page, Wish
from support.wire.http_proxy import LOGIN, http_proxy
from support.wire.web_server import page, redirect, serving


async def no_dns(host: str, port: int) -> tuple[str, ...]:
    """Resolve numbers only, as where no DNS answers."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
    return tuple(str(address[0]) for *_, address in found)


async def internal(host: str, port: int) -> tuple[str, ...]:
    return ("10.0.0.1",)


async def agreed(_: str) -> None:
    return


async def fetched(
    url: str, environ: Mapping[str, str], *, resolve: Resolve = no_dns, proxy: str = ""
) -> Page:
    fetcher = Fetcher(resolve=resolve, environ=environ, proxy=proxy)
    return await fetcher.fetch(Wish(url=url, accept="*/*", timeout_s=60, agree=agreed))


async def test_a_page_comes_through_the_proxy_of_the_environment_which_resolves_its_host() -> None:
    async with serving({"/": page(b"hello")}) as web, http_proxy() as proxy:
        got = await fetched(web.url(host="page.example"), {"HTTP_PROXY": proxy.url})

    assert got.content == b"hello"
    line, login = proxy.requests
    assert (line, login.lower()) == (
        f"GET http://page.example:{web.port}/ HTTP/1.1",
        LOGIN.lower(),
    )
    assert web.requests[0]["host"] == f"page.example:{web.port}"


async def test_the_proxy_of_the_options_is_used_before_that_of_the_environment() -> None:
    async with serving({"/": page(b"hello")}) as web, http_proxy() as proxy:
        environ = {"HTTP_PROXY": "http://127.0.0.1:9"}
        got = await fetched(web.url(host="page.example"), environ, proxy=proxy.url)

    assert got.content == b"hello"


@asynccontextmanager
async def secure_page(tls: ssl.SSLContext) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(page(b"hello"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_page_with_tls_comes_through_a_tunnel_with_the_user_s_certificates(
    tls: ssl.SSLContext, certificate: Path
) -> None:
    async with secure_page(tls) as port, http_proxy() as proxy:
        environ = {"https_proxy": proxy.url, "SSL_CERT_FILE": str(certificate)}
        # The certificate is for this address, which only the option sends to a proxy.
        fetcher = Fetcher(allowed=lambda _: True, environ=environ, proxy=proxy.url)
        url = f"https://127.0.0.1:{port}/"
        got = await fetcher.fetch(Wish(url=url, accept="*/*", timeout_s=60, agree=agreed))
        with pytest.raises(ToolError, match="set SSL_CERT_FILE to a PEM file"):
            await fetched(f"https://page.example:{port}/", {"https_proxy": proxy.url})

    assert got.content == b"hello"
    assert proxy.requests[0] == f"CONNECT 127.0.0.1:{port} HTTP/1.1"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f000001", "2130706433", "localhost", "[::1]", "0.0.0.0"),
        *("10.0.0.1", "0x0a000001", "167772161", "169.254.169.254", "[fd00::1]", "192.168.1.1.."),
        *("wiki", "metadata.google.internal", "printer.local", "a.localhost", "intra.corp"),
        *("0x.0x", "10.0.0.256", "x.09", "router.home.arpa"),
    ],
)
async def test_a_host_that_is_not_of_the_public_internet_is_never_asked_of_the_proxy(
    host: str,
) -> None:
    async with http_proxy() as proxy:
        for name in ("http_proxy", "ALL_PROXY"):
            with pytest.raises(ToolError):
                await fetched(f"http://{host}/", {name: proxy.url})
        with pytest.raises(ToolError):
            await fetched(f"http://{host}/", {}, proxy=proxy.url)

    assert proxy.requests == []


async def test_a_host_that_this_machine_resolves_to_a_private_address_is_refused() -> None:
    async with http_proxy() as proxy:
        with pytest.raises(ToolError, match=r"page\.example has the address 10\.0\.0\.1"):
            await fetched("http://page.example/", {"http_proxy": proxy.url}, resolve=internal)

    assert proxy.requests == []


async def test_each_hop_of_a_redirect_is_checked_behind_a_proxy_too() -> None:
    replies = {"/": redirect("http://169.254.169.254/latest/meta-data/")}
    async with serving(replies) as web, http_proxy() as proxy:
        with pytest.raises(ToolError, match=r"169\.254\.169\.254, which is not on the public"):
            await fetched(web.url(host="page.example"), {"http_proxy": proxy.url})

    assert [line for line in proxy.requests if "169.254" in line] == []


async def test_a_host_that_no_proxy_names_is_asked_directly() -> None:
    async with http_proxy() as proxy:
        environ = {"http_proxy": proxy.url, "NO_PROXY": ".example"}
        with pytest.raises(ToolError, match=r"page\.example cannot be resolved"):
            await fetched("http://page.example/", environ)

    assert proxy.requests == []


async def test_a_proxy_that_cannot_be_reached_or_refuses_is_named_with_its_variable() -> None:
    with pytest.raises(ToolError, match=r"the proxy 127\.0\.0\.1:9 of HTTPS_PROXY: .*NO_PROXY"):
        await fetched("https://page.example/", {"HTTPS_PROXY": "127.0.0.1:9"})
    async with http_proxy(status=407) as proxy:
        with pytest.raises(ToolError, match=r"407.* by the proxy .* of http_proxy"):
            await fetched("http://page.example/", {"http_proxy": proxy.url})
        with pytest.raises(ToolError, match=r"through the proxy .* of https_proxy: 407"):
            await fetched("https://page.example/", {"https_proxy": proxy.url})
    with pytest.raises(ToolError, match=r"socks5://127\.0\.0\.1:9, and only http:// proxies"):
        await fetched("http://page.example/", {"ALL_PROXY": "socks5://127.0.0.1:9"})
