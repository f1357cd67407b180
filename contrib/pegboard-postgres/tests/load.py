"""The CPU of a step on SQLite and on PostgreSQL, in turns; the server's is counted too.

`python contrib/pegboard-postgres/tests/load.py --sessions 1000 --steps 10 --passes 3` prints a line
for each pass, and ends with 1 when a ratio is greater than `--most`. Wall time does not count: the
two share the machine with the program.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
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


async def run(folder: Path, sessions: int, steps: int) -> float:
    """Return the seconds of CPU of this process for so many sessions of so many steps."""
    free = asyncio.Semaphore(AT_ONCE)
    options = {"config": {"model": "played/m", "snapshot": False}}

    async def turn(app: App) -> None:
        async with free:
            await app.prompt((await app.create_session()).id, HI)

    async with opened(folder, model(steps), ToolsPlugin(look), **options) as app:  # type: ignore[arg-type]
        await turn(app)
        before = time.process_time()
        await asyncio.gather(*(turn(app) for _ in range(sessions)))
        return time.process_time() - before


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


def measured(sessions: int, steps: int, server: PostgresServer | None) -> tuple[float, float]:
    """Return the CPU per step of the program and of the server, in milliseconds."""
    os.environ.pop(server_database.VARIABLE, None)
    if server is not None:
        server_database.ask_for(server.url().partition("&options")[0])
    before = server_cpu_s(server) if server else 0.0
    with tempfile.TemporaryDirectory() as folder:
        own = asyncio.run(run(Path(folder), sessions, steps))
    others = server_cpu_s(server) - before if server else 0.0
    return own * 1e3 / (sessions * steps), others * 1e3 / (sessions * steps)


def main() -> int:
    """Measure, and return whether a ratio is too great."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--most", type=float, default=2.2)
    chosen = parser.parse_args()
    greatest = 0.0
    with postgres_server() as server:
        for at in range(chosen.passes):
            lite, _ = measured(chosen.sessions, chosen.steps, None)
            own, others = measured(chosen.sessions, chosen.steps, server)
            greatest = max(greatest, (own + others) / lite)
            sys.stdout.write(
                f"pass {at + 1}: SQLite {lite:.2f}, PostgreSQL {own:.2f} + {others:.2f} of the "
                f"server, ms of CPU per step; {(own + others) / lite:.2f} times\n"
            )
            sys.stdout.flush()
    return int(greatest > chosen.most)


if __name__ == "__main__":
    sys.exit(main())
