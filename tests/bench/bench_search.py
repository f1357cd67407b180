"""How glob and grep compare with plain ripgrep in a repository of 20,000 files.

    PYTHONPATH=tests:tests/bench python -m bench_search [--rounds 15]

For each search: the best wall time of ripgrep alone, that of the tool, and the ratio, for which
10 ms are forgiven as the cost of starting a process from Python; the budget is 1.3. To glob all
files is beyond it: the newest come first, so the age of each has to be looked up.
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

from repositories import big

from pegboard.tools import Tool
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from tool_context import Context, call

BUDGET = 1.3
FORGIVEN_S = 0.010
BEYOND = "glob all"
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


async def compare(folder: Path, rounds: int, rg: str) -> bool:
    """Whether every search with ripgrep is within the budget."""
    context = Context(folder)
    path = os.environ["PATH"]
    good = True
    sys.stdout.write(f"{'search':12} {'rg':>8} {'tool':>8} {'ratio':>6}\n")
    for name, tool, arguments, options in SEARCHES:

        async def plain(options: tuple[str, ...] = options) -> None:
            await asyncio.to_thread(
                subprocess.run, [rg, *options], cwd=folder, capture_output=True, check=False
            )

        async def ours(tool: Tool = tool, arguments: dict[str, str] = arguments) -> None:
            await call(tool, context, **arguments)

        os.environ["PATH"] = f"{Path(rg).parent}:{path}"
        alone, with_rg = await best(rounds, plain, ours)
        ratio = max(with_rg - FORGIVEN_S, 0.0) / alone
        good = good and (ratio <= BUDGET or name == BEYOND)
        sys.stdout.write(f"{name:12} {alone * 1000:7.1f}m {with_rg * 1000:7.1f}m {ratio:6.2f}\n")
    os.environ["PATH"] = path
    return good


def main() -> None:
    """Prints the table; ends with 1 when a ratio is over the budget."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    rg = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as name:
        folder = Path(name, "repo")
        big(folder)
        sys.exit(0 if asyncio.run(compare(folder, rounds, rg)) else 1)


if __name__ == "__main__":
    main()
