"""Servers of a fleet for tests, and clients that hear their events."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fleets import Fleet, until

from plugins.cli.commands import Process
from support.models.model_server import Answer, Pause, text

LIMIT_S = 60.0


@dataclass
class Server:
    """A server of the fleet, and the events that a client of it has heard."""

    process: Process
    url: str
    token: str
    events: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def client(self) -> httpx.AsyncClient:
        """Return a client of it."""
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=LIMIT_S)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of an answer, which must be a success."""
        async with self.client() as client:
            found = await client.request(method, path, json=body)
        assert found.is_success, found.text
        return found.json() if found.content else None

    async def prompt(self, session_id: str, words: str) -> Any:
        """Send a prompt, and return the answer."""
        return await self.ask("POST", f"/session/{session_id}/message", prompt_of(words))

    async def prompt_async(self, session_id: str, words: str) -> None:
        """Send a prompt whose answer comes as events."""
        await self.ask("POST", f"/session/{session_id}/prompt_async", prompt_of(words))

    async def hear(self, after: str | None = None) -> None:
        """Collect the events, until it is cancelled or the server is gone."""
        headers = {} if after is None else {"last-event-id": after}
        with suppress(httpx.HTTPError):
            async with (
                self.client() as client,
                client.stream("GET", "/global/event?ids=true", headers=headers) as found,
            ):
                async for line in found.aiter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        self.ids.append(value)
                    elif name == "data":
                        self.events.append(json.loads(value)["payload"])

    def heard(self, kind: str) -> list[dict[str, Any]]:
        """Return the properties of the events of a kind."""
        return [each["properties"] for each in self.events if each["type"] == kind]


def prompt_of(words: str) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": words}]}


@asynccontextmanager
async def hearing(*servers: Server) -> AsyncIterator[None]:
    """Let a client of each server hear its events."""
    tasks = [asyncio.create_task(each.hear()) for each in servers]
    await until(lambda: all(each.heard("server.connected") for each in servers))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Servers:
    """Servers of one fleet, which have one secret."""

    fleet: Fleet
    secret: Path
    running: list[Process] = field(default_factory=list)

    async def start(self) -> Server:
        """Start a server, and wait until it takes requests."""
        line, log = self.fleet.line, self.secret.with_suffix(f".{len(self.running)}.log")
        with log.open("wb") as out:
            process = await line.start(
                *("serve", "--port", "0", "--fleet", str(self.secret)),
                stdout=out.fileno(),
                stderr=out.fileno(),
            )
        self.running.append(process)
        await until(
            lambda: b"opencode server" in log.read_bytes() or process.returncode is not None
        )
        assert process.returncode is None, log.read_text()
        url = log.read_text().rpartition("listening on ")[2].split()[0]
        facts = json.loads((line.home / f"state/server-{url.rpartition(':')[2]}.json").read_bytes())
        return Server(process, url, facts["token"])

    async def pair(self) -> tuple[Server, Server]:
        """Start two servers that know each other."""
        one, other = await self.start(), await self.start()
        await until(lambda: all(map(self._is_followed, (one, other))))
        return one, other

    def _is_followed(self, server: Server) -> bool:
        """Return whether another server reads the events of this one."""
        number = self.running.index(server.process)
        log = self.secret.with_suffix(f".{1 - number}.log").read_text()
        return f"the server {server.url} is in the fleet" in log

    async def aclose(self) -> None:
        """Kill the servers."""
        for process in self.running:
            if process.returncode is None:
                process.kill()
                await process.wait()


@asynccontextmanager
async def servers_of(fleet: Fleet, folder: Path) -> AsyncIterator[Servers]:
    """Yield a fleet without servers, whose secret is in a folder."""
    (secret := folder / "secret").write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    found = Servers(fleet, secret)
    try:
        yield found
    finally:
        await found.aclose()


async def new_session(server: Server) -> str:
    """Return the id of a new session."""
    made = await server.ask("POST", "/session", {})
    return str(made["id"])


def half_an_answer(_: dict[str, Any]) -> Answer:
    """Begin an answer that does not end."""
    return [*text("half an answer"), Pause()]


async def speaking(one: Server, other: Server) -> str:
    """Return a new session of a server, once a client of the other has heard its answer begin."""
    session_id = await new_session(one)
    await one.prompt_async(session_id, "go")
    await until(lambda: bool(other.heard("message.part.delta")))
    return session_id


def texts_of(turns: list[dict[str, Any]]) -> list[str]:
    """Return the texts of a session's messages."""
    return [
        "".join(part.get("text", "") for part in turn["parts"] if part["type"] == "text")
        for turn in turns
    ]
