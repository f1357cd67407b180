"""`pegboard fleet`: jobs that workers take from one database, and how they are watched."""

import asyncio
import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from batches import Jobs, words_of
from fleets import (
    REQUEST_USD,
    Fleet,
    answer,
    bash,
    facts_of,
    napping,
    steps_of,
    until,
    waiting_for,
)
from pegboard_fleet import webpages
from pegboard_fleet.fleet.database import FleetDatabase
from postgres_server import PostgresServer

from pegboard_plugins import web
from support.models.model_server import Answer, ModelServer
from support.models.played import Played, opened
from support.tools.worktrees import git

pytestmark = pytest.mark.timeout(300)


def writer(body: dict[str, Any]) -> Answer:
    """Write a file, then say so."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return answer("Written.")
    return bash("echo apple > made.txt")


async def test_workers_run_the_jobs_of_a_batch_and_its_results_are_those_of_a_batch(
    fleet: Fleet, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    file = jobs(
        {"id": "good", "prompt": "go", "repo": str(repository), "check": "grep -q apple made.txt"},
        {"id": "bad", "prompt": "go", "repo": str(repository), "check": "echo no; exit 3"},
        {"id": "bare", "prompt": "go", "setup": "touch x"},
        {"id": "ill", "prompt": "go", "setup": "exit 4"},
    )
    async with ModelServer(writer) as server:
        await fleet.ready(server)
        await fleet.submit(file)
        await fleet.submit(file)  # once more: each job is there already
        await fleet.work()
        await fleet.ended(4)
        waited = await fleet.line("fleet", "wait", "b")
        bill = len(server.requests) * REQUEST_USD
    done = await fleet.line("fleet", "results", "b", "--out", str(tmp_path / "out"))
    shown = await fleet.line("fleet", "status")
    (worker,), (batch,) = (await fleet.status()).values()

    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    results = {each["id"]: each for each in map(json.loads, lines)}
    assert {id_: each["status"] for id_, each in results.items()} == {
        "good": "done",
        "bad": "failed",
        "bare": "done",
        "ill": "error_infra",
    }
    assert (waited.code, done.out.strip()) == (4, str(tmp_path / "out" / "results.jsonl"))
    assert "4 of 4: 2 done, 1 error_infra, 1 failed" in waited.err
    assert "+apple" in results["good"]["patch"]
    assert git(repository, "status", "--short") == ""
    assert (worker["state"], worker["running"], worker["concurrency"]) == ("working", 0, 4)
    assert (batch["attempts"], batch["open"], batch["held_usd"]) == (4, 0, 0)
    assert batch["paid_usd"] == pytest.approx(bill)
    assert worker["id"] in shown.out
    assert "2 done" in shown.out
    assert fleet.refs() == []
    assert not list((tmp_path / "work").rglob("made.txt"))


async def test_the_web_view_has_the_workers_and_the_batches_of_a_fleet(
    fleet: Fleet, jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(writer) as server:
        await fleet.ready(server)
        await fleet.submit(jobs({"id": "one", "prompt": "go"}))
        await fleet.work()
        await fleet.ended(1)

    async with opened(tmp_path, Played(), web, webpages) as app:
        monkeypatch.setenv("PEGBOARD_DATABASE", fleet.url)
        found = [each.value for each in await app.hooks.collect(web.web_pages)]
        (page,) = [each for each in found if each.name == "fleet"]
        workers, batch = await page.draw(app)
        fleet.rows("UPDATE meta SET value = '0' WHERE key = 'fleet_version'")
        (refused,) = await page.draw(app)

    assert workers.title == "Workers"
    assert workers.table[1][1:5] == ("default", "working", "0", "4")
    assert batch.title.startswith("b (pool default): 1 of 1 attempts have ended · 1 done")
    assert batch.table[1][:3] == ("one", "1", "done")
    assert "run `pegboard fleet init`" in refused.markdown


async def test_the_queue_has_the_names_of_jobs_and_nothing_else(fleet: Fleet, jobs: Jobs) -> None:
    async with ModelServer(writer) as server:
        await fleet.ready(server)
        await fleet.submit(jobs({"id": "one", "prompt": "a secret"}))
        await fleet.work()
        await fleet.ended(1)

        ((schema,),) = fleet.rows("SELECT current_schema() || '_dbos_keeper'")
        status = f"SELECT status FROM {schema}.workflow_status"
        await until(lambda: fleet.rows(status) == [("SUCCESS",)])
        tables = fleet.rows("SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)
        read = "SELECT to_jsonb(t)::text FROM {}.{} AS t"
        every = [fleet.rows(read.format(schema, name)) for (name,) in tables]

    stored = "".join(row for rows in every for (row,) in rows)
    assert "b/one/1" in stored
    assert "secret" not in stored


async def test_no_tool_reads_a_secret_in_the_environment_of_its_worker(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    (password := tmp_path / "pgpass").write_text("*:*:*:*:hidden-word\n")
    password.chmod(0o600)
    fleet.line.env["PEGBOARD_DATABASE"] += f"&passfile={password}"
    # The tool finds its worker among the processes that have started it.
    look = (
        f"env > {seen}; p=$PPID; while [ $p -gt 1 ] && ! grep -qz worker /proc/$p/cmdline; do "
        "p=$(sed -n 's/PPid:.//p' /proc/$p/status); done; "
        f"tr '\\0' '\\n' < /proc/$p/environ >> {seen}; echo of $p >> {seen}"
    )
    (tmp_path / "look.sh").write_text(look)

    def script(body: dict[str, Any]) -> Answer:
        return answer("Read.") if steps_of(body) else bash(f"bash {tmp_path}/look.sh")

    async with ModelServer(script) as model:
        await fleet.ready(model)
        await fleet.submit(jobs({"id": "one", "prompt": "go"}), "--auto")
        worker = await fleet.work()
        (result,) = await fleet.ended(1)
    environment = seen.read_text()

    assert result["status"] == "done"
    assert f"of {worker.pid}" in environment
    assert "hidden-word" not in environment
    assert "key" not in [line.partition("=")[2] for line in environment.splitlines()]


async def test_a_fleet_says_what_is_missing_and_how_it_is_made(
    fleet: Fleet, server: PostgresServer, tmp_path: Path
) -> None:
    remote = ("--remote", str(fleet.remote))
    early = await fleet.line("fleet", "worker", *remote)
    before = await fleet.line("fleet", "doctor", *remote)
    made = await fleet.line("fleet", "init")
    again = await fleet.line("fleet", "init")
    after = await fleet.line("fleet", "doctor", *remote)
    absent = await fleet.line("fleet", "doctor", "--remote", str(tmp_path / "absent.git"))
    schema = server.new_schema()
    fleet.line.env["PEGBOARD_DATABASE"] = f"{server.url('postgres', schema)}&password=x"
    secret = await fleet.line("fleet", "status")
    del fleet.line.env["PEGBOARD_DATABASE"]
    unset = await fleet.line("fleet", "status")

    assert (early.code, before.code) == (1, 1)
    assert "`pegboard fleet init`" in early.err
    assert "`pegboard fleet init`" in before.out
    assert (made.code, again.code, made.out) == (0, 0, "the fleet of keeper is ready\n")
    assert (after.code, after.out) == (0, "the fleet is ready\n"), after.out
    assert absent.code == 1
    assert "git init --bare" in absent.out
    assert (secret.code, unset.code) == (3, 3)
    assert "passfile" in secret.err
    assert "passfile" in unset.err


async def test_the_doctor_names_settings_that_lose_what_was_acknowledged(
    fleet: Fleet, server: PostgresServer, jobs: Jobs
) -> None:
    async with ModelServer(writer) as model:
        await fleet.ready(model)
        await fleet.submit(jobs({"id": "one", "prompt": "go"}), "--pool", "gpu")
    fleet.line.env["PEGBOARD_DATABASE"] += "%20-csynchronous_commit%3Doff"
    ill = await fleet.line("fleet", "doctor", "--remote", str(fleet.remote))

    assert ill.code == 1
    assert "synchronous_commit is off" in ill.out
    assert "1 jobs wait in the pool gpu" in ill.out


async def test_a_drained_worker_ends_with_what_it_runs_and_takes_no_more(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    (facts := tmp_path / "facts").touch()
    async with ModelServer(napping(facts, 2, waiting_for(gate := tmp_path / "gate"))) as server:
        await fleet.ready(server)
        await fleet.submit(
            jobs(*({"id": f"job-{n:03}", "prompt": f"job-{n:03}"} for n in range(4)))
        )
        first = await fleet.work(concurrency=2)
        await until(lambda: len({each.job for each in facts_of(facts)}) == 2)
        drained = await fleet.line("fleet", "drain", fleet.owner_of(first))
        log = tmp_path / "worker-0.log"
        await until(lambda: "draining" in log.read_text())
        gate.touch()
        unknown = await fleet.line("fleet", "drain", "nobody")
        code = await fleet.exit_code(first)
        begun = {each.job for each in facts_of(facts)}
        states = {each["id"]: each["state"] for each in (await fleet.status())["workers"]}
        await fleet.work(concurrency=2)
        results = await fleet.ended(4)

    assert (drained.code, unknown.code, code) == (0, 2, 0)
    assert list(states.values()) == ["ended"]
    assert len(begun) < 4
    assert [each["answer"] for each in results] == [f"job-{n:03} is done." for n in range(4)]
    starts = [(each.job, each.step) for each in facts_of(facts) if each.what == "start"]
    assert sorted(starts) == [(f"job-{n:03}", step) for n in range(4) for step in range(2)]


async def test_others_go_on_with_what_a_stopped_worker_leaves(
    fleet: Fleet, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    (facts := tmp_path / "facts").touch()
    async with ModelServer(napping(facts, 3, waiting_for(gate := tmp_path / "gate"))) as server:
        await fleet.ready(server)
        row = {"id": "job-000", "prompt": "job-000", "repo": str(repository)}
        await fleet.submit(jobs(row))
        first = await fleet.work()
        await until(lambda: bool(facts_of(facts)))
        first.send_signal(signal.SIGTERM)
        code = await fleet.exit_code(first)
        gate.touch()
        await fleet.work()
        (result,) = await fleet.ended(1)

    found = facts_of(facts)
    assert (code, result["status"], result["answer"]) == (0, "done", "job-000 is done.")
    assert [(each.what, each.step) for each in found[:2]] == [("start", 0), ("start", 1)]
    assert "a/0.txt" not in result["patch"]
    assert "a/1.txt" in result["patch"]
    assert len({each.folder for each in found}) == 2


async def test_a_job_that_never_comes_further_is_parked(fleet: Fleet, jobs: Jobs) -> None:
    async with ModelServer(writer) as server:
        await fleet.ready(server)
        await fleet.submit(jobs({"id": "one", "prompt": "go"}))
        fleet.rows("UPDATE fleet_job SET begun = '{0,0,0}'")
        await fleet.work()
        (result,) = await fleet.ended(1)

    assert result["status"] == "parked"
    assert server.requests == []


async def test_workers_hold_one_budget(fleet: Fleet, jobs: Jobs) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return answer("Done.") if "job" in words_of(body) else answer("?")

    async with ModelServer(script) as server:
        await fleet.ready(server)
        rows = ({"id": f"job-{n:03}", "prompt": "job"} for n in range(12))
        await fleet.submit(jobs(*rows), "--budget-usd", "0.05")
        await asyncio.gather(fleet.work(), fleet.work())
        results = await fleet.ended(12)
        waited = await fleet.line("fleet", "wait", "b")
        bill = len(server.requests) * REQUEST_USD

    ((spent, held),) = fleet.rows("SELECT spent_usd::float8, held_usd::float8 FROM fleet_batch")
    assert {each["status"] for each in results} == {"done", "stopped_budget"}
    assert waited.code == 3
    assert bill <= 0.05
    assert (spent, held) == (pytest.approx(bill), 0)


async def test_tenants_have_fleets_of_their_own(
    fleet: Fleet, server: PostgresServer, jobs: Jobs
) -> None:
    ((schema,),) = fleet.rows("SELECT current_schema()")
    mine, others = (f"{name}_{schema}" for name in ("acme", "globex"))
    async with ModelServer(writer) as model:
        await fleet.ready(model)
        for role in (mine, others):
            server.sql(f"CREATE ROLE {role} LOGIN")
            server.sql(
                f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE "
                f"ON ALL TABLES IN SCHEMA {schema} TO {role}",
                database="pegboard",
            )
            done = await fleet.line("fleet", "init", "--role", role)
            assert done.out == f"the fleet of {role} is ready\n", done.err
        fleet.line.env["PEGBOARD_DATABASE"] = server.url(mine, schema)
        await fleet.submit(jobs({"id": "one", "prompt": "go"}))
        await fleet.work()
        waited = await fleet.exit_code(await fleet.line.start("fleet", "wait", "b"))
        own = await fleet.status()
        well = await fleet.line("fleet", "doctor", "--remote", str(fleet.remote))
        fleet.line.env["PEGBOARD_DATABASE"] = server.url(others, schema)
        foreign = await fleet.status()

    assert (waited, well.out) == (0, "the fleet is ready\n")
    assert (len(own["workers"]), len(own["batches"])) == (1, 1)
    assert foreign == {"workers": [], "batches": []}


async def test_the_options_of_a_fleet_are_in_the_configuration_of_the_user(
    fleet: Fleet, jobs: Jobs, tmp_path: Path
) -> None:
    (file := tmp_path / "database.url").write_text(fleet.line.env.pop("PEGBOARD_DATABASE") + "\n")
    options = {"database_file": str(file), "pool": "gpu", "remote": str(fleet.remote)}
    async with ModelServer(writer) as server:
        await fleet.ready(server, plugins={"fleet": {"options": options}})
        await fleet.submit(jobs({"id": "one", "prompt": "go"}))
        (waiting,) = (await fleet.status())["batches"]
        worker = await fleet.line.start("fleet", "worker")
        fleet.workers.append(worker)
        (result,) = await fleet.ended(1)
        well = await fleet.line("fleet", "doctor")
    fleet.line.configure(plugins={"fleet": {"options": {"pol": "gpu"}}})
    misspelt = await fleet.line("fleet", "status")

    assert (waiting["pool"], result["status"]) == ("gpu", "done")
    assert well.code == 0, well.out
    assert misspelt.code == 3
    assert "`pol`" in misspelt.err


async def test_one_worker_sweeps_at_a_time_and_one_that_rests_loses_its_turn(
    fleet: Fleet,
) -> None:
    async with FleetDatabase(fleet.url) as one, FleetDatabase(fleet.url) as two:
        with suppress(psycopg.Error):  # its transaction is gone
            async with one.alone("gpu") as lock:
                assert lock is not None
                await lock.renew()
                async with two.alone("gpu") as second, two.alone("cpu") as other:
                    assert second is None
                    assert other is not None
                async with asyncio.timeout(60):
                    while second is None:
                        async with two.alone("gpu") as second:
                            await asyncio.sleep(0.1)
                with pytest.raises(psycopg.Error):
                    await lock.renew()


async def test_tables_of_an_earlier_version_are_brought_up_to_date_with_their_rows(
    fleet: Fleet, jobs: Jobs
) -> None:
    await fleet.line("fleet", "init")
    submitted = await fleet.line(
        "fleet", "submit", jobs({"id": "a", "prompt": "Eat."}), "--batch", "fruit"
    )
    async with FleetDatabase(fleet.url) as database:
        await database.run("DROP TABLE fleet_server")
        await database.run("ALTER TABLE fleet_job DROP COLUMN delivery")
        await database.run("UPDATE meta SET value = '1' WHERE key = 'fleet_version'")
    early = await fleet.line("fleet", "status")
    brought = await fleet.line("fleet", "init")
    after = await fleet.line("fleet", "status")

    assert submitted.code == 0, submitted.err
    assert early.code == 1
    assert "`pegboard fleet init`" in early.err
    assert brought.code == 0, brought.err
    assert "fruit" in after.out
