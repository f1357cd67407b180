"""Where a fetch may go, and how much it takes."""

import asyncio
import gzip
import time
import zlib

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.unstable import is_public_address
from pegboard_plugins.webfetch.addresses import system_addresses
from pegboard_plugins.webfetch.fetching import LIMIT_BYTES, Fetcher, Wish, parsed_url
from support.wire.web_server import page, redirect, serving


class Names:
    """Addresses of host names; each question takes the next answer, the last one stays."""

    def __init__(self, **answers):
        self.answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.questions = []

    async def __call__(self, host, port):
        self.questions.append(host)
        left = self.answers.get(host, [[host]])
        return left.pop(0) if len(left) > 1 else left[0]


async def agreed(_url):
    return None


def wish(url, *, timeout_s=60.0, agree=agreed):
    return Wish(url=url, accept="*/*", timeout_s=timeout_s, agree=agree)


def anywhere(_address):
    return True


async def fetched(url, *, allowed=anywhere, resolve=system_addresses, **facts):
    return await Fetcher(allowed=allowed, resolve=resolve).fetch(wish(url, **facts))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "not an address"),
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "5f00::1", "3fff::1", "2001:0:7f00:1::"),
        *("::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "192.0.0.192", "240.0.0.1"),
    ],
)
def test_addresses_that_are_not_on_the_public_internet(address):
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_addresses_on_the_public_internet(address):
    assert is_public_address(address)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.1", "127.1", "0", "0.0.0.0"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "127。0。0。1"),
    ],
)
async def test_this_machine_is_refused_however_it_is_spelt(host):
    async with serving({"/": page(b"secret")}) as web:
        with pytest.raises(ToolError, match="not on the public internet"):
            await fetched(web.url(host=host), allowed=is_public_address)

    assert web.connections == 0


async def test_a_host_with_one_private_address_among_public_ones_is_refused():
    names = Names(mixed_test=[["1.1.1.1", "10.0.0.1"]])

    with pytest.raises(ToolError, match=r"mixed\.test has the address 10\.0\.0\.1"):
        await fetched("http://mixed.test/", allowed=is_public_address, resolve=names)


async def test_the_connection_goes_to_the_address_that_was_checked():
    names = Names(rebinding_test=[["127.0.0.1"], ["169.254.169.254"]])

    async with serving({"/": page(b"hello")}) as web:
        got = await fetched(web.url(host="rebinding.test"), resolve=names)

    assert got.content == b"hello"
    assert names.questions == ["rebinding.test"]
    assert web.requests[0]["host"] == f"rebinding.test:{web.port}"


async def test_the_next_address_is_tried_when_one_does_not_answer():
    names = Names(two_test=[["127.1.1.1", "127.0.0.1"]])

    async with serving({"/": page(b"hello")}) as web:
        got = await fetched(web.url(host="two.test"), resolve=names)

    assert got.content == b"hello"


async def test_each_hop_of_a_redirect_is_checked_again():
    places = ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "http://u:p@a/"]
    replies = {f"/{number}": redirect(place) for number, place in enumerate(places)}

    async with serving(replies) as web:
        asked = []

        async def agree(url):
            asked.append(url)
            if "169.254" in url:
                raise PermissionDeniedError("not there")

        with pytest.raises(PermissionDeniedError, match="not there"):
            await fetched(web.url("/0"), agree=agree)
        with pytest.raises(ToolError, match=r"only http:// and https://"):
            await fetched(web.url("/1"))
        with pytest.raises(ToolError, match="name or password"):
            await fetched(web.url("/2"))

    assert asked == [web.url("/0"), places[0]]


@pytest.mark.parametrize("place", ["http://169.254.169.254/latest/", "http://inner.test/"])
async def test_a_redirect_to_an_address_that_is_not_allowed_is_refused(place):
    names = Names(inner_test=[["10.0.0.1"]])

    async with serving({"/": redirect(place)}) as web:
        with pytest.raises(ToolError, match="not on the public internet"):
            await fetched(web.url(), allowed="127.0.0.1".__eq__, resolve=names)


async def test_relative_redirects_are_followed_and_a_circle_ends():
    replies = {"/a/b": redirect("../c", 301), "/c": page(b"there"), "/loop": redirect("/loop")}

    async with serving(replies) as web:
        got = await fetched(web.url("/a/b"))
        with pytest.raises(ToolError, match="more than 10 times"):
            await fetched(web.url("/loop"))

    assert (got.url, got.content) == (web.url("/c"), b"there")


async def test_cookies_do_not_go_from_hop_to_hop():
    replies = {
        "/": redirect("/next").replace(b"\r\n\r\n", b"\r\nset-cookie: a=b; path=/\r\n\r\n"),
        "/next": page(b"there"),
    }

    async with serving(replies) as web:
        await fetched(web.url())

    assert "cookie" not in web.requests[1]


async def test_an_error_status_is_named():
    async with serving({}) as web:
        with pytest.raises(ToolError, match="answered with 404 Not Found"):
            await fetched(web.url("/none"))


class Zeros:
    """Five gigabytes, as far as they are taken."""

    sent_megabytes = 0

    async def __call__(self, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n")
        writer.write(b"content-length: 5368709120\r\n\r\n")
        for _ in range(5120):
            writer.write(b"0" * (1 << 20))
            await writer.drain()
            self.sent_megabytes += 1


async def test_of_five_gigabytes_no_more_than_the_limit_is_taken():
    zeros = Zeros()

    async with serving({"/": zeros}) as web:
        got = await fetched(web.url())

    assert (len(got.content), got.cut) == (LIMIT_BYTES, True)
    assert zeros.sent_megabytes < 64


async def test_a_small_answer_that_unpacks_to_gigabytes_is_cut():
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])

    async with serving({"/": page(bomb, content_encoding="gzip")}) as web:
        started = time.process_time()
        got = await fetched(web.url())

    assert (len(got.content), got.cut) == (LIMIT_BYTES, True)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("GZIP", gzip.compress),
        ("deflate", lambda text: zlib.compress(text)[2:-4]),
        ("gzip", lambda text: gzip.compress(text[:5]) + gzip.compress(text[5:])),
        ("gzip", lambda text: gzip.compress(text) + b"\0"),
        ("gzip", lambda text: gzip.compress(text) + b"what is no gzip"),
    ],
)
async def test_packed_answers_are_unpacked(coding, pack):
    text = b"The same line again and again.\n" * 10_000

    async with serving({"/": page(pack(text), content_encoding=coding)}) as web:
        got = await fetched(web.url())

    assert (got.content, got.cut) == (text, False)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (page(b"x", content_encoding="br"), "encoding br"),
        (page(b"no gzip", content_encoding="gzip"), "unpacked"),
        (page(gzip.compress(b"x" * 99)[:-9], content_encoding="gzip"), "ends too early"),
        (
            page(gzip.compress(b"x") + gzip.compress(b"y" * 99)[:-9], content_encoding="gzip"),
            "early",
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "cannot be fetched"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "cannot be fetched"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error(reply, reason):
    async with serving({"/": reply}) as web:
        with pytest.raises(ToolError, match=reason):
            await fetched(web.url())


async def drip(writer):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silent(_writer):
    await asyncio.sleep(30)


@pytest.mark.parametrize("reply", [drip, silent])
async def test_a_slow_answer_ends_at_the_time_limit(reply):
    async with serving({"/": reply}) as web:
        started = time.monotonic()
        with pytest.raises(ToolError, match=r"took longer than 0\.3 s"):
            await fetched(web.url(), timeout_s=0.3)

    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://a.test?x=1", "https://a.test/?x=1"),  # as `https://a.test/*` fits
        ("https://a.test", "https://a.test"),
        ("https://A.test.:443/b?x#c", "https://a.test/b?x"),
    ],
)
def test_a_rule_sees_one_spelling_of_an_address(url, named):
    assert str(parsed_url(url)) == named


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.test/", "file:///etc/passwd", "a.test", "http://", "http://a b/", "http://[::1"),
        *("http://./", "http://a@b.test/", "http://a.test\\@b.test/"),
    ],
)
async def test_what_is_no_web_address_is_refused(url):
    with pytest.raises(ToolError):
        await fetched(url, resolve=Names())
