"""The floor: the smallest honest agent loop in Python, with nothing but the standard library.

Raw HTTP over asyncio, one shell tool, every part committed to SQLite. No permissions, no
snapshots, no events. What a framework adds stands above this. A fourth argument is the number of
sessions that run at once in the one process: the floor of a server.
"""

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a shell command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}
REQUEST = b'{"model":"%b","stream":true,"tools":[%b],"messages":[%b]}'
HEAD = b"POST %b/chat/completions HTTP/1.1\r\nhost: %b\r\ncontent-length: %d\r\n\r\n"


class Connection:
    """One kept connection to the model."""

    def __init__(
        self, url: str, model: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._url = urlsplit(url)
        self._model = model.encode()
        self._reader = reader
        self._writer = writer

    async def ask(self, messages: list[bytes]) -> dict[str, Any]:
        """The model's message; what is sent is joined from encoded messages."""
        body = REQUEST % (self._model, json.dumps(TOOL).encode(), b",".join(messages))
        place = (self._url.path.encode(), self._url.netloc.encode(), len(body))
        self._writer.write(HEAD % place + body)
        await self._reader.readuntil(b"\r\n\r\n")
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        async for delta in self._deltas():
            text.append(delta.get("content") or "")
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"type": "function", **piece})
                if call["function"] is not piece["function"]:
                    call["function"]["arguments"] += piece["function"]["arguments"]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(text)}
        return {**message, "tool_calls": list(calls.values())} if calls else message

    async def _deltas(self) -> Any:
        rest = b""
        while size := int(await self._reader.readline(), 16):
            rest += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
            *events, rest = rest.split(b"\n\n")
            for event in events:
                if event.startswith(b"data: {"):
                    for choice in json.loads(event[6:])["choices"]:
                        yield choice["delta"]
        await self._reader.readline()


async def _run(command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    return (await process.communicate())[0].decode()


async def _session(database: sqlite3.Connection, url: str, model: str, prompt: str) -> str:
    """The answer to a prompt."""
    messages: list[bytes] = []

    def keep(message: dict[str, Any]) -> None:
        messages.append(json.dumps(message).encode())
        database.execute("insert into part values(?)", (messages[-1],))

    place = urlsplit(url)
    connection = Connection(url, model, *await asyncio.open_connection(place.hostname, place.port))
    keep({"role": "user", "content": prompt})
    while True:
        message = await connection.ask(messages)
        keep(message)
        for call in message.get("tool_calls", ()):
            output = await _run(json.loads(call["function"]["arguments"])["command"])
            keep({"role": "tool", "tool_call_id": call["id"], "content": output})
        if "tool_calls" not in message:
            return str(message["content"])


async def _main(url: str, model: str, prompt: str, sessions: str = "1") -> None:
    database = sqlite3.connect(Path.home() / "floor.db", isolation_level=None)
    database.executescript("pragma journal_mode=wal; create table part(data text)")
    asking = [_session(database, url, model, prompt) for _ in range(int(sessions))]
    answers = await asyncio.gather(*asking)
    database.close()
    sys.stdout.write(answers[0] + "\n")


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
