"""What a step costs in a long session, in milliseconds: early, and behind 2,000 messages.

All built-in plugins and snapshots are on; the model answers at once and in this process, so
that the bytes of a request, which must grow, are not in it. `first request` is what opening the
session again costs: from a prompt to the request, in a new App.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pegboard import App, AppOptions
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from support.models.played import USAGE, Played, PlayedPlugin

MESSAGES = 2_000
AROUND = 10
GO = "Read the file again and again."


class Reading(Played):
    """A model that reads a piece of a file in each step; it notes when it was asked."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.asked: list[tuple[float, float]] = []
        self._steps = steps

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked.append((time.perf_counter(), time.process_time()))
        yield TextStart("t")
        for number in range(10):
            yield TextDelta("t", f"word {number} ")
        yield TextEnd("t")
        step = len(self.asked)
        if step > self._steps:
            yield StreamFinish("stop", USAGE)
            return
        arguments = (
            f'{{"filePath": "file.txt", "offset": {step % 500}, "limit": {20 + step // 500}}}'
        )
        yield ToolCall(f"call_{step}", "read", arguments)
        yield StreamFinish("tool-calls", USAGE)


def options(folder: Path, provider: Reading) -> AppOptions:
    """Built-in plugins, with this provider's model."""
    return AppOptions(
        config={"model": "played/m", "budget": {"run": {"steps": MESSAGES}}},
        plugins=(PlayedPlugin(provider),),
        installed=False,
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )


async def long_session(folder: Path) -> tuple[str, Reading]:
    """A session of that many messages; the model's notes of its steps."""
    provider = Reading(MESSAGES - 2)
    async with App.open(folder / "project", options(folder, provider)) as app:
        session = (await app.create_session()).id
        await app.prompt(session, GO)
        return session, provider


async def opened_again(folder: Path, session: str) -> float:
    """The time from a prompt to its request in a new App."""
    provider = Reading(0)
    async with App.open(folder / "project", options(folder, provider)) as app:
        began = time.perf_counter()
        await app.prompt(session, GO)
        return provider.asked[0][0] - began


def around(series: list[tuple[float, float]], step: int) -> tuple[float, float]:
    """Wall and CPU time of a step there, the medians of some."""
    near = list(pairwise(series[step - AROUND : step + AROUND + 1]))
    wall = statistics.median(after[0] - before[0] for before, after in near)
    return wall, (near[-1][1][1] - near[0][0][1]) / len(near)


def prepare(project: Path) -> None:
    """A repository with a file to read."""
    project.mkdir()
    (project / "file.txt").write_text("".join(f"line {n}\n" for n in range(3_000)))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)


async def measure(folder: Path) -> None:
    """All figures."""
    session, provider = await long_session(folder)
    early = around(provider.asked, AROUND + 1)
    late = around(provider.asked, MESSAGES - 2 * AROUND)
    say("a step, wall", early[0], late[0])
    say("a step, CPU", early[1], late[1])
    say("first request", await opened_again(folder, session))


def say(what: str, early: float, late: float | None = None) -> None:
    """A line of the table."""
    more = "" if late is None else f"   late {late * 1e3:8.2f}   ratio {late / early:.2f}"
    sys.stdout.write(f"{what:16} {early * 1e3:8.2f}{more}\n")


def main() -> None:
    """Play the session and measure."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder) / "project")
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
