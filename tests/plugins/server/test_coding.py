"""An event stream is compressed for a client that asks, and comes piece by piece all the same."""

import json
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import httpx
import pytest

from pegboard_plugins.server.coding import SLICE_BYTES, compress, takes_gzip
from support.models.long_text import TEXTS
from support.wire.served import Served
from support.wire.stream_bytes import Counted, counting

STREAMS = ("/event", "/event?ids=true", "/global/event")
CURL = ("curl", "--compressed", "-sN")
NODE = """
const answer = await fetch(process.argv[1], { headers: { authorization: process.argv[2] } })
console.log("coding:" + answer.headers.get("content-encoding"))
for await (const piece of answer.body) process.stdout.write(piece)
"""
AIOHTTP = """
import asyncio, sys, aiohttp
async def main():
    headers = {"authorization": sys.argv[2]}
    async with aiohttp.request("GET", sys.argv[1], headers=headers) as answer:
        print("coding:" + answer.headers["content-encoding"], flush=True)
        async for piece in answer.content.iter_any():
            print(piece.decode(), flush=True)
asyncio.run(main())
"""
HTTPX = """
import sys, httpx
with httpx.stream("GET", sys.argv[1], headers={"authorization": sys.argv[2]}) as answer:
    print("coding:" + answer.headers["content-encoding"], flush=True)
    for piece in answer.iter_text():
        print(piece, flush=True)
"""
CLIENT = """
import sys
import zlib
from pegboard_client import Client
url, token = sys.argv[1].removesuffix("/event"), sys.argv[2].split()[1]
with Client(url, token=token) as client, client.events() as stream:
    print("connected", flush=True)
    for event in stream:
        print(event, flush=True)
"""


@pytest.mark.parametrize(
    ("lines", "takes"),
    [
        ((), False),
        (("",), False),
        (("identity",), False),
        (("br",), False),
        (("gzip",), True),
        (("GZip",), True),
        (("x-gzip",), True),
        (("br, gzip , deflate",), True),
        (("br", "gzip"), True),
        (("*",), True),
        (("gzip;q=0",), False),
        (("gzip; q=0.000",), False),
        (("*;q=0.5, gzip;q=0",), False),
        (("*;q=0, gzip;q=0.1",), True),
        (("identity;q=1, gzip;q=0.5",), False),
        (("identity;q=0.5, gzip;q=0.5",), True),
        (("gzip;q=high",), False),
        (("gzip;q=nan",), False),
        (("gzipped",), False),
    ],
)
def test_a_client_gets_gzip_if_it_takes_it_and_does_not_like_it_less(
    lines: tuple[str, ...], takes: bool
) -> None:
    assert takes_gzip(lines) is takes


@pytest.mark.parametrize("path", STREAMS)
def test_the_head_of_a_stream_says_how_it_is_coded(server: Served, path: str) -> None:
    with server.client() as client:
        with client.stream("GET", path, headers={"accept-encoding": "gzip"}) as packed:
            first = next(packed.iter_text())
        with client.stream("GET", path, headers={"accept-encoding": "identity"}) as plain:
            raw = next(plain.iter_raw())

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert "content-encoding" not in plain.headers
    assert "content-length" not in packed.headers
    assert "server.connected" in first
    assert b"server.connected" in raw


@pytest.mark.parametrize("program", ["curl", "node", "aiohttp", "httpx", "client"])
def test_clients_read_each_event_when_it_comes(
    server: Served, client: httpx.Client, program: str
) -> None:
    url, key = f"{server.url}/event", f"Bearer {server.token}"
    command = {
        "curl": [*CURL, "-D-", "-H", f"authorization: {key}", url],
        "node": ["node", "--input-type=module", "-e", NODE, url, key],
        "aiohttp": [sys.executable, "-c", AIOHTTP, url, key],
        "httpx": [sys.executable, "-c", HTTPX, url, key],
        "client": [sys.executable, "-c", CLIENT, url, key],
    }[program]
    if shutil.which(command[0]) is None or (program == "aiohttp" and not find_spec(program)):
        pytest.skip(f"needs {program}")

    with lines_of(command) as lines:
        head = until(lines, "onnected")
        session = client.post("/session").json()["id"]
        told = until(lines, session)
        client.patch(f"/session/{session}", json={"title": "a title"})
        later = until(lines, "a title")

    assert program == "client" or "gzip" in head
    assert session in told
    assert "a title" in later


@contextmanager
def lines_of(command: list[str]) -> Iterator[Iterator[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield iter(process.stdout)
        finally:
            process.kill()


def until(lines: Iterator[str], words: str) -> str:
    """The lines as far as the first that has the words."""
    heard = ""
    for line in lines:
        heard += line
        if words in line:
            break
    return heard


async def test_a_large_frame_is_compressed_piece_by_piece_and_whole_at_its_end() -> None:
    frame = json.dumps(TEXTS["noise"](1 << 20)).encode()

    async def frames() -> AsyncGenerator[bytes, None]:
        yield frame
        yield b"next"

    unpack = zlib.decompressobj(31)
    pieces = [piece async for piece in compress(frames())]
    heard = [unpack.decompress(piece) for piece in pieces]

    *of_the_frame, after, _end = heard
    assert after == b"next"
    assert b"".join(of_the_frame) == frame
    assert max(map(len, of_the_frame)) <= 2 * SLICE_BYTES
    assert unpack.eof


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("kb", [4, 400])
def test_a_streamed_answer_is_sent_in_twice_its_bytes_at_most(
    server: Served, client: httpx.Client, kind: str, kb: int
) -> None:
    # The oldest clients hear the text so far at growing intervals, too: for noise that is too much.
    paths = STREAMS if kind == "words" else STREAMS[1:]
    clients = [Counted(path, coding="gzip") for path in paths]
    session = client.post("/session").json()["id"]
    text = f"%stream {kind} {kb} 512 200"

    with counting(server, clients):
        body = {"parts": [{"type": "text", "text": text}]}
        client.post(f"/session/{session}/message", json=body).raise_for_status()

    for each in clients:
        assert TEXTS[kind](kb << 10)[-20:].rstrip().encode() in each.text.replace(b"\\n", b"\n")
        assert each.bytes <= 2 * (kb << 10)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("text", "coded", "plain"), [("words 4 10 100", 2, 9), ("words 50 20 1000", 1.5, 3)]
)
def test_an_answer_of_small_deltas_has_few_envelopes(
    server: Served, client: httpx.Client, text: str, coded: float, plain: float
) -> None:
    # Plain it is sent in its deltas and once more at its end, and each delta has an envelope of
    # 250 bytes, ten a second at most: a slow model's share of them is the greatest, and a slow
    # machine makes the model slower.
    clients = [Counted(path, coding) for path in STREAMS[1:] for coding in ("", "gzip")]
    session = client.post("/session").json()["id"]
    kb, letters, per_s = map(int, text.split()[1:])

    began = time.monotonic()
    with counting(server, clients):
        body = {"parts": [{"type": "text", "text": f"%stream {text}"}]}
        client.post(f"/session/{session}/message", json=body).raise_for_status()
    took_s = time.monotonic() - began

    most = (kb << 10) * max(1, took_s / ((kb << 10) / letters / per_s))
    assert {each.path: each.bytes / most for each in clients if each.bytes > plain * most} == {}
    assert [each for each in clients if each.coding and each.bytes > coded * most] == []
