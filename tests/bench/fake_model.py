"""The fake model's server: streams scripted answers and notes when each request came and ended.

It is stateless but for its log, which `GET /log` returns. All times are seconds of CLOCK_MONOTONIC,
comparable between the processes of a machine. It prints its port when it listens.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from fake_script import Reply, reply
from fake_wire import dumps, frames

BATCH = 64  # deltas in one socket write at full speed; each is a chunk of its own
HEAD = b"HTTP/1.1 %d OK\r\ncontent-type: %b\r\n"
LARGEST_HEAD = 1 << 20


class FakeModel:
    """Answers the requests of one client that works in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log: list[dict[str, Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client leaves."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *fields = head.decode("latin-1").rstrip().split("\r\n")
                headers = {
                    key.lower(): value.strip()
                    for key, _, value in (field.partition(":") for field in fields)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self._answer(line.split()[1].partition("?")[0], body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            writer.close()

    async def _answer(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        arrived = time.monotonic()
        if path == "/log":
            _send(writer, 200, self._log)
            return
        if not path.endswith(("/chat/completions", "/responses")):
            self._log.append({"kind": "other", "path": path, "arrive": arrived})
            _send(writer, 404, {"error": {"message": f"not found: {path}"}})
            return
        asked = json.loads(body)
        answer = reply(asked, self._directory)
        record = {
            "kind": "side" if answer.side else "main",
            "step": answer.step,
            "arrive": arrived,
            "bytes": len(body),
        }
        self._log.append(record)
        api = "responses" if path.endswith("/responses") else "chat"
        if asked.get("stream"):
            await _stream(writer, api, str(asked.get("model")), answer, len(self._log))
        else:
            _send(writer, 200, _whole(answer))
        record["end"] = time.monotonic()


def _send(writer: asyncio.StreamWriter, status: int, value: object) -> None:
    body = dumps(value)
    head = HEAD % (status, b"application/json") + b"content-length: %d\r\n\r\n" % len(body)
    writer.write(head + body)


def _whole(answer: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(answer.texts)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


async def _stream(
    writer: asyncio.StreamWriter, api: str, model: str, answer: Reply, number: int
) -> None:
    found = frames(api, model, answer, number)
    start, end = found.delta
    head = HEAD % (200, b"text/event-stream") + b"transfer-encoding: chunked\r\n\r\n"
    writer.write(head + _chunk(found.before))
    began, batch = time.monotonic(), bytearray()
    for index, text in enumerate(answer.texts):
        if answer.rate:
            await asyncio.sleep(max(0.0, began + index / answer.rate - time.monotonic()))
        if answer.dated:
            text = f"<{time.monotonic_ns()}> "  # noqa: PLW2901 - paced texts tell their age
        batch += _chunk(start + dumps(text)[1:-1] + end)
        if answer.rate or index % BATCH == 0:
            writer.write(bytes(batch))
            batch.clear()
            await writer.drain()
            await asyncio.sleep(0)
    after = found.after("".join(answer.texts))
    writer.write(bytes(batch) + _chunk(after) + b"0\r\n\r\n")
    await writer.drain()


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the client works")
    model = FakeModel(parser.parse_args().directory)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, limit=LARGEST_HEAD)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
