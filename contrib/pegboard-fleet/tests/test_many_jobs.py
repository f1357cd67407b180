"""Many jobs at once, killed at random moments: each result once, no call twice, no dollar more.

`PEGBOARD_SEED=N` chooses the moments. Run it with: `pytest -m long contrib/pegboard-fleet`.
"""

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import OK, Jobs, has_lines, results_of, words_of

from plugins.cli.commands import CommandLine, Process
from support.models.model_server import Answer, ModelServer, finish, step_of, text, tool_call, usage

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

JOBS, KILLS = 200, 3
PRICE_IN, PRICE_OUT = 2.0, 8.0
"""US dollars for a million tokens."""
READ, WROTE = 900, 400
REQUEST_USD = (READ * PRICE_IN + WROTE * PRICE_OUT) / 1e6
MODEL = {
    "limit": {"context": 100_000, "output": 500},
    "cost": {"input": PRICE_IN, "output": PRICE_OUT},
}


def two_calls(begun: Path) -> Callable[[dict[str, Any]], Answer]:
    """Return the script of a model that calls bash twice, each call noting its begin."""

    def script(body: dict[str, Any]) -> Answer:
        found = re.search(r"job-\d{3}", words_of(body))
        assert found is not None
        step = step_of(body)
        if step < 2:
            command = f"echo {found[0]} {step} >> {begun}; sleep 0.1"
            call = tool_call("bash", {"command": command, "description": "Note"})
            return [*call, *finish("tool_calls", usage=usage(READ, WROTE))]
        return [*text(f"{found[0]} is done."), *finish("stop", usage=usage(READ, WROTE))]

    return script


async def ended(process: Process, limit_s: float = 600) -> int:
    """Return the exit code of a command, whose output is read meanwhile."""
    async with asyncio.timeout(limit_s):
        await process.communicate()
    assert process.returncode is not None
    return process.returncode


async def killed(line: CommandLine, words: tuple[str, ...], begun: Path, lines: int) -> None:
    """Run a command, and kill it once so many calls have begun."""
    process = await line.start(*words)
    reading = asyncio.create_task(ended(process))
    async with asyncio.timeout(300):
        while not has_lines(begun, lines):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    process.kill()
    assert await reading == -9


async def test_killed_batches_have_each_result_once_and_no_call_twice(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    chance = random.Random(int(os.environ.get("PEGBOARD_SEED", "1")))
    (begun := tmp_path / "begun.txt").touch()
    ids = [f"job-{n:03}" for n in range(JOBS)]
    file = jobs(*({"id": each, "prompt": f"Do {each}."} for each in ids))
    out = tmp_path / "out"
    async with ModelServer(two_calls(begun)) as server:
        options = {"baseURL": server.url, "apiKey": "key"}
        provider = {"fake": {"options": options, "models": {"model": MODEL}}}
        line.configure(model="fake/model", provider=provider, **OK)
        words: tuple[str, ...] = ("batch", "run", file, "--out", str(out), "--concurrency", "20")
        for lines in sorted(chance.sample(range(20, 2 * JOBS - 60), KILLS)):
            await killed(line, words, begun, lines)
            words = ("batch", "resume", str(out))
        code = await ended(await line.start(*words))
        status = await line("batch", "status", str(out), "--format", "json")
        bill = len(server.requests) * REQUEST_USD

    results = results_of(out)
    assert code == 0
    assert [each["id"] for each in results] == ids
    assert [each["answer"] for each in results] == [f"{each} is done." for each in ids]
    assert max(Counter(begun.read_text().splitlines()).values()) == 1
    # What a kill cut off is held, since its cost is not known; all else is paid to the cent.
    money = json.loads(status.out)
    cost = sum(each["cost_usd"] for each in results)
    assert cost <= money["paid_usd"] + 1e-9
    assert money["paid_usd"] <= bill + 1e-9
    assert bill <= money["paid_usd"] + money["held_usd"] + 1e-9
    cut = round((bill - money["paid_usd"]) / REQUEST_USD)
    assert 0 <= cut <= 20 * KILLS
    assert money["paid_usd"] == pytest.approx((len(server.requests) - cut) * REQUEST_USD)


async def test_a_whole_batch_costs_what_the_provider_bills(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    (begun := tmp_path / "begun.txt").touch()
    file = jobs(*({"id": f"job-{n:03}", "prompt": f"Do job-{n:03}."} for n in range(40)))
    out = tmp_path / "out"
    async with ModelServer(two_calls(begun)) as server:
        options = {"baseURL": server.url, "apiKey": "key"}
        provider = {"fake": {"options": options, "models": {"model": MODEL}}}
        line.configure(model="fake/model", provider=provider, **OK)
        words = ("batch", "run", file, "--out", str(out), "--concurrency", "20")
        code = await ended(await line.start(*words))
        bill = len(server.requests) * REQUEST_USD

    assert code == 0
    assert sum(each["cost_usd"] for each in results_of(out)) == pytest.approx(bill)
    assert bill == pytest.approx(40 * 3 * REQUEST_USD)


async def test_no_kill_makes_a_batch_cost_more_than_its_budget(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    (begun := tmp_path / "begun.txt").touch()
    file = jobs(*({"id": f"job-{n:03}", "prompt": f"Do job-{n:03}."} for n in range(100)))
    out = tmp_path / "out"
    async with ModelServer(two_calls(begun)) as server:
        options = {"baseURL": server.url, "apiKey": "key"}
        provider = {"fake": {"options": options, "models": {"model": MODEL}}}
        line.configure(model="fake/model", provider=provider, **OK)
        words: tuple[str, ...] = ("batch", "run", file, "--out", str(out))
        words += ("--concurrency", "4", "--budget-usd", "1.00")
        for lines in (20, 60):
            await killed(line, words, begun, lines)
            words = ("batch", "resume", str(out))
        code = await ended(await line.start(*words))
        status = await line("batch", "status", str(out), "--format", "json")
        bill = len(server.requests) * REQUEST_USD

    money = json.loads(status.out)
    assert code == 3
    assert 0.8 < bill <= 1.0
    assert bill <= money["paid_usd"] + money["held_usd"] <= 1.0
