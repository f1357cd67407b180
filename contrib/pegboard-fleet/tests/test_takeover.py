# ruff: noqa: ASYNC110 - what is waited for happens in other processes
"""The guarantees of a fleet whose workers are killed or stopped, or whose database restarts."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from batches import Jobs
from fleets import REQUEST_USD, Fleet, answer, bash, facts_of, fleet_of, napping, numbered, until
from killing import Round, play
from pegboard_fleet.fleet.command import LOST
from pegboard_postgres import open_postgres
from postgres_server import PostgresServer, server_for_tests

from pegboard.ids import IdSource
from plugins.cli.commands import CommandLine, Done, Process, finished
from support.models.model_server import ModelServer


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)]
)
@pytest.mark.timeout(300)
async def test_sessions_of_a_worker_that_is_gone_go_on_elsewhere(
    fleet: Fleet, how: signal.Signals
) -> None:
    found = await play(fleet, Round(how=how, workers=2, jobs=3, concurrency=3))

    assert found.problems == []
    assert found.after_s


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.timeout(600)
async def test_sessions_of_one_of_four_workers_go_on_elsewhere(
    fleet: Fleet, how: signal.Signals
) -> None:
    found = await play(fleet, Round(how=how, workers=4, jobs=16, concurrency=6))

    assert found.problems == []
    assert found.after_s


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Start a server that a test may stop."""
    yield from server_for_tests()


@pytest.fixture
async def own_fleet(line: CommandLine, own_server: PostgresServer) -> AsyncIterator[Fleet]:
    """Prepare a fleet on that server."""
    async with fleet_of(line, own_server.new_url()) as found:
        yield found


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_crash_of_the_database_takes_no_living_worker_over(
    own_fleet: Fleet, own_server: PostgresServer, jobs: Jobs, tmp_path: Path
) -> None:
    fleet = own_fleet
    (facts := tmp_path / "facts").touch()
    async with ModelServer(napping(facts, 4, "sleep 0.3")) as server:
        await fleet.ready(server)
        await fleet.submit(jobs(*numbered(8)))
        await asyncio.gather(*(fleet.work(4) for _ in range(2)))
        await until(lambda: any(each.step == 1 for each in facts_of(facts)))
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        await asyncio.to_thread(own_server.start)
        results = await fleet.ended(8)
        states = [each["state"] for each in (await fleet.status())["workers"]]

    starts = [(each.job, each.step) for each in facts_of(facts) if each.what == "start"]
    assert [each["status"] for each in results] == ["done"] * 8
    assert states == ["working"] * 2
    assert sorted(starts) == [(f"job-{n:03}", step) for n in range(8) for step in range(4)]


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_four_workers_spend_no_more_than_the_budget_also_when_one_is_killed(
    fleet: Fleet, jobs: Jobs
) -> None:
    async with ModelServer(lambda _: answer("Done.")) as server:
        await fleet.ready(server)
        rows = ({"id": f"job-{n:03}", "prompt": "job"} for n in range(60))
        await fleet.submit(jobs(*rows), "--budget-usd", "0.20")
        victim, *_ = await asyncio.gather(*(fleet.work(3) for _ in range(4)))
        await until(lambda: len(server.requests) > 5)
        victim.kill()
        results = await fleet.ended(60)
        bill = len(server.requests) * REQUEST_USD

    ((spent, held),) = fleet.rows("SELECT spent_usd::float8, held_usd::float8 FROM fleet_batch")
    assert {each["status"] for each in results} == {"done", "stopped_budget"}
    assert 0.1 < bill <= 0.2
    assert bill <= spent + held + 1e-9
    assert spent + held <= 0.2 + 1e-9


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_worker_ends_whose_database_stays_away(
    own_fleet: Fleet, own_server: PostgresServer, jobs: Jobs, tmp_path: Path
) -> None:
    fleet = own_fleet
    (facts := tmp_path / "facts").touch()
    async with ModelServer(napping(facts, 4, "sleep 0.3")) as server:
        await fleet.ready(server)
        await fleet.submit(jobs(*numbered(2)))
        worker = await fleet.work(2)
        await until(lambda: any(each.step == 1 for each in facts_of(facts)))
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        code = await fleet.exit_code(worker)
        await asyncio.to_thread(own_server.start)
        await fleet.work(2)
        results = await fleet.ended(2)

    assert code == 1
    assert [each["status"] for each in results] == ["done"] * 2


STOPPING = """
import os, signal
from pegboard import hookimpl
from pegboard.unstable import ToolProcesses

class StoppedProcesses(ToolProcesses):
    async def run(self, argv, **facts):
        try:
            file = open({place!r}, "x")
        except FileExistsError:
            pass
        else:
            file.close()
            os.kill(os.getpid(), signal.SIGSTOP)
        return await super().run(argv, **facts)

@hookimpl
async def register_processes():
    return StoppedProcesses
"""


def stop_at_first_call(fleet: Fleet) -> Path:
    """Let the first process with a call stop right before the call's own process starts.

    Return the file that exists from then on.
    """
    place = fleet.line.home / "stopped"
    folder = fleet.line.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "stopping.py").write_text(STOPPING.format(place=str(place)))
    return place


@pytest.mark.timeout(300)
async def test_a_worker_that_is_stopped_before_a_start_starts_nothing_when_it_wakes_up(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    (facts := tmp_path / "facts").touch()
    stopped = stop_at_first_call(fleet)
    async with ModelServer(napping(facts, 2, "true")) as server:
        await fleet.ready(server)
        await fleet.submit(jobs(*numbered(1)))
        victim = await fleet.work(1)
        owner = fleet.owner_of(victim)
        await until(stopped.exists)
        await fleet.work(1)
        (result,) = await fleet.ended(1)
        victim.send_signal(signal.SIGCONT)
        code = await fleet.exit_code(victim)

    starts = [each for each in facts_of(facts) if each.what == "start"]
    assert (result["status"], code) == ("done", LOST)
    assert [each for each in starts if owner in each.folder] == []
    assert starts


@pytest.mark.timeout(300)
async def test_a_run_that_is_stopped_before_a_start_starts_nothing_when_it_wakes_up(
    fleet: Fleet, tmp_path: Path
) -> None:
    started, stopped = tmp_path / "started", stop_at_first_call(fleet)
    async with ModelServer(lambda _: bash(f"touch {started}; sleep 600")) as server:
        await fleet.ready(server)
        process = await fleet.line.start("run", "go")
        await until(stopped.exists)
        ended = await taken_over(fleet, process)

    assert not started.exists()
    assert ended.code == 1
    assert ended.err.count("goes on in another process") == 1


async def taken_over(fleet: Fleet, process: Process) -> Done:
    """Take the session of a stopped run, wake the run up, and return its end."""
    storage = await open_postgres(fleet.url, ids=IdSource())
    ((session_id,),) = fleet.rows("SELECT id FROM session")
    while await storage.is_claimed_elsewhere(session_id):  # the test has a time limit
        await asyncio.sleep(0.05)
    fence = await storage.claim(session_id)
    process.send_signal(signal.SIGCONT)
    ended = await finished(process)
    await storage.release(fence)
    await storage.aclose()
    return ended


@pytest.mark.timeout(300)
async def test_a_run_that_is_stopped_and_wakes_up_ends_its_tools_and_its_turn(
    fleet: Fleet, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    async with ModelServer(lambda _: bash(f"echo $$ >> {started}; sleep 600")) as server:
        await fleet.ready(server)
        process = await fleet.line.start("run", "go")
        await until(lambda: started.exists() and bool(started.read_text()))
        process.send_signal(signal.SIGSTOP)
        ended = await taken_over(fleet, process)
        await until(lambda: not Path("/proc", started.read_text().strip()).exists())

    assert ended.code == 1
    assert ended.err.count("goes on in another process") == 1
