"""A crowd at a server: clients that follow its events, and prompts in many sessions at once."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

WITHIN_S = 120.0
"""The longest that a turn may take, and that a client may hear nothing."""
_NUMBER = re.compile(rb"^id: \w+-(\d+)$")
_STAMP = re.compile(rb"<(\d+)>")


@dataclass(slots=True)
class Follower:
    """One client of `/event`, and what it makes of the frames.

    `number` is that of the frame whose data comes next; a heartbeat has the number of the frame
    before it. `numbers` counts the frames and `gaps` those that did not follow their neighbour;
    `digest` is of all of them but the server's own; `ages_ms` says how old stamped pieces of text
    were; `tools` are the parts of tool calls that it heard to be completed.
    """

    number: int = 0
    numbers: int = 0
    last: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)
    ages_ms: list[float] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    ended: bool = False

    def take(self, line: bytes) -> None:
        """A line of the stream."""
        if number := _NUMBER.match(line):
            self.number = int(number[1])
        elif line.startswith(b"data: ") and b'"type":"server.heartbeat"' not in line[:80]:
            self._count()
        if line.startswith(b"data: ") and b'"type":"server.' not in line[:80]:
            self.digest.update(line)
            if b"message.part.delta" in line:
                now = time.monotonic_ns()
                self.ages_ms += [(now - int(sent)) / 1e6 for sent in _STAMP.findall(line)]
            elif b'"status":"completed"' in line:
                part = json.loads(line[6:])["properties"].get("part", {})
                if part.get("type") == "tool":
                    self.tools.add(part["id"])

    def _count(self) -> None:
        if self.numbers and self.number != self.last + 1:
            self.gaps.append((self.last, self.number))
        self.numbers += 1
        self.last = self.number

    async def follow(self, reader: asyncio.StreamReader) -> None:
        """Take lines until the server ends the stream."""
        rest = b""
        while content := await asyncio.wait_for(reader.read(1 << 16), WITHIN_S):
            *lines, rest = (rest + content).split(b"\n")
            for line in lines:
                self.take(line.rstrip(b"\r"))
        self.ended = True


@asynccontextmanager
async def following(
    url: str, count: int, headers: Mapping[str, str], *, path: str = "/event?ids=true"
) -> AsyncIterator[tuple[Follower, ...]]:
    """So many clients, each of which has its first frame when the block begins."""
    host, _, port = url.removeprefix("http://").partition(":")
    fields = {"host": f"{host}:{port}", **headers}
    head = f"GET {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items())
    followers = tuple(Follower() for _ in range(count))
    writers, tasks = [], []
    try:
        for follower in followers:
            reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 22)
            writers.append(writer)
            writer.write(f"{head}\r\n".encode())
            await asyncio.wait_for(reader.readuntil(b"server.connected"), WITHIN_S)
            await asyncio.wait_for(reader.readuntil(b"\n"), WITHIN_S)
            tasks.append(asyncio.create_task(follower.follow(reader)))
        yield followers
    finally:
        for writer in writers:
            writer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def caught_up(followers: Sequence[Follower], *, quiet_s: float = 0.5) -> None:
    """Wait until all have heard the same and nothing more comes."""
    end, since, seen = time.monotonic() + WITHIN_S, time.monotonic(), b""
    while time.monotonic() < end:
        await asyncio.sleep(0.05)
        found = b"".join(each.digest.digest() for each in followers)
        if found != seen:
            seen, since = found, time.monotonic()
        elif time.monotonic() - since > quiet_s:
            return
    raise AssertionError("events come without an end")


@dataclass(frozen=True, slots=True)
class Crowd:
    """Sessions on a server, each of which gets one prompt."""

    client: httpx.AsyncClient
    model: str
    text: str = "go"

    async def sessions(self, count: int) -> tuple[str, ...]:
        """The ids of new sessions."""
        made = [await self.client.post("/session", json={}) for _ in range(count)]
        return tuple(each.raise_for_status().json()["id"] for each in made)

    async def prompt(self, session: str) -> dict[str, Any]:
        """A whole turn; the answer's message."""
        answer = await self.client.post(f"/session/{session}/message", json=self._body())
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def begin(self, session: str) -> None:
        """A prompt that is acknowledged and goes on by itself."""
        path = f"/session/{session}/prompt_async"
        (await self.client.post(path, json=self._body())).raise_for_status()

    async def all_at_once(self, sessions: Sequence[str]) -> float:
        """A turn in each; the seconds until the last has ended."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(self.prompt(session))
        return time.monotonic() - began

    def _body(self) -> dict[str, object]:
        model = {"providerID": "fake", "modelID": self.model}
        return {"model": model, "parts": [{"type": "text", "text": self.text}]}


@asynccontextmanager
async def crowd(
    url: str,
    headers: Mapping[str, str],
    *,
    model: str,
    text: str = "go",
    within_s: float = WITHIN_S,
) -> AsyncIterator[Crowd]:
    """A crowd with as many connections as it wants; each answer is due in time."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=within_s, limits=limits
    ) as client:
        yield Crowd(client, model, text)
