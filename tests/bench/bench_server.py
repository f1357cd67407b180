"""How long clients of the server wait, in milliseconds.

`sessions` and `messages` are lists over HTTP; the floor is `/global/health`. `delta` is the way
of a piece of text from the model's socket to a client's, at so many pieces a second: each piece
carries the time at which it was sent. The floor is the way to a client that reads the model's
socket itself. The ratios are those to the floor, in p50 and p95.
"""

import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
from raw_stream import raw_ages_ms

from support.models.model_server import chunk, finish, usage
from support.wire.served import Served, served

SESSIONS = 500
TURNS = 100
ROUNDS = 200
RATES = (5, 10, 30, 50, 100, 300)
PIECES = 300
SLOW_PIECES = 50
"""Where there are at most ten a second."""
_RATE = re.compile(rb"at rate (\d+)")
_STAMP = re.compile(rb"<(\d+)>")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pieces of text at the rate that the prompt names, each with the time of its sending."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index] # it is there
    found = _RATE.findall(await reader.readexactly(length))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    rate = int(found[-1]) if found else 0
    for _ in range((PIECES if rate > 10 else SLOW_PIECES) if rate else 1):
        await asyncio.sleep(1 / rate if rate else 0)
        writer.write(_line(chunk({"content": f"<{time.monotonic_ns()}>"})))
    for piece in finish("stop", usage=usage()):
        writer.write(piece if isinstance(piece, bytes) else _line(piece))
    await writer.drain()
    writer.close()


def _line(piece: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(piece).encode()


async def _model() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1")
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await server.serve_forever()


@contextmanager
def model() -> Iterator[int]:
    """The port of the model, in a process of its own."""
    command = [sys.executable, __file__, "--model"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def waits(call: Callable[[], object]) -> list[float]:
    """What a call takes, again and again."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return found


def show(name: str, found: Sequence[float], floor: Sequence[float] = ()) -> None:
    """One line: the middle, what one in twenty exceeds, and the ratios of both to the floor."""
    middle, slow = quantiles(found)
    line = f"{name:<24} p50 {middle:6.2f}   p95 {slow:6.2f}"
    if floor:
        least, most = quantiles(floor)
        line += (
            f"   floor {least:5.2f} {most:5.2f}   ratio {middle / least:6.1f} {slow / most:6.1f}"
        )
    print(line)  # noqa: T201


def quantiles(found: Sequence[float]) -> tuple[float, float]:
    """The median, and what one in twenty exceeds."""
    return statistics.median(found), statistics.quantiles(found, n=20)[-1]


class Listener(threading.Thread):
    """A client of `/event`, which notes how old each piece of text is when it comes."""

    def __init__(self, server: Served) -> None:
        super().__init__(daemon=True)
        host, _, port = server.url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)))
        head = f"GET /event HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {server.token}"
        self._socket.sendall(f"{head}\r\n\r\n".encode())
        self.ages: list[float] = []

    def run(self) -> None:
        """Listen until the server ends the stream."""
        rest = b""
        while content := self._socket.recv(1 << 16):
            now = time.monotonic_ns()
            *lines, rest = (rest + content).split(b"\n")
            for line in lines:
                if b"message.part.delta" in line:
                    delta = json.loads(line[6:])["properties"]["delta"].encode()
                    self.ages += [(now - int(sent)) / 1e6 for sent in _STAMP.findall(delta)]


def prompt(client: httpx.Client, session: str, text: str) -> None:
    """A whole turn."""
    body = {"parts": [{"type": "text", "text": text}]}
    client.post(f"/session/{session}/message", json=body).raise_for_status()


def lists(client: httpx.Client) -> None:
    """The lists, beside the cheapest answer that there is."""
    made = [client.post("/session", json={"title": f"the {at}th"}) for at in range(SESSIONS)]
    session = made[0].json()["id"]
    for at in range(TURNS):
        prompt(client, session, f"question {at}")
    floor = waits(lambda: client.get("/global/health").content)
    show("floor", floor)
    show(f"sessions, {SESSIONS}", waits(lambda: client.get("/session").content), floor)
    limited = {"limit": "100", "roots": "true"}
    show("sessions, 100", waits(lambda: client.get("/session", params=limited).content), floor)
    path = f"/session/{session}/message"
    show(f"messages, {2 * TURNS}", waits(lambda: client.get(path).content), floor)
    show("messages, 100", waits(lambda: client.get(path, params={"limit": "100"}).content), floor)


def deltas(server: Served, client: httpx.Client, model_url: str) -> None:
    """The way of text, at several rates."""
    session = client.post("/session").json()["id"]
    listener = Listener(server)
    listener.start()
    for rate in RATES:
        listener.ages.clear()
        prompt(client, session, f"at rate {rate}")
        floor = asyncio.run(raw_ages_ms(model_url, "m", f"at rate {rate}"))
        show(f"delta, {rate}/s", listener.ages, floor)


def main() -> None:
    """All of it, on a server of its own."""
    if "--model" in sys.argv:
        asyncio.run(_model())
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        model() as port,
        served(Path(folder), port, "--quiet") as server,
        server.client() as client,
    ):
        lists(client)
        deltas(server, client, f"http://127.0.0.1:{port}/v1")


if __name__ == "__main__":
    main()
