"""`pegboard serve --fleet`: clients of any server work with a session that one of them runs."""

import asyncio
import json
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_servers import (
    LIMIT_S,
    Server,
    Servers,
    half_an_answer,
    hearing,
    new_session,
    prompt_of,
    speaking,
    texts_of,
)
from fleets import answer, bash, steps_of, until, waiting_for

from support.models.model_server import Answer, ModelServer

pytestmark = pytest.mark.timeout(300)

_OWNED = "SELECT count(*) FROM session WHERE owner IS NOT NULL"
ASKS = {"permission": {"*": "allow", "bash": "ask"}}


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


def waiting_once(gate: Path, started: Path) -> Callable[[dict[str, Any]], Answer]:
    """Return a script: a command that waits for the gate, and an answer after it."""

    def script(body: dict[str, Any]) -> Answer:
        if steps_of(body) == 0:
            return bash(f"echo $$ >> {started}; {waiting_for(gate)}")
        return answer("It goes on.")

    return script


async def test_another_server_goes_on_with_the_session_of_one_that_is_killed(
    servers: Servers, tmp_path: Path
) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"

    async with ModelServer(waiting_once(gate, started)) as model:
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
        ((owned,),) = servers.fleet.rows(_OWNED)

    calls = [p["state"] for t in (*turns, *left) for p in t["parts"] if p["type"] == "tool"]
    assert texts_of([last_turn]) == ["It goes on."]
    assert texts_of(turns).count("second") == 1
    assert texts_of(turns)[-1] == texts_of(left)[-1] == "It goes on."
    assert len(started.read_text().split()) == 2  # no call was made twice
    assert [each["status"] for each in calls] == ["error", "error"]
    assert all("interrupted" in each["error"] for each in calls)
    assert owned == 0


async def test_a_server_that_is_stopped_and_wakes_up_ends_its_tools_and_leaves_its_session(
    servers: Servers, tmp_path: Path
) -> None:
    started, beside, gate = (tmp_path / each for each in ("started", "beside", "gate"))
    calls = (
        bash(f"echo $$ > {beside}; sleep 600", background=True),
        bash(f"until [ -s {beside} ]; do sleep 0.05; done; echo $$ >> {started}; sleep 600"),
        bash(waiting_for(gate)),
    )

    def script(body: dict[str, Any]) -> Answer:
        step = steps_of(body)
        return calls[step] if step < len(calls) else answer("It goes on.")

    async with ModelServer(script) as model:
        await servers.fleet.ready(model)
        one, other = await servers.pair()
        session_id = await new_session(one)
        async with hearing(one, other):
            await one.prompt_async(session_id, "first")
            await until(lambda: started.exists() and bool(started.read_text()))
            tools = [Path("/proc", file.read_text().split()[0]) for file in (started, beside)]
            were_there = all(tool.exists() for tool in tools)
            one.process.send_signal(signal.SIGSTOP)
            await until(lambda: str(gate) in json.dumps(other.events))  # it goes on there
            one.process.send_signal(signal.SIGCONT)
            await until(
                lambda: not any(t.exists() for t in tools) and bool(one.heard("session.error"))
            )
            status = await one.ask("GET", "/session/status")
            gate.touch()
            await servers.fleet.becomes(0, _OWNED)  # the other server has come to the turn's end
            turns = await other.ask("GET", f"/session/{session_id}/message")
            same = await one.ask("GET", f"/session/{session_id}/message")
            last_turn = await one.prompt(session_id, "second")
            await until(lambda: not _busy(one))
        ((owned,),) = servers.fleet.rows(_OWNED)

    _, cut, done = [p["state"] for t in turns for p in t["parts"] if p["type"] == "tool"]
    assert were_there
    assert "interrupted" in cut["error"]
    assert done["status"] == "completed"
    assert texts_of(turns)[-1] == texts_of([last_turn])[0] == "It goes on."
    assert status == {session_id: {"type": "busy"}}
    assert same == turns
    assert len(started.read_text().split()) == 1  # no call was made twice
    (error,) = [each["error"] for each in one.heard("session.error")]
    assert "goes on in another process" in error["data"]["message"]
    assert other.heard("session.error") == []
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
            refused = await client.post(path, json=prompt_of("more"))
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
