"""`pegboard serve --fleet`: clients of any server work with a session that one of them runs."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fleets import Fleet, answer, bash, steps_of, until, waiting_for

from plugins.cli.commands import Process
from support.models.model_server import Answer, ModelServer, Pause, text

pytestmark = pytest.mark.timeout(300)

LIMIT_S = 60.0
ASKS = {"permission": {"*": "allow", "bash": "ask"}}


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
        return await self.ask("POST", f"/session/{session_id}/message", _prompt(words))

    async def prompt_async(self, session_id: str, words: str) -> None:
        """Send a prompt whose answer comes as events."""
        await self.ask("POST", f"/session/{session_id}/prompt_async", _prompt(words))

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


def _prompt(words: str) -> dict[str, Any]:
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


@pytest.fixture
async def servers(fleet: Fleet, tmp_path: Path) -> AsyncIterator[Servers]:
    """Prepare a fleet without servers."""
    (secret := tmp_path / "secret").write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    found = Servers(fleet, secret)
    yield found
    for process in found.running:
        if process.returncode is None:
            process.kill()
            await process.wait()


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


async def test_the_text_of_a_running_answer_comes_through_any_server_and_any_can_stop_it(
    servers: Servers,
) -> None:
    async with ModelServer(half_an_answer) as model:
        await servers.fleet.ready(model)
        one, other = await servers.pair()
        async with hearing(other):
            session_id = await speaking(one, other)
            status = await other.ask("GET", "/session/status")
            listed = await other.ask("GET", f"/session/{session_id}/message")
            at = asyncio.get_running_loop().time()
            stopped = await other.ask("POST", f"/session/{session_id}/abort")
            took_s = asyncio.get_running_loop().time() - at
            await until(lambda: bool(other.heard("session.idle")))
        after = await one.ask("GET", "/session/status")
        ((stored,),) = servers.fleet.rows("SELECT count(*) FROM event WHERE type LIKE '%%delta%%'")

    assert status[session_id] == {"type": "busy"}
    assert texts_of(listed) == ["go", "half an answer"]
    assert "".join(each["delta"] for each in other.heard("message.part.delta")) == "half an answer"
    assert (stopped, after, stored) == (True, {}, 0)
    assert took_s < LIMIT_S
    (error,) = [each["info"]["error"] for each in _ended(other)]
    assert error["name"] == "MessageAbortedError"


def _ended(server: Server) -> list[dict[str, Any]]:
    found = {each["info"]["id"]: each for each in server.heard("message.updated")}
    return [each for each in found.values() if each["info"]["role"] == "assistant"]


async def test_prompts_and_replies_reach_the_server_that_runs_the_session(
    servers: Servers, tmp_path: Path
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return bash(f"env > {tmp_path}/env") if steps_of(body) == 0 else answer("Both are done.")

    async with ModelServer(script) as model:
        await servers.fleet.ready(model, **ASKS)
        one, other = await servers.pair()
        session_id = await new_session(other)
        async with hearing(one, other):
            await one.prompt_async(session_id, "first")
            await until(lambda: bool(other.heard("permission.asked")))
            (request,) = await other.ask("GET", "/permission")
            second = asyncio.create_task(other.prompt(session_id, "second"))
            await until(lambda: "second" in json.dumps(one.events))
            seen, last = len(other.events), other.ids[-1]
            await other.ask("POST", f"/permission/{request['id']}/reply", {"reply": "once"})
            last_turn = await second
            await until(lambda: bool(other.heard("session.idle")))
            rest = await other.ask("GET", "/permission")
            lists = [
                await each.ask("GET", f"/session/{session_id}/message") for each in (one, other)
            ]
        missed = other.events[seen:]
        again = Server(other.process, other.url, other.token)
        resumed = asyncio.create_task(again.hear(last))
        await until(lambda: len(again.events) > len(missed))
        resumed.cancel()
        tables = servers.fleet.rows("SELECT to_jsonb(t)::text FROM fleet_server AS t")

    assert texts_of([last_turn]) == ["Both are done."]
    assert lists[0] == lists[1]
    texts = texts_of(lists[0])
    assert [text.partition("<")[0] for text in texts] == ["first", "", "second", "Both are done."]
    assert rest == []
    kinds = ("session.", "message.", "permission.")
    own = [[e for e in s.events if e["type"].startswith(kinds)] for s in (one, other)]
    assert own[0] == own[1]
    assert again.events[1 : 1 + len(missed)] == missed
    clear = (servers.secret.read_text(), one.token, other.token)
    environment = (tmp_path / "env").read_text()
    assert not [each for each in clear if each in environment or each in str(tables)]


async def test_another_server_goes_on_with_the_session_of_one_that_is_killed(
    servers: Servers, tmp_path: Path
) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"

    def script(body: dict[str, Any]) -> Answer:
        if steps_of(body) == 0:
            return bash(f"echo $$ >> {started}; {waiting_for(gate)}")
        return answer("It goes on.")

    async with ModelServer(script) as model:
        await servers.fleet.ready(model)
        one, other = await servers.pair()
        session_id, quiet = await new_session(one), await new_session(one)
        async with hearing(other):
            await one.prompt_async(quiet, "go on alone")
            await one.prompt_async(session_id, "first")
            await until(lambda: started.exists() and len(started.read_text().split()) == 2)
            second = asyncio.create_task(other.prompt(session_id, "second"))
            await until(lambda: "second" in json.dumps(other.events))
            one.process.kill()
            await one.process.wait()
            last_turn = await second
            await until(lambda: "It goes on." in json.dumps(other.heard("message.part.updated")))
            await until(lambda: not _busy(other))
        gate.touch()
        turns = await other.ask("GET", f"/session/{session_id}/message")
        left = await other.ask("GET", f"/session/{quiet}/message")
        ((owned,),) = servers.fleet.rows("SELECT count(*) FROM session WHERE owner IS NOT NULL")

    calls = [p["state"] for t in (*turns, *left) for p in t["parts"] if p["type"] == "tool"]
    assert texts_of([last_turn]) == ["It goes on."]
    assert texts_of(turns).count("second") == 1
    assert texts_of(turns)[-1] == texts_of(left)[-1] == "It goes on."
    assert len(started.read_text().split()) == 2  # no call was made twice
    assert [each["status"] for each in calls] == ["error", "error"]
    assert all("interrupted" in each["error"] for each in calls)
    assert owned == 0


def _busy(server: Server) -> list[str]:
    """Return the sessions that a client of the server has last heard of as running."""
    last = {each["sessionID"]: each["status"]["type"] for each in server.heard("session.status")}
    return [id_ for id_, status in last.items() if status != "idle"]


async def test_a_server_that_does_not_answer_is_named_and_what_is_stored_can_be_read(
    servers: Servers,
) -> None:
    async with ModelServer(half_an_answer) as model:
        await servers.fleet.ready(model)
        one, other = await servers.pair()
        async with hearing(other):
            session_id = await speaking(one, other)
        servers.fleet.rows("UPDATE fleet_server SET url = 'http://127.0.0.1:1', host = 'away'")
        async with other.client() as client:
            path = f"/session/{session_id}/message"
            refused = await client.post(path, json=_prompt("more"))
            read = await client.get(path)

    assert refused.status_code == 503
    assert "the server http://127.0.0.1:1 on away, which does not answer" in refused.text
    assert "send the request again" in refused.text
    assert texts_of(read.json())[0] == "go"


async def test_a_secret_that_others_can_read_or_guess_is_refused(servers: Servers) -> None:
    line, secret = servers.fleet.line, servers.secret
    words = ("serve", "--port", "0", "--fleet", str(secret))
    secret.chmod(0o640)
    open_ = await line(*words)
    secret.write_text("short")
    secret.chmod(0o600)
    short = await line(*words)
    secret.unlink()
    absent = await line(*words)
    secret.write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    early = await line(*words)
    del line.env["PEGBOARD_DATABASE"]
    alone = await line(*words)

    assert f"chmod 600 {secret}" in open_.err
    assert "shorter than 32 characters" in short.err
    assert "openssl rand" in absent.err
    assert "`pegboard fleet init`" in early.err
    assert "PEGBOARD_DATABASE" in alone.err
    assert {each.code for each in (open_, short, absent, early, alone)}.isdisjoint({0})
