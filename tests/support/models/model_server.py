"""A model that plays a script over a real socket, in the shape of OpenAI's chat completions.

In a test::

    async with ModelServer(by_step(call("read", {"filePath": "a.txt"}), say("Done."))) as server:
        ...  # base URL: server.url; what was asked: server.requests

For a command line in a process of its own, `python -m support.models.model_server --script
answers.json` prints the port; `answers.json` is a list of answers as `from_json` reads them.
"""

import argparse
import asyncio
import json
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pegboard.testing.closing import stop_accepting

CHUNK_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The head of the response, wherever it stands in an answer; 200 where there is none.

    The body is chunked, unless `headers` has a `content-length`, or `connection: close`: then it
    ends with the connection.
    """

    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wire:
    """Bytes for the socket as they are: a status line, a broken chunk, anything."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for so many seconds, or until the client leaves if it is None."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends here, in the middle of the answer."""


Piece = dict[str, Any] | bytes | Status | Wire | Pause | Cut
"""A dict is a chunk of the stream, bytes are a part of the body."""
Answer = Iterable["Piece | Answer"]
"""Pieces in order; answers may be nested, so that builders can be put together."""
Body = dict[str, Any]
Script = Callable[[Body], Answer]
"""What the model says to a request."""


def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> Piece:
    """One chunk of a completion with a single choice."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def text(content: str) -> list[Piece]:
    """Text, a few characters at a time."""
    return [chunk({"content": piece}) for piece in _pieces(content)]


def reasoning(content: str) -> list[Piece]:
    """Reasoning, a few characters at a time."""
    return [chunk({"reasoning_content": piece}) for piece in _pieces(content)]


def tool_call(
    name: str, args: Mapping[str, Any] | str, *, call_id: str = "", index: int = 0
) -> list[Piece]:
    """A tool call whose arguments come in fragments; a text is sent as it is, valid or not."""
    written = args if isinstance(args, str) else json.dumps(args)
    head = {
        "index": index,
        "id": call_id or f"call_{name}_{index}",
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    return [
        chunk({"tool_calls": [head]}),
        *(
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in _pieces(written)
        ),
    ]


def usage(read: int = 10, wrote: int = 5, *, cached: int = 0, reasoned: int = 0) -> dict[str, Any]:
    """Token counts as the protocol spells them; `read` counts the cached ones in."""
    return {
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "total_tokens": read + wrote,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoned},
    }


def finish(reason: str = "stop", *, usage: Mapping[str, Any] | None = None) -> list[Piece]:
    """The end of an answer, with its usage if there is one."""
    counts: list[Piece] = [{"choices": [], "usage": dict(usage)}] if usage else []
    return [chunk({}, reason), *counts, b"data: [DONE]\n\n"]


def say(content: str) -> list[Piece]:
    """A whole answer of text."""
    return [*text(content), *finish("stop", usage=usage())]


def call(name: str, args: Mapping[str, Any] | str, *, call_id: str = "") -> list[Piece]:
    """A whole answer of one tool call."""
    return [*tool_call(name, args, call_id=call_id), *finish("tool_calls", usage=usage())]


def failure(
    status: int,
    message: str = "scripted failure",
    *,
    code: str = "scripted",
    headers: Mapping[str, str] | None = None,
) -> list[Piece]:
    """An HTTP error with a JSON body."""
    body = json.dumps({"error": {"message": message, "type": "scripted", "code": code}}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body))}
    return [Status(code=status, headers={**head, **(headers or {})}), body]


def step_of(body: Body) -> int:
    """How many times the model has answered since the user spoke last."""
    roles = [message["role"] for message in body["messages"]]
    last_user = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    return roles[last_user + 1 :].count("assistant")


def by_step(*answers: Answer, title: str = "A title") -> Script:
    """Answers by the step of the turn, the last one for all later steps; stateless.

    A request that offers no tools, and is thus no step of a turn, gets `title`.
    """
    kept = [list(flatten(answer)) for answer in answers]

    def script(body: Body) -> Answer:
        if not body.get("tools"):
            return say(title)
        return kept[min(step_of(body), len(kept) - 1)]

    return script


def in_order(*answers: Answer) -> Script:
    """Answers by the order of requests, whatever they ask; the last one for all later ones."""
    kept = [list(flatten(answer)) for answer in answers]
    asked = 0

    def script(body: Body) -> Answer:
        nonlocal asked
        asked += 1
        return kept[min(asked, len(kept)) - 1]

    return script


def flatten(answer: Answer) -> Iterator[Piece]:
    """The pieces of nested answers, in order."""
    for piece in answer:
        if isinstance(piece, dict | bytes | Status | Wire | Pause | Cut):
            yield piece
        else:
            yield from flatten(piece)


class ModelServer:
    """The server, from `async with` to its end; it listens on a free port of 127.0.0.1.

    `requests` are the decoded bodies and `headers` the lower-cased headers, in order of arrival.
    `connections` counts accepted sockets, `disconnects` the clients that left in mid-answer.
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        log: TextIO | None = None,
    ) -> None:
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections = 0
        self.disconnects = 0
        self._script = script
        self._port = port
        self._tls = tls
        self._log = log
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> "ModelServer":
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, ssl=self._tls, limit=1 << 26
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        await stop_accepting(self._server)
        tasks = list(self._open)
        for writer in list(self._open.values()):
            writer.close()
        await asyncio.gather(*tasks)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The base URL for a client: what `/chat/completions` is appended to."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}/v1"

    def drop_idle(self) -> None:
        """Close every connection that is open, as a server does that has waited too long."""
        for writer in self._open.values():
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open[task] = writer
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnects += 1
        finally:
            del self._open[task]
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection can take another."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        request_line, *lines = head.rstrip().split("\r\n")
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        self.requests.append(body)
        self.headers.append(headers)
        self.paths.append(request_line.split()[1])
        if self._log:
            self._log.write(json.dumps({"headers": headers, "body": body}) + "\n")
            self._log.flush()
        return await self._answer(list(flatten(self._script(body))), reader, writer)

    async def _answer(
        self, pieces: list[Piece], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        status = next((piece for piece in pieces if isinstance(piece, Status)), Status())
        headers = {"content-type": "text/event-stream", **status.headers}
        keep = headers.get("connection") != "close"
        chunked = keep and "content-length" not in headers
        head = _head(status.code, headers, chunked=chunked)
        for piece in pieces:
            match piece:
                case Status():
                    continue
                case Pause():
                    await _pause(piece.seconds, reader)
                    continue
                case Cut():
                    return False
                case Wire():
                    writer.write(piece.content)
                    head, keep, chunked = b"", False, False
                case _:
                    content = piece if isinstance(piece, bytes) else _event(piece)
                    writer.write(head + (_chunk(content) if chunked else content))
                    head = b""
            await writer.drain()
        writer.write(head + (_chunk(b"") if chunked else b""))
        await writer.drain()
        return keep


async def _pause(seconds: float | None, reader: asyncio.StreamReader) -> None:
    """Wait, and notice when the client leaves meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return
    raise ConnectionResetError("the client left")


def _head(code: int, headers: Mapping[str, str], *, chunked: bool) -> bytes:
    framing = {"transfer-encoding": "chunked"} if chunked else {}
    lines = [f"{name}: {value}" for name, value in {**headers, **framing}.items()]
    return "\r\n".join([f"HTTP/1.1 {code} Scripted", *lines, "", ""]).encode("latin-1")


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _event(piece: object) -> bytes:
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


def _pieces(content: str) -> list[str]:
    return [content[start : start + CHUNK_CHARS] for start in range(0, len(content), CHUNK_CHARS)]


def from_json(spec: Mapping[str, Any]) -> list[Piece]:
    """An answer from a file: `text`, `reasoning`, `tools` (name, input), `finish`, `delay_s`,
    `usage`, and the faults `status` (with `message`, `code`, `headers`), `stall` and `cut`.
    """
    if "status" in spec:
        facts = {key: spec[key] for key in ("message", "code", "headers") if key in spec}
        return failure(spec["status"], **facts)
    tools = spec.get("tools", ())
    pieces = [
        *([Pause(spec["delay_s"])] if "delay_s" in spec else []),
        *reasoning(spec.get("reasoning", "")),
        *text(spec.get("text", "")),
    ]
    for index, tool in enumerate(tools):
        pieces += tool_call(tool["name"], tool["input"], index=index, call_id=tool.get("id", ""))
    if spec.get("stall") or spec.get("cut"):
        return [*pieces, Cut() if spec.get("cut") else Pause()]
    reason = spec.get("finish", "tool_calls" if tools else "stop")
    return [*pieces, *finish(reason, usage=spec.get("usage", usage()))]


async def _main() -> None:
    parser = argparse.ArgumentParser(description="Plays a scripted model until it is killed.")
    parser.add_argument("--script", type=Path, required=True, help="JSON: a list of answers")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--order", action="store_true", help="by request, not by step of the turn")
    parser.add_argument("--log", type=argparse.FileType("a"), help="requests, a JSON line each")
    options = parser.parse_args()
    answers = [from_json(spec) for spec in json.loads(options.script.read_text())]
    script = in_order(*answers) if options.order else by_step(*answers)
    async with ModelServer(script, port=options.port, log=options.log) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()  # no limit: the test that started it kills it


if __name__ == "__main__":
    asyncio.run(_main())
