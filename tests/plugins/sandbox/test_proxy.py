"""The proxy of a list of hosts, over its real socket: whom it reaches, and what it refuses."""

import asyncio
import gc
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard_plugins.sandbox.proxy import MOST_CONNECTIONS, FilteringProxy
from pegboard_plugins.sandbox.proxyrequest import HEAD_LIMIT_BYTES

LIMIT_S = 30.0
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
ADDRESSES: Mapping[str, Sequence[str]] = {
    "loop.test": ("127.0.0.1",),
    "mixed.test": ("127.0.0.1", "10.0.0.1"),
    "mapped.test": ("::ffff:127.0.0.1",),
    "nat64.test": ("64:ff9b::7f00:1",),
    "local.test": ("169.254.169.254",),
    "scoped.test": ("fe80::1%1",),
    "none.test": (),
}

Talk = Callable[[bytes], Awaitable[bytes]]


class Site:
    """A server on loopback that keeps what it is sent, and answers once a request is whole."""

    def __init__(self) -> None:
        self.port = 0
        self.heard: list[bytes] = []
        self.lookups: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = len(self.heard)
        self.heard.append(b"")
        while chunk := await reader.read(1 << 16):
            self.heard[at] += chunk
            if self.heard[at].endswith((b"\r\n\r\n", b"end")):
                break
        writer.write(OK)
        writer.close()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        if host not in ADDRESSES:
            raise OSError("no such name")
        return ADDRESSES[host]


@asynccontextmanager
async def proxied(*hosts: str, **facts: float) -> AsyncIterator[tuple[Site, Talk, Path]]:
    """A site, a way to send bytes to a proxy and have all that it answers, and its socket.

    In hosts and bytes `PORT` is the site's.
    """
    site = Site()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    said = [each.replace("PORT", str(site.port)) for each in hosts]
    proxy = FilteringProxy(said, resolve=site.resolve, **facts)
    path = await proxy.open()

    async def talk(sent: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            writer.write(sent.replace(b"PORT", str(site.port).encode()))
            async with asyncio.timeout(LIMIT_S):
                return await reader.read()
        finally:
            writer.close()

    try:
        async with server:
            yield site, talk, path
    finally:
        await proxy.aclose()
        assert not path.parent.exists()
        assert "pegboard-lookup" not in {each.name for each in threading.enumerate()}


def get(url: str, *fields: str) -> bytes:
    return "\r\n".join((f"GET {url} HTTP/1.1", *fields, "", "")).encode()


async def test_a_listed_literal_is_reached_by_url_and_by_tunnel() -> None:
    async with proxied("127.0.0.1:PORT") as (site, talk, _):
        plain = await talk(get("http://127.0.0.1:PORT/a?b", "accept: */*", "te: trailers"))
        tunnel = await talk(b"CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\nanything end")

    assert plain == OK
    assert tunnel == b"HTTP/1.1 200 Connection established\r\n\r\n" + OK
    assert site.heard == [
        f"GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:{site.port}\r\naccept: */*\r\n"
        "connection: close\r\n\r\n".encode(),
        b"anything end",
    ]
    assert site.lookups == []


async def test_what_is_not_listed_is_refused_with_the_way_out() -> None:
    async with proxied("127.0.0.1:PORT", "loop.test") as (site, talk, _):
        told = [
            await talk(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"),
            await talk(get("http://loop.test:8080/")),
            await talk(b"CONNECT [::1]:PORT HTTP/1.1\r\n\r\n"),
        ]

    why = "is not in sandbox_network; the user can add it to the list"
    places = ("evil.test:443", "loop.test:8080", f"[::1]:{site.port}")
    for answer, place in zip(told, places, strict=True):
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0] == f"HTTP/1.1 403 {place} {why}".encode()
        assert body == f"{place} {why}\n".encode()
    assert (site.heard, site.lookups) == ([], [])


@pytest.mark.parametrize("name", [name for name in ADDRESSES if name != "none.test"])
async def test_a_name_that_leads_into_the_machine_s_own_networks_is_refused(name: str) -> None:
    async with proxied(f"{name}:PORT") as (site, talk, _):
        told = await talk(get(f"http://{name}:PORT/"))

    assert told.startswith(b"HTTP/1.1 403 ")
    assert b"not on the public internet: the user can add the address itself" in told
    assert site.heard == []


async def test_a_name_may_lead_to_an_address_that_is_listed_itself() -> None:
    async with proxied("loop.test:PORT", "127.0.0.1:PORT") as (site, talk, _):
        assert await talk(get("http://loop.test:PORT/")) == OK

    assert site.lookups == ["loop.test"]


async def test_a_name_without_an_address_cannot_be_reached() -> None:
    async with proxied("none.test", "gone.test") as (_, talk, _):
        told = [await talk(get(f"http://{name}.test/")) for name in ("none", "gone")]

    assert told[0].startswith(b"HTTP/1.1 502 none.test:80 cannot be reached: no address")
    assert told[1].startswith(b"HTTP/1.1 502 gone.test:80 cannot be resolved: no such name")


async def test_the_system_looks_names_up_off_the_loop() -> None:
    proxy = FilteringProxy(["localhost:9"])
    path = await proxy.open()
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(get("http://localhost:9/"))
    told = await reader.read()
    writer.close()
    await proxy.aclose()

    assert told.startswith(b"HTTP/1.1 403 localhost:9 has the address ")


async def test_the_url_s_host_is_the_only_one_that_a_server_is_told() -> None:
    async with proxied("127.0.0.1:PORT") as (site, talk, _):
        fields = ("Host: evil.test", "HOST: other.test", "Connection: x-mine, host", "X-Mine: 1")
        assert await talk(get("http://127.0.0.1:PORT", *fields, "Proxy-Authorization: x")) == OK

    assert site.heard == [
        f"GET / HTTP/1.1\r\nhost: 127.0.0.1:{site.port}\r\nconnection: close\r\n\r\n".encode()
    ]


SMUGGLED = b"GET http://evil.test/ HTTP/1.1\r\nhost: evil.test\r\n\r\n"
BODIES = {
    b"content-length: 3\r\n\r\nend": b"content-length: 3\r\nconnection: close\r\n\r\nend",
    b"transfer-encoding: Chunked\r\n\r\n0003;x=y\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n": (
        b"transfer-encoding: Chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("body", BODIES)
async def test_a_request_is_carried_with_its_body_and_nothing_after_it(body: bytes) -> None:
    async with proxied("127.0.0.1:PORT") as (site, talk, _):
        head = b"POST http://127.0.0.1:PORT/ HTTP/1.1\r\n"
        alone = await talk(head + body)
        await talk(head + body + SMUGGLED)

    begin = f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{site.port}\r\n".encode()
    assert alone == OK
    assert len(site.heard) == 2
    assert all((begin + BODIES[body]).startswith(heard) for heard in site.heard)
    assert site.heard[0] == begin + BODIES[body]


async def test_a_refused_tunnel_ends_the_connection() -> None:
    async with proxied("127.0.0.1:PORT") as (site, talk, _):
        inner = get("http://127.0.0.1:PORT/")
        told = await talk(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n" + inner)

    assert told.count(b"HTTP/1.1") == 1
    assert site.heard == []


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\n\r\n",
        get("https://127.0.0.1:PORT/"),
        get("http://me@127.0.0.1:PORT/"),
        get("http://127.0.0.1:PORT\\@evil.test/"),
        get("http://2130706433:PORT/"),
        get("http://127.1:PORT/"),
        b"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:PORT:1 HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:PORT evil.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:PORT HTTP/1.1\nhost: x\r\n\r\n",
        get("http://127.0.0.1:PORT/", " folded: x"),
        get("http://127.0.0.1:PORT/", "name : x"),
        get("http://127.0.0.1:PORT/", "x: a\rb"),
        get("http://127.0.0.1:PORT/", "content-length: 1", "content-length: 2"),
        get("http://127.0.0.1:PORT/", "content-length: +1"),
        get("http://127.0.0.1:PORT/", "content-length: 3", "transfer-encoding: chunked"),
        get("http://127.0.0.1:PORT/", "transfer-encoding: gzip, chunked"),
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(sent: bytes) -> None:
    async with proxied("127.0.0.1:PORT") as (site, talk, _):
        assert (await talk(sent)).startswith(b"HTTP/1.1 400 ")

    assert site.heard == []


async def test_a_head_is_bounded_in_size_and_time() -> None:
    async with proxied("127.0.0.1:PORT") as (_, talk, _):
        large = await talk(get("http://127.0.0.1:PORT/", "x: " + "y" * HEAD_LIMIT_BYTES))
    async with proxied("127.0.0.1:PORT", head_s=0.05) as (_, talk, _):
        slow = await talk(b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\n")

    assert large.startswith(b"HTTP/1.1 431 the head of the request is longer than 64 KiB")
    assert slow.startswith(b"HTTP/1.1 408 no request within 0.05 s")


async def test_a_tunnel_that_is_idle_ends() -> None:
    async with proxied("127.0.0.1:PORT", idle_s=0.05) as (_, talk, _):
        told = await talk(b"CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\n")

    assert told == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_there_are_64_connections_and_no_more() -> None:
    async with proxied("127.0.0.1:PORT") as (_, talk, path):
        open_ones = [await asyncio.open_unix_connection(path) for _ in range(MOST_CONNECTIONS)]
        told = await talk(b"")
        for _, writer in open_ones:
            writer.close()
        again = b""
        while not again.endswith(b"hi"):  # the proxy notices each end in its own time
            with suppress(ConnectionResetError):
                again = await talk(get("http://127.0.0.1:PORT/"))

    assert told.startswith(b"HTTP/1.1 503 more than 64 connections at once")


async def test_much_goes_through_a_tunnel_in_both_directions() -> None:
    sent = os.urandom(1 << 20) * 8

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = FilteringProxy([f"127.0.0.1:{port}"])
    reader, writer = await asyncio.open_unix_connection(await proxy.open())
    writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")

    async def send() -> None:
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(send())
        back = await reader.read()
    writer.close()
    server.close()
    await proxy.aclose()

    assert back == sent


async def test_who_reads_slowly_has_everything_and_nothing_fails() -> None:
    sizes = range(64 << 10, 1 << 20, 32 << 10)  # for some of them the rest waits at the end
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: failures.append(found))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(bytes(int(head.split()[1][1:])))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = FilteringProxy([f"127.0.0.1:{port}"])
    path = await proxy.open()
    lines = [await asyncio.open_unix_connection(path, limit=1 << 10) for _ in sizes]
    for (_, writer), size in zip(lines, sizes, strict=True):
        writer.write(get(f"http://127.0.0.1:{port}/{size}"))
    async with asyncio.timeout(LIMIT_S):
        found = [len(await reader.read()) for reader, _ in reversed(lines)]
    for _, writer in lines:
        writer.close()
    server.close()
    await proxy.aclose()
    gc.collect()  # a task that failed unseen says so when it goes

    assert found == list(reversed(sizes))
    assert failures == []


async def test_the_end_does_not_wait_for_those_who_do_not_read() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"x" * (1 << 16))
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = FilteringProxy([f"127.0.0.1:{port}"])
    reader, writer = await asyncio.open_unix_connection(await proxy.open())
    writer.write(get(f"http://127.0.0.1:{port}/"))
    await reader.readexactly(1 << 20)

    async with asyncio.timeout(LIMIT_S):
        await proxy.aclose()

    writer.close()
    server.close()
    assert "proxy" not in {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_comes_with_the_end_is_closed(turns: int) -> None:
    proxy = FilteringProxy(["a.test"])
    path = await proxy.open()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LIMIT_S)
        client.connect(str(path))  # the kernel takes it; the loop accepts it turn by turn
        for _ in range(turns):
            await asyncio.sleep(0)

        await proxy.aclose()

        with suppress(ConnectionResetError):
            assert await asyncio.to_thread(client.recv, 1) == b""
    assert [task for task in asyncio.all_tasks() if task.get_name() == "proxy"] == []


async def test_only_the_user_can_call_it() -> None:
    proxy = FilteringProxy(["a.test"])
    path = await proxy.open()
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]
    await proxy.aclose()

    assert modes == [0o600, 0o700]


def test_a_host_that_is_none_is_refused_before_anything_listens() -> None:
    with pytest.raises(ConfigError, match="no host"):
        FilteringProxy(["http://a.test"])
