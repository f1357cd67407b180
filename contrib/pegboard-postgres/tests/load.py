"""Steps a second and the CPU of a step, on SQLite and on PostgreSQL with 1, 2 and 4 processes.

`python contrib/pegboard-postgres/tests/load.py --sessions 1000 --steps 10 --passes 3` prints a line
for each measurement, and the medians. SQLite is used by one process. The CPU of the PostgreSQL
server counts, too. The command ends with 1 when the median of PostgreSQL's CPU with the fewest
processes is more than `--most` times SQLite's in the same pass, or when 8 processors are there and
4 processes do less than 3.2 times the steps of one. More processes than processors cost more.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
for _folder in ("tests", "contrib/pegboard-postgres", "contrib/pegboard-postgres/tests"):
    sys.path.insert(0, str(ROOT / _folder))

from postgres_server import PostgresServer, postgres_server  # noqa: E402

from pegboard import App, tool  # noqa: E402
from pegboard.providers import ModelRequest, StreamEvent  # noqa: E402
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text  # noqa: E402
from support.storage import server_database  # noqa: E402 - found by the path above

AT_ONCE = 50
RESULT = "x" * 800
CORES, LEAST_GAIN = 8, 3.2
"""On so many processors, 4 processes must do so many times the steps of one."""


@tool
async def look(place: str) -> str:
    """Return what is there.

    Args:
        place: any name
    """
    return f"{place}: {RESULT}"


def model(steps: int) -> Played:
    """Return a model that makes a call in each step but the last."""

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        done = sum(message.role == "assistant" for message in request.messages)
        more = calls(call("look", f'{{"place": "{done}"}}', call_id=f"call_{done}"))
        for event in more if done < steps - 1 else text("That is all."):
            yield event

    return Played(answer)


@dataclass(frozen=True)
class Measured:
    """The CPU per step of the programs and of the server, in milliseconds, and steps a second."""

    own_ms: float
    server_ms: float
    rate: float

    def __str__(self) -> str:
        server = f" + {self.server_ms:.2f} of the server" if self.server_ms else ""
        return f"{self.rate:.0f} steps a second, {self.own_ms:.2f}{server} ms of CPU per step"

    def times(self, other: "Measured") -> float:
        """Return how many times the CPU of another measurement this one is."""
        return (self.own_ms + self.server_ms) / (other.own_ms + other.server_ms)


async def run(folder: Path, sessions: int, steps: int, pipe: Connection) -> None:
    """Run so many sessions when told to; send the seconds of CPU, and the time of the end."""
    free = asyncio.Semaphore(AT_ONCE)
    options = {"config": {"model": "played/m", "snapshot": False}}

    async def turn(app: App) -> None:
        async with free:
            await app.prompt((await app.create_session()).id, HI)

    async with opened(folder, model(steps), ToolsPlugin(look), **options) as app:  # type: ignore[arg-type]
        await turn(app)
        pipe.send(None)
        await asyncio.to_thread(pipe.recv)
        before = time.process_time()
        await asyncio.gather(*(turn(app) for _ in range(sessions)))
        pipe.send((time.process_time() - before, time.monotonic()))


def work(folder: Path, sessions: int, steps: int, pipe: Connection) -> None:
    """Run sessions in a process of its own."""
    asyncio.run(run(folder, sessions, steps, pipe))


def ticks(stat: str, fields: slice) -> int:
    return sum(map(int, stat.rpartition(")")[2].split()[fields]))


def server_cpu_s(server: PostgresServer) -> float:
    """Return the CPU of the server so far, of backends that have ended too."""
    own = str(server.process.pid)
    total = ticks(Path(f"/proc/{own}/stat").read_text(), slice(11, 15))
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[1] == own:
            total += ticks(stat, slice(11, 13))
    return total / os.sysconf("SC_CLK_TCK")


def measured(
    sessions: int, steps: int, processes: int = 1, server: PostgresServer | None = None
) -> Measured:
    """Measure so many sessions, which the processes share; without a server they are on SQLite."""
    os.environ.pop(server_database.VARIABLE, None)
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    share = -(-sessions // processes)
    with tempfile.TemporaryDirectory() as name:
        if server is not None:
            server_database.ask_for(server.url().partition("&options")[0])
            server_database.database_of(Path(name))  # the processes do not create it at once
        for _ in range(processes):
            pipe, other = context.Pipe()
            worker = context.Process(target=work, args=(Path(name), share, steps, other))
            worker.daemon = True  # it ends with this process
            worker.start()
            other.close()  # a worker that dies ends the wait
            workers.append(worker)
            pipes.append(pipe)
        for pipe in pipes:
            pipe.recv()
        before, began_at = server_cpu_s(server) if server else 0.0, time.monotonic()
        for pipe in pipes:
            pipe.send(None)
        ends = [pipe.recv() for pipe in pipes]
        others = server_cpu_s(server) - before if server else 0.0
        for worker in workers:
            worker.join()
    done = share * processes * steps
    return Measured(
        own_ms=sum(cpu_s for cpu_s, _ in ends) * 1e3 / done,
        server_ms=others * 1e3 / done,
        rate=done / (max(at for _, at in ends) - began_at),
    )


def main() -> int:
    """Measure, and return whether a step costs too much or processes add too little."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--most", type=float, default=2.2)
    chosen = parser.parse_args()
    ratios: dict[int, list[float]] = {each: [] for each in chosen.processes}
    rates: dict[int, list[float]] = {each: [] for each in chosen.processes}
    with postgres_server() as server:
        for at in range(chosen.passes):
            lite = measured(chosen.sessions, chosen.steps)
            sys.stdout.write(f"pass {at + 1}: SQLite: {lite}\n")
            for number in chosen.processes:
                found = measured(chosen.sessions, chosen.steps, number, server)
                ratios[number].append(found.times(lite))
                rates[number].append(found.rate)
                sys.stdout.write(
                    f"pass {at + 1}: PostgreSQL, processes: {number}: {found}; "
                    f"{ratios[number][-1]:.2f} times\n"
                )
                sys.stdout.flush()
    return report(ratios, rates, chosen.most)


def report(ratios: dict[int, list[float]], rates: dict[int, list[float]], most: float) -> int:
    """Print the medians, and return 1 if they are not good enough."""
    cpu = {number: statistics.median(each) for number, each in ratios.items()}
    speed = {number: statistics.median(each) for number, each in rates.items()}
    for number, times in cpu.items():
        sys.stdout.write(
            f"medians, processes: {number}: {speed[number]:.0f} steps a second, "
            f"{times:.2f} times the CPU of SQLite\n"
        )
    slow = {1, 4} <= speed.keys() and speed[4] < LEAST_GAIN * speed[1]
    return int(cpu[min(cpu)] > most or (slow and (os.cpu_count() or 1) >= CORES))


if __name__ == "__main__":
    sys.exit(main())
