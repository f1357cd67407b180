# ruff: noqa: ASYNC110 - what is waited for happens in other processes
"""A fleet for tests: a database of PostgreSQL, a bare repository, and worker processes."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from batches import OK, words_of

from plugins.cli.commands import CommandLine, Process
from support.models.model_server import Answer, ModelServer, finish, text, tool_call, usage
from support.tools.worktrees import git

LIMIT_S = 120.0
PRICE_IN, PRICE_OUT = 2.0, 8.0
"""US dollars for a million tokens."""
READ, WROTE = 900, 400
REQUEST_USD = (READ * PRICE_IN + WROTE * PRICE_OUT) / 1e6
MODEL = {
    "limit": {"context": 100_000, "output": 500},
    "cost": {"input": PRICE_IN, "output": PRICE_OUT},
}
JOB = re.compile(r"job-\d{3}")


async def until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.02)


def numbered(number: int) -> list[dict[str, Any]]:
    """Return so many jobs, whose prompts are their ids."""
    return [{"id": f"job-{n:03}", "prompt": f"job-{n:03}"} for n in range(number)]


def waiting_for(gate: Path) -> str:
    """Return the command that waits until a file exists."""
    return f"until [ -e {gate} ]; do sleep 0.05; done"


def steps_of(body: dict[str, Any]) -> int:
    """Return how many answers of the model a request has."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def answer(content: str) -> Answer:
    """Return an answer that ends the turn."""
    return [*text(content), *finish("stop", usage=usage(READ, WROTE))]


def bash(command: str, **more: object) -> Answer:
    """Return a call of bash, with an id of its own."""
    arguments = {"command": command, "description": "Note", **more}
    made = tool_call("bash", arguments, call_id=f"call_{secrets.token_hex(8)}")
    return [*made, *finish("tool_calls", usage=usage(READ, WROTE))]


def napping(facts: Path, steps: int, nap: str) -> Callable[[dict[str, Any]], Answer]:
    """Return the script of a model that has each step note its begin and its end in a file.

    A step writes a file, and takes as long as the command `nap`.
    """

    def script(body: dict[str, Any]) -> Answer:
        found = JOB.search(words_of(body))
        assert found is not None
        step = steps_of(body)
        if step >= steps:
            return answer(f"{found[0]} is done.")
        note = f'echo {{}} {found[0]} {step} "$(date +%s.%N)" "$PWD" >> {facts}'
        words = (note.format("start"), nap, f"touch {step}.txt", note.format("end"))
        return bash("; ".join(words))

    return script


@dataclass(frozen=True)
class Fact:
    """A line that a tool has written."""

    what: str
    job: str
    step: int
    at: float
    folder: str


def facts_of(file: Path) -> list[Fact]:
    """Return what the tools have written."""
    rows = (line.split() for line in file.read_text().splitlines())
    return [Fact(what, job, int(step), float(at), rest) for what, job, step, at, rest in rows]


@dataclass
class Fleet:
    """Workers, a database and a repository for checkpoints; `line` runs commands."""

    line: CommandLine
    url: str
    remote: Path
    workers: list[Process] = field(default_factory=list)

    async def ready(self, server: ModelServer, **settings: object) -> None:
        """Make the tables, and `fake/model` the user's model."""
        options = {"baseURL": server.url, "apiKey": "key"}
        provider = {"fake": {"options": options, "models": {"model": MODEL}}}
        self.line.configure(model="fake/model", provider=provider, **{**OK, **settings})
        done = await self.line("fleet", "init")
        assert done.code == 0, done.err

    async def submit(self, jobs: str, *words: str) -> None:
        """Have the jobs of a file run as the batch `b`."""
        done = await self.line("fleet", "submit", jobs, "--batch", "b", *words)
        assert done.code == 0, done.err

    async def work(self, concurrency: int = 4, *options: str) -> Process:
        """Start a worker, and wait until it takes jobs."""
        words = ("fleet", "worker", "--remote", str(self.remote), *options)
        log = self.line.home / f"worker-{len(self.workers)}.log"
        with log.open("wb") as out:
            process = await self.line.start(
                *words,
                *("--concurrency", str(concurrency), "--work", str(self.line.home / "work")),
                stderr=out.fileno(),
                stdout=out.fileno(),
            )
        self.workers.append(process)
        await until(lambda: b" takes jobs" in log.read_bytes() or process.returncode is not None)
        assert process.returncode is None, log.read_text()
        return process

    async def exit_code(self, process: Process) -> int:
        """Return how a worker ends."""
        async with asyncio.timeout(LIMIT_S):
            await process.wait()
        assert process.returncode is not None
        return process.returncode

    async def status(self) -> dict[str, Any]:
        """Return how the fleet stands."""
        done = await self.line("fleet", "status", "--format", "json")
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with psycopg.connect(self.url, autocommit=True) as db:
            cursor = db.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    async def ended(self, number: int) -> list[dict[str, Any]]:
        """Return the results of the batch, once it has so many."""
        count = "SELECT count(*) FROM fleet_job WHERE result IS NOT NULL"
        async with asyncio.timeout(3 * LIMIT_S):
            while (await asyncio.to_thread(self.rows, count))[0][0] < number:
                codes = [each.returncode for each in self.workers]
                assert None in codes, f"all workers have ended, with {codes}"
                await asyncio.sleep(0.1)
        found = self.rows("SELECT result FROM fleet_job ORDER BY ordinal")
        return [json.loads(result) for (result,) in found]

    async def becomes(self, value: object, statement: str, *values: object) -> None:
        """Wait until a statement returns one row of one value."""
        async with asyncio.timeout(LIMIT_S):
            while await asyncio.to_thread(self.rows, statement, *values) != [(value,)]:
                await asyncio.sleep(0.1)

    def owner_of(self, process: Process) -> str:
        """Return the id of a worker."""
        (row,) = self.rows("SELECT owner FROM fleet_worker WHERE pid = %s", process.pid)
        return str(row[0])

    def refs(self) -> list[str]:
        """Return the checkpoints that there are."""
        found = git(self.remote, "for-each-ref", "--format=%(refname)")
        return [ref for ref in found.splitlines() if "/base/" not in ref]

    async def aclose(self) -> None:
        """Kill the workers."""
        for each in self.workers:
            if each.returncode is None:
                each.kill()
                await each.wait()


@asynccontextmanager
async def fleet_of(line: CommandLine, url: str) -> AsyncIterator[Fleet]:
    """Yield a fleet without workers."""
    remote = line.home / "remote.git"
    git(line.home, "init", "--quiet", "--bare", str(remote))
    line.env["PEGBOARD_DATABASE"] = url
    fleet = Fleet(line, url, remote)
    try:
        yield fleet
    finally:
        await fleet.aclose()
