"""What a stream costs: the OpenAI-compatible provider's deltas, and the bytes of a whole answer.

`python tests/bench/bench_stream.py` prints figures and their ratio to a raw floor: sockets and
JSON without any HTTP client. CPU time of this process only; the server runs in its own.
`python tests/bench/bench_stream.py bytes` streams answers of 50 to 400 KB, 10 KB a second, and
prints what is written for each, as values and as pages, and what is sent to clients of a server,
who ask for compression or not. The text is prose, and once more random letters.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

import httpx
import msgspec

from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.models import model_server
from support.models.long_text import TEXTS
from support.models.played import HI, Answer, Played, opened
from support.models.provider_run import provider_at
from support.wire.served import Served, model, served
from support.wire.stream_bytes import Counted, counting

DELTAS = 20_000
BATCH = 64
ROUNDS = 5
SIZES_KB = (4, 50, 100, 200, 400)
STREAMS = ("/event?ids=true", "/global/event", "/event")
ANSWERED_WITHIN_S = 120
PACE_KB_S = 10
DELTAS_S = 20


def script(body: model_server.Body) -> model_server.Answer:
    """20,000 deltas, each an HTTP chunk of its own, 64 in a write; or two words."""
    if body["model"] != "stream":
        return model_server.say("All done.")
    event = json.dumps(model_server.chunk({"content": "word "})).encode()
    framed = b"%x\r\ndata: %b\n\n\r\n" % (len(event) + 8, event)
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    end = b"".join(piece for piece in model_server.finish() if isinstance(piece, bytes))
    writes = [model_server.Wire(framed * BATCH)] * (DELTAS // BATCH)
    last = b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end)
    return [model_server.Wire(head), *writes, model_server.Wire(last)]


async def provider_run(provider: Provider, request: ModelRequest) -> int:
    """One request; the number of deltas."""
    return len([event async for event in provider.stream(request) if isinstance(event, TextDelta)])


async def floor_run(port: int, body: bytes) -> int:
    """The same with a socket, a split and a JSON decoder."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.writelines((head.encode(), body))
    decode, seen, rest = msgspec.json.Decoder().decode, 0, b""
    while content := await reader.read(1 << 16):
        *lines, rest = (rest + content).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                decode(line[6:])
                seen += 1
        if b"[DONE]" in content:
            break
    writer.close()
    return seen


def request(model: str, history: int = 1) -> ModelRequest:
    """A request with so many messages before it."""
    known = provider_at("http://x").resolve(model)
    assert known
    message = (Text(text="Some words of an earlier message. " * 20),)
    messages = tuple(ModelMessage(role="user", content=message) for _ in range(history))
    return ModelRequest(model=known, system=("You are a bench.",), messages=messages)


@contextmanager
def server() -> Iterator[int]:
    """The port of a model in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def serve() -> None:
    """The model, until this process is killed."""
    async with model_server.ModelServer(script) as running:
        sys.stdout.write(f"{running.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


async def measure(port: int) -> None:
    """All figures, best of a few rounds."""
    url = f"http://127.0.0.1:{port}/v1"
    provider = provider_at(url)
    began = time.process_time()
    await provider_run(provider, request("hello"))
    first = time.process_time() - began

    ours = min([await _cpu(provider_run(provider, request("stream"))) for _ in range(ROUNDS)])
    body = b'{"model":"stream","messages":[]}'
    floor = min([await _cpu(floor_run(port, body)) for _ in range(ROUNDS)])
    _print("first request, imports included, ms", first * 1e3)
    _print("a delta, us", ours / DELTAS * 1e6, floor / DELTAS * 1e6)

    costs = {}
    for history in (1, 101, 401):
        asked = request("hello", history)
        await provider_run(provider, asked)
        costs[history] = min([await _cpu(provider_run(provider, asked)) for _ in range(20)])
        _print(f"a request with {history} messages, ms", costs[history] * 1e3)
    _print("a message of the history, us", (costs[401] - costs[1]) / 400 * 1e6)
    await provider.aclose()


async def _cpu(run: object) -> float:
    began = time.process_time()
    await run  # type: ignore[misc]  # any of the two runs
    return time.process_time() - began


def _print(what: str, value: float, floor: float | None = None) -> None:
    ratio = f"   floor {floor:8.2f}   ratio {value / floor:.2f}" if floor else ""
    sys.stdout.write(f"{what:42} {value:8.2f}{ratio}\n")


@dataclass(slots=True)
class Written:
    """Bytes that one answer gives to the database."""

    values: int = 0

    def note(self, _: object, sql: str, values: object) -> bool:
        """Count the values of a statement that writes."""
        if sql.startswith(("INSERT", "UPDATE")) and isinstance(values, tuple):
            self.values += sum(len(value) for value in values if isinstance(value, bytes | str))
        return True


def paced(text: str) -> Answer:
    """The text, 20 deltas a second."""
    size = PACE_KB_S * 1024 // DELTAS_S

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        for start in range(0, len(text), size):
            yield TextDelta("0", text[start : start + size])
            await asyncio.sleep(1 / DELTAS_S)
        yield TextEnd("0")
        yield StreamFinish("stop")

    return answer


async def count_written(kb: int) -> None:
    """What one answer costs on the disk."""
    counted = Written()
    with TemporaryDirectory() as folder:
        async with opened(Path(folder), Played(paced(TEXTS["words"](kb * 1024)))) as app:
            session = await app.create_session()
            assert isinstance(app.storage, SqliteStorage)
            app.storage._writer._db.exec_trace = counted.note
            before = _system_bytes()
            await app.prompt(session.id, HI)
            pages = _system_bytes() - before
    for what, size in (("values", counted.values), ("pages", pages)):
        _print(f"{kb} KB, {what}, KB", size / 1024, kb)


def count_sent(kb: int) -> None:
    """What one answer costs on the sockets of a server's clients."""
    with ExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory())
        port = opened.enter_context(model())
        server = opened.enter_context(served(Path(folder), port))
        client = opened.enter_context(server.client())
        for kind in TEXTS:
            clients = [Counted(path, coding) for path in STREAMS for coding in ("", "gzip")]
            _stream(server, client, clients, f"{kind} {kb}")
            for each in clients:
                what = f"{kb} KB of {kind}, {each.path}, {each.coding or 'plain'}, KB"
                _print(what, each.bytes / 1024, kb)


def measure_coding(kb: int) -> None:
    """The server's CPU time for an answer with ten clients, compressed or not."""
    with (
        TemporaryDirectory() as folder,
        model() as port,
        served(Path(folder), port) as server,
        server.client() as client,
    ):
        for coding in ("", "gzip", "", "gzip"):
            clients = [Counted("/event?ids=true", coding) for _ in range(10)]
            before = _cpu_s(server)
            _stream(server, client, clients, f"words {kb}")
            spent_ms = (_cpu_s(server) - before) * 1000
            _print(f"{kb} KB to 10 clients, {coding or 'plain'}, CPU ms", spent_ms)


def _stream(server: Served, client: httpx.Client, clients: Sequence[Counted], text: str) -> None:
    size = PACE_KB_S * 1024 // DELTAS_S
    session = client.post("/session").json()["id"]
    body = {"parts": [{"type": "text", "text": f"%stream {text} {size} {DELTAS_S}"}]}
    with counting(server, clients):
        path = f"/session/{session}/message"
        client.post(path, json=body, timeout=ANSWERED_WITHIN_S).raise_for_status()


def _cpu_s(server: Served) -> float:
    facts = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


def _system_bytes() -> int:
    """What this process has given to the system to write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def main() -> None:
    """Serve, count bytes, or measure against a server."""
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return
    if sys.argv[1:] == ["bytes"]:
        for kb in SIZES_KB:
            asyncio.run(count_written(kb))
            count_sent(kb)
        measure_coding(50)
        return
    with server() as port:
        asyncio.run(measure(port))


if __name__ == "__main__":
    main()
