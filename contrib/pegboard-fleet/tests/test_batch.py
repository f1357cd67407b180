"""`pegboard batch`: jobs side by side, one budget, results, and the way on after a kill."""

import asyncio
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from batches import OK, Jobs, has_lines, results_of, words_of, worker

from plugins.cli.commands import CommandLine, finished
from support.models.model_server import (
    Answer,
    ModelServer,
    Pause,
    call,
    failure,
    say,
    step_of,
    text,
)
from support.models.written import until
from support.tools.worktrees import git


async def test_each_job_works_in_its_own_copy_and_has_a_result(
    line: CommandLine, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    file = jobs(
        {"id": "good", "prompt": "go", "repo": str(repository), "check": "grep -q apple made.txt"},
        {"id": "bad", "prompt": "go", "repo": str(repository), "check": "echo no; exit 3"},
        {"id": "bare", "template": "go to $place", "vars": {"place": "town"}, "setup": "touch x"},
        {"id": "ill", "prompt": "go", "setup": "echo broken; exit 4", "meta": {"n": 1}},
    )
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        done = await line("batch", "run", file, "--out", str(tmp_path / "out"), "--repeat", "2")
        asked = Counter("town" in words_of(body) for body in server.requests)

    found = {(each["id"], each["attempt"]): each for each in results_of(tmp_path / "out")}
    assert (done.code, len(found)) == (4, 8)
    assert {key: each["status"] for key, each in found.items()} == {
        **{("good", n): "done" for n in (1, 2)},
        **{("bad", n): "failed" for n in (1, 2)},
        **{("bare", n): "done" for n in (1, 2)},
        **{("ill", n): "error_infra" for n in (1, 2)},
    }
    good, ill = found["good", 1], found["ill", 2]
    assert (good["answer"], good["steps"], good["model"]) == ("Written.", 2, "fake/model")
    assert "+apple" in good["patch"]
    assert found["bad", 1]["check"] == {"exit": 3, "output_tail": "no\n"}
    assert "setup ended with 4" in ill["error"]
    assert "broken" in ill["error"]
    assert ill["meta"] == {"n": 1}
    assert asked == {True: 4, False: 8}
    assert (repository / "a.txt").read_text() == "pear\n"
    assert not (repository / "made.txt").exists()
    assert git(repository, "status", "--short") == ""
    assert "8 of 8: 4 done, 2 error_infra, 2 failed" in done.err


async def test_a_batch_has_rules_of_its_own(line: CommandLine, jobs: Jobs, tmp_path: Path) -> None:
    def tidying(body: dict[str, Any]) -> Answer:
        step = step_of(body)
        if step == 0:
            return worker(body)
        if step == 1:
            return call("bash", {"command": "rm made.txt", "description": "Tidy"})
        return say("Done.")

    file = jobs({"id": "one", "prompt": "go", "check": "cat made.txt"})
    rules = ("--allow", "edit, bash(ls)", "--deny", "Bash(rm *)")
    async with ModelServer(tidying) as server:
        line.use_model(server.url, **{**OK, "permission": {"edit": "ask"}})
        done = await line("batch", "run", file, "--out", str(tmp_path / "out"), *rules)
        wrong = await line("batch", "run", file, "--out", str(tmp_path / "no"), "--deny", "(")

    (found,) = results_of(tmp_path / "out")
    assert (done.code, found["status"], found["check"]["output_tail"]) == (0, "done", "apple\n")
    assert "write a rule as" in wrong.err
    assert not (tmp_path / "no" / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("check", "ended"),
    [
        ("seq 200000; echo out; echo err >&2; echo last; exit 3", (3, "200000\nout\nerr\nlast\n")),
        ("sleep 600 & echo first; exit 5", (5, "first\n")),
        ("echo 'never ends", (2, "unexpected EOF while looking for matching `''\n")),
        ("kill -9 $$", (-9, "")),
    ],
)
async def test_a_check_may_print_much_and_its_last_lines_are_in_the_result(
    line: CommandLine, jobs: Jobs, tmp_path: Path, check: str, ended: tuple[int, str]
) -> None:
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        file = jobs({"id": "one", "prompt": "go", "check": check})
        await line("batch", "run", file, "--out", str(tmp_path / "out"))

    (result,) = results_of(tmp_path / "out")
    code, tail = ended
    assert (result["status"], result["check"]["exit"]) == ("failed", code)
    assert result["check"]["output_tail"].endswith(tail)


async def test_predictions_are_what_an_evaluation_takes(
    line: CommandLine, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    file = jobs({"id": "one", "prompt": "go", "repo": str(repository)})
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        await line("batch", "run", file, "--out", str(tmp_path / "out"))
    done = await line("batch", "results", str(tmp_path / "out"), "--format", "preds")

    assert done.out.strip() == str(tmp_path / "out" / "preds.json")
    (pred,) = json.loads((tmp_path / "out" / "preds.json").read_text()).values()
    assert (pred["instance_id"], pred["model_name_or_path"]) == ("one", "fake/model")
    (patch := tmp_path / "patch").write_text(pred["model_patch"])
    git(repository, "apply", str(patch))
    assert (repository / "made.txt").read_text() == "apple\n"


@pytest.mark.parametrize("kills", [3])
async def test_a_batch_that_is_killed_goes_on_and_begins_no_call_twice(
    line: CommandLine, jobs: Jobs, tmp_path: Path, kills: int
) -> None:
    (begun := tmp_path / "begun.txt").touch()
    ids = [f"job{n}" for n in range(12)]

    def script(body: dict[str, Any]) -> Answer:
        job = next(each for each in reversed(ids) if f'"{each}' in words_of(body).replace("\\", ""))
        step = step_of(body)
        if step < 2:
            command = f"echo {job} {step} >> {begun}; sleep 0.2"
            return call("bash", {"command": command, "description": "Note"})
        return say(f"{job} is done.")

    file = jobs(*({"id": each, "prompt": f'"{each}"'} for each in ids))
    out = tmp_path / "out"
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        words: tuple[str, ...] = ("batch", "run", file, "--out", str(out), "--concurrency", "4")
        for n in range(kills):
            process = await line.start(*words)
            await until(partial(has_lines, begun, 5 * n + 1))
            process.kill()
            await finished(process)
            words = ("batch", "resume", str(out))
        done = await line(*words)
        again = await line(*words)

    found = results_of(out)
    assert (done.code, again.code) == (0, 0)
    assert [each["id"] for each in found] == ids
    assert [each["answer"] for each in found] == [f"{each} is done." for each in ids]
    calls = Counter(begun.read_text().splitlines())
    assert max(calls.values()) == 1


async def test_the_budget_is_held_before_each_request_and_can_be_raised(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    bill: list[float] = []

    def script(body: dict[str, Any]) -> Answer:
        bill.append((10 * 1_000 + 5 * 2_000) / 1e6)  # what `use_model` and the usage come to
        return say("Yes.")

    file = jobs(*({"id": f"job{n}", "prompt": "go"} for n in range(6)))
    out = str(tmp_path / "out")
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        options = ("--budget-usd", "13", "--concurrency", "6")
        done = await line("batch", "run", file, "--out", out, *options)
        first = sum(bill)
        shown = await line("batch", "status", out, "--format", "json")
        low = await line("batch", "resume", out, "--budget-usd", "0.001")
        more = await line("batch", "resume", out, "--budget-usd", "500")

    status = json.loads(shown.out)
    assert done.code in (0, 3)
    assert first <= 13
    assert status["paid_usd"] == pytest.approx(first)
    assert status["held_usd"] == 0
    assert (low.code, "are spent already" in low.err) == (2, True)
    assert (more.code, len(bill)) == (0, 6)


async def test_a_model_without_a_price_has_no_budget(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    file, out = jobs({"id": "one", "prompt": "go"}), tmp_path / "out"
    async with ModelServer(worker) as server:
        options = {"baseURL": server.url, "apiKey": "key"}
        line.configure(model="fake/dear", provider={"fake": {"options": options}}, **OK)
        done = await line("batch", "run", file, "--out", str(out), "--budget-usd", "1")

    (result,) = results_of(out)
    assert (done.code, result["status"], server.requests) == (3, "stopped_budget", [])
    assert "the price of fake/dear is not known" in result["error"]


async def test_a_stopped_batch_says_so_and_goes_on(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    asked = asyncio.Event()
    stopped = False

    def script(body: dict[str, Any]) -> Answer:
        asked.set()
        return say("At last.") if stopped else [*text("half"), Pause()]

    file, out = jobs({"id": "one", "prompt": "go"}), str(tmp_path / "out")
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        process = await line.start("batch", "run", file, "--out", out)
        await asyncio.wait_for(asked.wait(), 30)
        running = await line("batch", "status", out)
        second = await line("batch", "resume", out)
        await line("batch", "stop", out)
        first = await finished(process)
        stopped = True
        resting = await line("batch", "status", out)
        nothing = await line("batch", "stop", out)
        done = await line("batch", "resume", out)

    assert first.code == 130
    assert f"pegboard batch resume {out}" in first.err
    assert ("it runs" in running.out, "it rests" in resting.out) == (True, True)
    assert (second.code, "runs" in second.err) == (2, True)
    assert (nothing.code, "no batch runs" in nothing.err) == (2, True)
    assert (done.code, results_of(tmp_path / "out")[0]["answer"]) == (0, "At last.")


async def test_a_throttled_attempt_is_made_again_and_not_counted_as_the_models_failure(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    refused = 0

    def script(body: dict[str, Any]) -> Answer:
        nonlocal refused
        refused += 1
        return failure(429) if refused == 1 else say("Yes.")

    file = jobs({"id": "one", "prompt": "go"})
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        done = await line("batch", "run", file, "--out", str(tmp_path / "out"), "--pause", "0.1")

    (result,) = results_of(tmp_path / "out")
    assert (done.code, result["status"], refused) == (0, "done", 2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": "a"}', "line 1: job 'a': give either prompt, or template"),
        (
            '{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}',
            "line 2: job 'a' is there twice",
        ),
        ('{"id": "a/b", "prompt": "x"}', "the id is 1 to 128 letters"),
        ('{"id": "a", "prompt": "x", "chek": "y"}', "line 1: not a job: Object contains unknown"),
        ('{"id": "a", "template": "$who"}', "the template's $who is not in vars"),
        ("[]", "line 1: not a job"),
        ("", "has no job; a line is"),
    ],
)
async def test_a_line_that_is_no_job_is_named_before_anything_runs(
    line: CommandLine, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "jobs.jsonl").write_text(content)
    done = await line("batch", "run", str(tmp_path / "jobs.jsonl"), "--out", str(tmp_path / "out"))

    assert done.code == 2
    assert says in done.err
    assert not (tmp_path / "out" / "journal.jsonl").exists()


async def test_a_folder_has_one_batch(line: CommandLine, jobs: Jobs, tmp_path: Path) -> None:
    file, out = jobs({"id": "one", "prompt": "go"}), str(tmp_path / "out")
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        await line("batch", "run", file, "--out", out)
        again = await line("batch", "run", file, "--out", out)
    missing = await line("batch", "resume", str(tmp_path / "nowhere"))

    assert (again.code, f"batch resume {out}" in again.err) == (2, True)
    assert (missing.code, "has no batch" in missing.err) == (2, True)
