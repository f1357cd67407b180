"""What snapshots cost in a repository of 20,000 files, in milliseconds."""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import repositories

from pegboard.workspace import open_workspace
from pegboard_plugins.snapshots.worktree import GitSnapshots

ROUNDS = 7
OWNER = ("ses_bench",)


def say(label: str, median: str, longest: str) -> None:
    """A line of the table."""
    sys.stdout.write(f"{label:34} {median} {longest}\n")


async def timed(label: str, act: Callable[[int], Awaitable[object]]) -> None:
    """Print the median and the longest of some rounds."""
    found = []
    for number in range(ROUNDS):
        start = time.perf_counter()
        await act(number)
        found.append((time.perf_counter() - start) * 1000)
    say(label, f"{statistics.median(found):8.2f}", f"{max(found):8.2f}")


async def measure(project: Path, data: Path) -> None:
    """Each kind of snapshot, first ones included."""

    def opened(number: int) -> GitSnapshots:
        folder = data / str(number)
        return GitSnapshots(open_workspace(project), folder=folder, env=dict(os.environ))

    async def first(number: int) -> None:
        await opened(number).track()

    snapshots = opened(ROUNDS)
    await snapshots.track()

    async def quiet(_: int) -> None:
        await snapshots.track()

    async def fresh(_: int) -> None:
        await snapshots.track(fresh=True)

    async def told(number: int) -> None:
        with snapshots.writing(OWNER, tells=True) as call:
            (project / "target.txt").write_text(f"{number}\n")
            call.tell(project / "target.txt")
        await snapshots.track()

    async def command(number: int) -> None:
        with snapshots.writing(OWNER, tells=False):
            (project / "target.txt").write_text(f"by a command {number}\n")
        await snapshots.track()

    say("", "  median", " longest")
    await timed("the first of a process", first)
    await timed("nothing can have been written", quiet)
    await timed("a look at everything, no change", fresh)
    await timed("a tool has told its file", told)
    await timed("a command has changed a file", command)
    await snapshots.aclose()


def main() -> None:
    """Build the repository and measure."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "big"
        repositories.big(project)
        asyncio.run(measure(project, Path(folder) / "data"))


if __name__ == "__main__":
    main()
