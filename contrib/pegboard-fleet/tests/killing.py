# ruff: noqa: ASYNC110 - the calls of other processes are in a file
"""Rounds in which a busy worker of a fleet is killed, or stopped for longer than its lease.

`python contrib/pegboard-fleet/tests/killing.py --workers 4 --jobs 48 --rounds 20 [--stop]` prints a
line for each round. It exits with 1 when a round has a problem or no session was taken over, or
when 5 % of the sessions waited for longer than 5 seconds.
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
from fleets import JOB, LIMIT_S, Fact, Fleet, facts_of, fleet_of, napping, numbered  # noqa: E402
from installed import command_line  # noqa: E402
from pegboard_fleet.fleet.command import LOST  # noqa: E402
from postgres_server import PostgresServer, postgres_server  # noqa: E402

from support.models.model_server import Answer, ModelServer  # noqa: E402

STEPS, NAP_S = 6, 0.4
STOPPED_S = 9.0
GOES_ON_S = 5.0
_HAD = "SELECT id FROM fleet_job WHERE owner = %s AND state = 'running'"
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

    `seen_s` is when another worker saw that the victim was gone. `after_s` are the seconds after
    which the model was asked again for each session that the victim had. `lost` and `twice` count
    acknowledged calls without a result and calls that were started twice.
    """

    seen_s: float = 0.0
    after_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        after = " ".join(f"{each:.1f}" for each in sorted(self.after_s))
        return (
            f"seen after {self.seen_s:.1f} s, {len(self.after_s)} sessions go on after {after} s, "
            f"{self.acknowledged} acknowledged, {self.lost} lost, {self.twice} twice"
            + "".join(f"\n  {each}" for each in self.problems)
        )


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
        place = await _place_of_victim(facts, owners, least=order.jobs)
        victim, owner, at = workers[place], owners[place], time.time()
        victim.send_signal(order.how)
        had = {id_ for (id_,) in fleet.rows(_HAD, owner)}
        await fleet.becomes("lost", "SELECT state FROM fleet_worker WHERE owner = %s", owner)
        seen_s = time.time() - at
        if order.how == signal.SIGSTOP:
            await asyncio.sleep(STOPPED_S - seen_s)
            victim.send_signal(signal.SIGCONT)
        results = await fleet.ended(order.jobs)
        code = await fleet.exit_code(victim)
    noted = facts_of(facts)
    found = Found(
        seen_s=seen_s,
        after_s=[when - at for job, when in model.moved.items() if job in had],
        acknowledged=len(model.acknowledged),
        lost=len(model.acknowledged - _ended(fleet)),
        twice=sum(number > 1 for number in _starts(noted).values()),
    )
    found.problems = [
        *_result_problems(results),
        *_row_problems(fleet),
        *_owner_problems(fleet, owner),
        *(f"{job} moved, which the victim had not" for job in sorted(model.moved.keys() - had)),
        *(
            f"{key} was started {number} times"
            for key, number in _starts(noted).items()
            if number > 1
        ),
        *_late_problems(noted, owner, at),
    ]
    if found.lost:
        found.problems.append(f"{found.lost} acknowledged calls are lost")
    if order.how == signal.SIGSTOP and code != LOST:
        found.problems.append(f"the woken worker ended with {code}")
    if order.how == signal.SIGKILL:
        found.problems += _cut_problems(fleet, noted, owner)
    return found


async def _place_of_victim(facts: Path, owners: list[str], *, least: int) -> int:
    """Wait until the tools have noted more than `least` facts, and return the busiest worker."""
    async with asyncio.timeout(LIMIT_S):
        while len(facts_of(facts)) <= least or (place := _busiest(facts, owners)) is None:
            await asyncio.sleep(0.02)
    return place


def _busiest(facts: Path, owners: list[str]) -> int | None:
    """Return the place of the worker with most open calls, None when no call is open."""
    calls = [len(_open(facts, owner)) for owner in owners]
    return calls.index(max(calls)) if any(calls) else None


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


def _ended(fleet: Fleet) -> set[str]:
    """Return the ids of the calls that have ended by themselves, or were ended by their worker."""
    parts = [json.loads(data) for (data,) in fleet.rows("SELECT data FROM part")]
    states = {each["callID"]: each["state"] for each in parts if "state" in each}
    return {
        call_id
        for call_id, state in states.items()
        if state["status"] == "completed"
        or (state["status"] == "error" and "interrupted" not in state["error"])
    }


def _starts(facts: list[Fact]) -> Counter[tuple[str, int]]:
    """Return how often each call was started."""
    return Counter((each.job, each.step) for each in facts if each.what == "start")


def _owner_problems(fleet: Fleet, victim: str) -> list[str]:
    """Return the living workers that were taken for dead."""
    rows = fleet.rows("SELECT owner, state FROM fleet_worker WHERE owner <> %s", victim)
    return [f"the living worker {owner} is {state}" for owner, state in rows if state != "working"]


def _row_problems(fleet: Fleet) -> list[str]:
    ((owned,),) = fleet.rows("SELECT count(*) FROM session WHERE owner IS NOT NULL")
    ((unfinished,),) = fleet.rows("SELECT count(*) FROM part WHERE state IS NOT NULL")
    ((schema,),) = fleet.rows("SELECT current_schema()")
    statuses = fleet.rows(f"SELECT DISTINCT status FROM {schema}_dbos_keeper.workflow_status")
    problems = []
    if owned or unfinished:
        problems.append(f"{owned} sessions have an owner, {unfinished} parts are unfinished")
    if bad := {each for (each,) in statuses} - {"SUCCESS", "PENDING"}:
        problems.append(f"workflows are {bad}")
    return problems


def _late_problems(facts: list[Fact], owner: str, at: float) -> list[str]:
    """Return the calls that a worker started after it woke up.

    What it had started before may begin late: a tool's process is not stopped with the worker.
    """
    starts = [each for each in facts if owner in each.folder and each.what == "start"]
    late = [each for each in starts if each.at > at + STOPPED_S]
    return [
        f"{each.at - at:.1f} s after it was gone, the worker has started {each}" for each in late
    ]


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


async def _played(server: PostgresServer, order: Round) -> Found:
    """Play a round with a fleet of its own; a round that does not end is a problem."""
    # The tools of a worker that was killed may write while its folder is removed.
    with tempfile.TemporaryDirectory("", "pegboard-fleet-", ignore_cleanup_errors=True) as folder:
        async with fleet_of(command_line(Path(folder)), server.new_url()) as fleet:
            try:
                return await play(fleet, order)
            except (TimeoutError, AssertionError) as error:
                return Found(problems=[f"{type(error).__name__}: {error}"])


async def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--concurrency", type=int, help="default: the others have room for all")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--stop", action="store_true", help="SIGSTOP for 9 s instead of SIGKILL")
    wanted = parser.parse_args()
    order = Round(
        how=signal.SIGSTOP if wanted.stop else signal.SIGKILL,
        workers=wanted.workers,
        jobs=wanted.jobs,
        concurrency=wanted.concurrency or -(-wanted.jobs // (wanted.workers - 1)),
    )
    rounds: list[Found] = []
    with postgres_server() as server:
        for number in range(wanted.rounds):
            rounds.append(await _played(server, order))
            sys.stdout.write(f"{number + 1}: {rounds[-1]}\n")
            sys.stdout.flush()
    after = [each for found in rounds for each in found.after_s]
    bad = sum(bool(found.problems) or not found.after_s for found in rounds)
    lost, twice = sum(each.lost for each in rounds), sum(each.twice for each in rounds)
    p95 = statistics.quantiles(after, n=20, method="inclusive")[-1] if len(after) > 1 else 0.0
    sys.stdout.write(
        f"{bad} bad rounds of {len(rounds)}; {len(after)} sessions, {lost} calls lost, "
        f"{twice} started twice, p95 {p95:.2f} s\n"
    )
    return 1 if bad or p95 > GOES_ON_S else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
