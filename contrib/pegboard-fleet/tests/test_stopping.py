"""`pegboard fleet stop` and `resume`: jobs end, go on and are repeated on any machine."""

from pathlib import Path

import pytest
from batches import Jobs
from fleets import Fleet, answer, facts_of, napping, numbered, until, waiting_for

from support.models.model_server import ModelServer

pytestmark = pytest.mark.timeout(300)


async def test_a_job_is_stopped_from_elsewhere_and_goes_on_in_its_session(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    (facts := tmp_path / "facts").touch()
    async with ModelServer(napping(facts, 3, waiting_for(gate := tmp_path / "gate"))) as server:
        await fleet.ready(server)
        await fleet.submit(jobs(*numbered(3)))
        worker = await fleet.work(concurrency=2)
        await until(lambda: len({each.job for each in facts_of(facts)}) == 2)
        unknown = await fleet.line("fleet", "stop", "b", "job-009")
        stopped = await fleet.line("fleet", "stop", "b", "job-000")
        await until(lambda: {each.job for each in facts_of(facts)} >= {"job-001", "job-002"})
        rest = await fleet.line("fleet", "stop", "b")
        await fleet.becomes(0, "SELECT count(*) FROM session WHERE owner IS NOT NULL")
        waited = await fleet.line("fleet", "wait", "b")
        begun = len(facts_of(facts))
        (batch,) = (await fleet.status())["batches"]
        gate.touch()
        resumed = await fleet.line("fleet", "resume", "b")
        results = await fleet.ended(3)
        sessions = fleet.rows("SELECT count(*) FROM session")

    assert worker.returncode is None
    assert (unknown.code, waited.code) == (2, 130)
    assert (stopped.out, rest.out) == ("stopped 1 attempts of b\n", "stopped 2 attempts of b\n")
    assert resumed.out == "3 attempts of b wait for a worker\n"
    assert (begun, batch["open"], batch["stopped"]) == (3, 3, 3)
    assert [each["answer"] for each in results] == [f"job-{n:03} is done." for n in range(3)]
    assert sessions == [(3,)]


async def test_a_job_whose_session_another_process_takes_waits_for_it(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    (facts := tmp_path / "facts").touch()
    gate, ready = tmp_path / "gate", tmp_path / "ready"
    job = {**numbered(1)[0], "setup": f"echo >> {tmp_path / 'begun'}; {waiting_for(ready)}"}
    ready.touch()
    async with ModelServer(napping(facts, 1, waiting_for(gate))) as server:
        await fleet.ready(server)
        await fleet.submit(jobs(job))
        await fleet.work(1)
        await until(lambda: bool(facts_of(facts)))
        await fleet.line("fleet", "stop", "b")
        await fleet.becomes(0, "SELECT count(*) FROM session WHERE owner IS NOT NULL")
        ready.unlink()
        await fleet.line("fleet", "resume", "b")
        await until(lambda: len((tmp_path / "begun").read_text()) == 2)
        fleet.rows("INSERT INTO worker VALUES('awake', DEFAULT, 'h', 1, DEFAULT, 'infinity')")
        fleet.rows("UPDATE session SET owner = 'awake'")
        gate.touch()
        ready.touch()
        log = fleet.line.home / "worker-0.log"
        await until(lambda: "waits for another process" in log.read_text())
        fleet.rows("DELETE FROM worker WHERE id = 'awake'")
        (result,) = await fleet.ended(1)

    assert (result["status"], result["answer"]) == ("done", "job-000 is done.")


async def test_jobs_that_the_machine_or_the_budget_ended_are_repeated(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    async with ModelServer(lambda _: answer("Done.")) as server:
        await fleet.ready(server)
        poor = {"id": "poor", "prompt": "go"}
        ill = {"id": "ill", "prompt": "go", "setup": f"test -e {ready}"}
        await fleet.submit(jobs(poor, ill), "--budget-usd", "0.0001")
        await fleet.work()
        before = await fleet.ended(2)
        ready.touch()
        low = await fleet.line("fleet", "resume", "b", "--retry", "done")
        words = ("--budget-usd", "1", "--retry", "error_infra")
        resumed = await fleet.line("fleet", "resume", "b", *words)
        after = await fleet.ended(2)
        spent = await fleet.line("fleet", "resume", "b", "--budget-usd", "0.0001")

    assert [each["status"] for each in before] == ["stopped_budget", "error_infra"]
    assert (low.code, spent.code) == (2, 2)
    assert resumed.out == "2 attempts of b wait for a worker\n"
    assert [each["status"] for each in after] == ["done", "done"]
    assert not {each["session_id"] for each in before} & {each["session_id"] for each in after}
