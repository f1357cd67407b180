"""Rounds in which a busy worker of a fleet is killed, or stopped for longer than its lease.

`python contrib/pegboard-fleet/tests/killing.py --workers 4 --jobs 24 --rounds 20 [--stop]` prints a
line for each round, and ends with 1 when one of them shows a problem or nothing was taken over.
"""

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    for _folder in (
        "tests",
        "contrib/pegboard-fleet/tests",
        "contrib/pegboard-postgres/tests",
        "contrib/pegboard-fleet",
    ):
        sys.path.insert(0, str(ROOT / _folder))

from batches import words_of  # noqa: E402 - found by the path above
from fleets import JOB, Fact, Fleet, facts_of, fleet_of, napping, numbered, until  # noqa: E402
from installed import command_line  # noqa: E402
from postgres_server import postgres_server  # noqa: E402

from support.models.model_server import Answer, ModelServer  # noqa: E402

STEPS, NAP_S = 6, 0.4
STOPPED_S = 9.0
GOES_ON_S = 5.0
_MOVED = "The machine that you worked on was lost"


@dataclass(frozen=True, kw_only=True)
class Round:
    """The course of a round."""

    how: signal.Signals
    workers: int
    jobs: int
    concurrency: int


@dataclass
class Found:
    """The findings of a round.

    `seen_s` is when another worker saw that the victim was gone, and `after_s` are the seconds
    after which each of its sessions had the model's attention again.
    """

    seen_s: float = 0.0
    taken_over: int = 0
    after_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)


class _Model:
    """The model of a round, which notes when a session goes on and which results it has read."""

    def __init__(self, facts: Path) -> None:
        self._script = napping(facts, STEPS, f"sleep {NAP_S}")
        self.moved: dict[str, float] = {}
        self.acknowledged: set[str] = set()

    def __call__(self, body: dict[str, Any]) -> Answer:
        found = JOB.search(words := words_of(body))
        if found and _MOVED in words:
            self.moved.setdefault(found[0], time.time())
        self.acknowledged.update(
            message["tool_call_id"]
            for message in body["messages"]
            if message["role"] == "tool" and "interrupted" not in str(message["content"])
        )
        return self._script(body)


async def play(fleet: Fleet, order: Round) -> Found:
    """Play a round, and return what it has shown."""
    (facts := fleet.line.home / "facts").touch()
    model = _Model(facts)
    rows = numbered(order.jobs)
    file = fleet.line.home / "jobs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    async with ModelServer(model) as server:
        await fleet.ready(server)
        workers = [await fleet.work(order.concurrency) for _ in range(order.workers)]
        owners = [fleet.owner_of(each) for each in workers]
        await fleet.submit(str(file))
        # A worker whose tools work has something to lose.
        await until(lambda: len(facts_of(facts)) > order.jobs and _busiest(facts, owners) >= 0)
        place = max(_busiest(facts, owners), 0)
        victim, owner, at = workers[place], owners[place], time.time()
        victim.send_signal(order.how)
        state = "SELECT state FROM fleet_worker WHERE owner = %s"
        await until(lambda: fleet.rows(state, owner) == [("lost",)])
        seen_s = time.time() - at
        if order.how == signal.SIGSTOP:
            await asyncio.sleep(STOPPED_S - seen_s)
            victim.send_signal(signal.SIGCONT)
        results = await fleet.ended(order.jobs)
        code = await fleet.exit_code(victim)
    found = Found(
        seen_s=seen_s,
        taken_over=len(model.moved),
        after_s=[each - at for each in model.moved.values()],
        acknowledged=len(model.acknowledged),
    )
    found.problems = [
        *_result_problems(results),
        *_row_problems(fleet, model.acknowledged),
        *_tool_problems(facts_of(facts), owner, at),
    ]
    if order.how == signal.SIGSTOP and code != 75:
        found.problems.append(f"the woken worker ended with {code}")
    if order.how == signal.SIGKILL:
        found.problems += _cut_problems(fleet, facts_of(facts), owner)
    return found


def _busiest(facts: Path, owners: list[str]) -> int:
    """Return the place of the worker with most open calls, -1 when there are none."""
    calls = [len(_open(facts, owner)) for owner in owners]
    return calls.index(max(calls)) if any(calls) else -1


def _open(facts: Path, owner: str) -> set[tuple[str, int]]:
    """Return the calls of a worker that have begun and not ended."""
    mine = [each for each in facts_of(facts) if owner in each.folder]
    ended = {(each.job, each.step) for each in mine if each.what == "end"}
    return {(each.job, each.step) for each in mine} - ended


def _result_problems(results: list[dict[str, Any]]) -> list[str]:
    return [
        f"{each['id']} ended as {each['status']}: {each.get('error', '')}"
        for each in results
        if each.get("answer") != f"{each['id']} is done."
    ]


def _row_problems(fleet: Fleet, acknowledged: set[str]) -> list[str]:
    parts = [json.loads(data) for (data,) in fleet.rows("SELECT data FROM part")]
    known = {each["callID"] for each in parts if each.get("state", {}).get("status") == "completed"}
    ((owned,),) = fleet.rows("SELECT count(*) FROM session WHERE owner IS NOT NULL")
    ((unfinished,),) = fleet.rows("SELECT count(*) FROM part WHERE state IS NOT NULL")
    ((schema,),) = fleet.rows("SELECT current_schema()")
    statuses = fleet.rows(f"SELECT DISTINCT status FROM {schema}_dbos_keeper.workflow_status")
    problems = [f"{each} is lost" for each in acknowledged - known]
    if owned or unfinished:
        problems.append(f"{owned} sessions have an owner, {unfinished} parts are unfinished")
    if bad := {each for (each,) in statuses} - {"SUCCESS", "PENDING"}:
        problems.append(f"workflows are {bad}")
    return problems


def _tool_problems(facts: list[Fact], owner: str, at: float) -> list[str]:
    starts = Counter((each.job, each.step) for each in facts if each.what == "start")
    late = [
        each
        for each in facts
        if owner in each.folder and each.what == "start" and each.at > at + STOPPED_S / 2
    ]
    twice = [f"{key} was started {number} times" for key, number in starts.items() if number > 1]
    return [*twice, *(f"the worker that was gone has started {each}" for each in late)]


def _cut_problems(fleet: Fleet, facts: list[Fact], owner: str) -> list[str]:
    ended = {(each.job, each.step) for each in facts if each.what == "end"}
    cut = [each for each in facts if (each.job, each.step) not in ended]
    parts = [json.loads(data) for (data,) in fleet.rows("SELECT data FROM part")]
    failed = [each for each in parts if each.get("state", {}).get("status") == "error"]
    interrupted = sum("interrupted" in each["state"]["error"] for each in failed)
    others = [f"{each} did not end" for each in cut if owner not in each.folder]
    # A call that was about to begin is interrupted too, and has noted nothing.
    few = [f"{interrupted} calls are interrupted, of {cut}"] if interrupted < len(cut) else []
    return [*others, *few]


async def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--stop", action="store_true", help="SIGSTOP for 9 s instead of SIGKILL")
    wanted = parser.parse_args()
    order = Round(
        how=signal.SIGSTOP if wanted.stop else signal.SIGKILL,
        workers=wanted.workers,
        jobs=wanted.jobs,
        concurrency=wanted.concurrency,
    )
    after: list[float] = []
    bad = 0
    with postgres_server() as server:
        for number in range(wanted.rounds):
            with tempfile.TemporaryDirectory(prefix="pegboard-fleet-") as folder:
                async with fleet_of(command_line(Path(folder)), server.new_url()) as fleet:
                    found = await play(fleet, order)
            after += found.after_s
            bad += bool(found.problems) or not found.taken_over
            sys.stdout.write(f"{number + 1}: {found}\n")
            sys.stdout.flush()
    if len(after) > 1:
        p95 = statistics.quantiles(after, n=20)[-1]
        sys.stdout.write(f"{bad} bad rounds; {len(after)} sessions, p95 {p95:.2f} s\n")
        bad += p95 > GOES_ON_S
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
