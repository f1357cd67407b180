"""How glob and grep compare with plain ripgrep in a repository of 20,000 files.

    python tests/bench/bench_search.py [--rounds 15] [--rg PATH]

For each search: the best wall time of ripgrep alone, that of the tool, and the ratio, for which
10 ms are forgiven as the cost of starting a process from Python; the budget is 1.3. A glob gives
the newest files first, so that the age of each that it looks at has to be looked up;
`rg --sortr=modified` does such work, and its time and ratio are printed too.
`first` is when who watches is told of the first results.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from repositories import big

from pegboard.contract.tools import Tool
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from support.tools.tool_context import Context, call

BUDGET = 1.3
FORGIVEN_S = 0.010
_FILES = ("--files", "--hidden", "--glob=!.git")
_LINES = ("--line-number", "--no-heading", "--hidden", "--glob=!.git")
SEARCHES: tuple[tuple[str, Tool, dict[str, str], tuple[str, ...]], ...] = (
    ("glob all", glob, {"pattern": "**/*"}, _FILES),
    ("glob *.py", glob, {"pattern": "**/*.py"}, (*_FILES, "--glob=*.py")),
    ("glob none", glob, {"pattern": "*.none"}, (*_FILES, "--glob=*.none")),
    ("grep rare", grep, {"pattern": "func_1234\\b"}, (*_LINES, "func_1234\\b", ".")),
    ("grep none", grep, {"pattern": "no such text"}, (*_LINES, "no such text", ".")),
    ("grep func_1", grep, {"pattern": "func_1\\d{3}\\("}, (*_LINES, "func_1\\d{3}\\(", ".")),
    ("grep common", grep, {"pattern": "self"}, (*_LINES, "self", ".")),
)


async def best(rounds: int, *acts: Callable[[], Awaitable[object]]) -> list[float]:
    """The best wall time of each in seconds; they take turns, so that all meet the same noise."""
    times: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds):
        for act, taken in zip(acts, times, strict=True):
            started = time.perf_counter()
            await act()
            taken.append(time.perf_counter() - started)
    return [min(taken) for taken in times]


def _plain(rg: str, folder: Path, *options: str) -> Callable[[], Awaitable[object]]:
    async def run() -> None:
        await asyncio.to_thread(
            subprocess.run, [rg, *options], cwd=folder, capture_output=True, check=False
        )

    return run


def _ratio(tool_s: float, rival_s: float) -> float:
    return max(tool_s - FORGIVEN_S, 0.0) / rival_s


async def _first(tool: Tool, arguments: dict[str, str], folder: Path) -> str:
    """When the first results are told, in milliseconds; empty if there are none."""
    context = Context(folder)
    started = time.perf_counter()
    searching = asyncio.create_task(call(tool, context, **arguments))
    telling = asyncio.create_task(context.has_shown.wait())
    # Searches have their own limit of time.
    await asyncio.wait({searching, telling}, return_when=asyncio.FIRST_COMPLETED)
    took_s = time.perf_counter() - started
    await searching
    told = telling.done()
    telling.cancel()
    return f"{took_s * 1000:.1f}m" if told else ""


async def compare(folder: Path, rounds: int, rg: str) -> bool:
    """Whether every search with ripgrep is within the budget."""
    context = Context(folder)
    os.environ["PATH"] = f"{Path(rg).parent}:{os.environ['PATH']}"
    good = True
    sys.stdout.write(
        f"{'search':12} {'rg':>8} {'tool':>8} {'first':>8} {'ratio':>6} {'rg sorted':>10}"
        f" {'ratio':>6}\n"
    )
    for name, tool, arguments, options in SEARCHES:

        async def ours(tool: Tool = tool, arguments: dict[str, str] = arguments) -> None:
            await call(tool, context, **arguments)

        rivals = [_plain(rg, folder, *options)]
        if tool is glob:
            rivals.append(_plain(rg, folder, *options, "--sortr=modified"))
        tool_s, alone_s, *others = await best(rounds, ours, *rivals)
        sys.stdout.write(
            f"{name:12} {alone_s * 1000:7.1f}m {tool_s * 1000:7.1f}m"
            f" {await _first(tool, arguments, folder):>8} {_ratio(tool_s, alone_s):6.2f}"
        )
        for sorted_s in others:
            sys.stdout.write(f" {sorted_s * 1000:9.1f}m {_ratio(tool_s, sorted_s):6.2f}")
        sys.stdout.write("\n")
        good = good and _ratio(tool_s, alone_s) <= BUDGET
    return good


def main() -> None:
    """Prints the table; ends with 1 when a ratio is over the budget."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rg", default=shutil.which("rg") or f"{sys.prefix}/bin/rg")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as name:
        folder = Path(name, "repo")
        big(folder)
        sys.exit(0 if asyncio.run(compare(folder, chosen.rounds, chosen.rg)) else 1)


if __name__ == "__main__":
    main()
