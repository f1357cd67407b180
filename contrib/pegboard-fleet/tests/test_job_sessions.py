"""`pegboard fleet worker --secret`: clients of a server work with the sessions of jobs."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from batches import Jobs, words_of
from fleet_servers import Server, Servers, half_an_answer, hearing, texts_of
from fleets import Fleet, answer, bash, steps_of, until, waiting_for

from support.models.model_server import Answer, ModelServer

pytestmark = pytest.mark.timeout(300)


async def started(servers: Servers, jobs: Jobs, *words: str, model: ModelServer) -> Server:
    """Start a worker with one job, and return a server that knows the worker."""
    fleet = servers.fleet
    await fleet.ready(model, permission={"*": "allow", "bash": "ask"})
    await fleet.submit(jobs({"id": "one", "prompt": "go"}), *words)
    server = await servers.start()
    await fleet.work(1, "--secret", str(servers.secret))
    await until(lambda: b"is in the fleet" in servers.secret.with_suffix(".0.log").read_bytes())
    return server


def session_of(fleet: Fleet) -> str:
    """Return the id of the job's session."""
    ((session_id,),) = fleet.rows("SELECT id FROM session")
    return str(session_id)


async def test_a_client_of_a_server_hears_and_stops_the_session_of_a_job(
    servers: Servers, jobs: Jobs
) -> None:
    async with ModelServer(half_an_answer) as model:
        server = await started(servers, jobs, model=model)
        heard = asyncio.create_task(server.hear())
        await until(lambda: bool(server.heard("message.part.delta")))
        session_id = session_of(servers.fleet)
        statuses = await server.ask("GET", "/session/status")
        listed = await server.ask("GET", f"/session/{session_id}/message")
        stopped = await server.ask("POST", f"/session/{session_id}/abort")
        (result,) = await servers.fleet.ended(1)
        heard.cancel()

    assert statuses == {session_id: {"type": "busy"}}
    assert texts_of(listed) == ["go", "half an answer"]
    assert "".join(e["delta"] for e in server.heard("message.part.delta")) == "half an answer"
    assert stopped is True
    assert (result["status"], result["session_id"]) == ("failed", session_id)


async def test_a_client_of_a_server_prompts_and_replies_in_the_session_of_a_job(
    servers: Servers, jobs: Jobs
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return bash("echo ran") if steps_of(body) == 0 else answer("Both are done.")

    async with ModelServer(script) as model:
        server = await started(servers, jobs, "--ask", model=model)
        async with hearing(server):
            (request,) = await waiting_requests(server)
            second = asyncio.create_task(server.prompt(session_of(servers.fleet), "second"))
            await until(lambda: "second" in json.dumps(server.events))
            await server.ask("POST", f"/permission/{request['id']}/reply", {"reply": "once"})
            turn = await second
            (result,) = await servers.fleet.ended(1)
        rest = await server.ask("GET", "/permission")

    assert texts_of([turn]) == [result["answer"]] == ["Both are done."]
    assert (result["status"], rest) == ("done", [])


async def waiting_requests(server: Server) -> list[dict[str, Any]]:
    """Return the permission requests that wait, once there are some."""
    while not (found := await server.ask("GET", "/permission")):  # noqa: ASYNC110 - elsewhere
        await asyncio.sleep(0.05)
    return list(found)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_another_worker_goes_on_and_not_the_server_and_the_prompt_gets_its_answer(
    servers: Servers, jobs: Jobs, tmp_path: Path, how: signal.Signals
) -> None:
    gate, began = tmp_path / "gate", tmp_path / "began"

    def script(body: dict[str, Any]) -> Answer:
        if "was lost" not in words_of(body):
            return bash(f"echo $$ >> {began}; {waiting_for(gate)}")
        return answer("It goes on.")

    async with ModelServer(script) as model:
        server = await started(servers, jobs, "--auto", model=model)
        await until(began.exists)
        session_id = session_of(servers.fleet)
        async with hearing(server):
            await server.prompt_async(session_id, "second")
            await servers.fleet.work(1, "--secret", str(servers.secret))
            servers.fleet.workers[0].send_signal(how)
            (result,) = await servers.fleet.ended(1)
            await until(lambda: "It goes on." in json.dumps(server.events))
        gate.touch()
        if how == signal.SIGSTOP:
            servers.fleet.workers[0].send_signal(signal.SIGCONT)
        ((messages,),) = servers.fleet.rows("SELECT count(*) FROM message")

    assert (result["status"], result["answer"]) == ("done", "It goes on.")
    assert messages == len(("go", "the cut answer", "second", "was lost", "It goes on."))
    assert len(began.read_text().split()) == 1  # no call was made twice
    assert "going on with" not in servers.secret.with_suffix(".0.log").read_text()
