"""The CPU time of one step, for two or more checkouts in turn: see README.md.

python tests/bench/bench_step.py /path/to/before /path/to/after -n 5
"""

import argparse
import os
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from measure import Run, run_once
from peers import PEERS, Peer
from process_tree import adopt_orphans

SHORT, LONG = 30, 130
"""What a run costs besides its steps is in both, and falls out of the difference."""


def step_of(checkout: Path) -> tuple[float, float]:
    """Return the milliseconds of CPU time and of wall time of a step."""
    program = str(checkout / ".venv/bin/pegboard")
    peer = replace(PEERS["pegboard"], program=program, variable="BENCH_STEP")
    short, long = (_run(peer, f"steps-{count}") for count in (SHORT, LONG))
    cpu_s = (long.cpu_s - short.cpu_s) / (LONG - SHORT)
    return cpu_s * 1e3, statistics.median(long.steps_s) * 1e3


def _run(peer: Peer, script: str) -> Run:
    run = run_once(peer, script, big=None, timeout_s=300)
    if not run.ok:
        sys.exit(run.output)
    return run


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, help="each with its own .venv")
    parser.add_argument("-n", type=int, default=5, help="runs of each")
    options = parser.parse_args()
    adopt_orphans()
    steps: dict[Path, list[tuple[float, float]]] = {each: [] for each in options.checkouts}
    for _ in range(options.n):
        for checkout, found in steps.items():
            found.append(step_of(checkout))
    for checkout, found in steps.items():
        cpu, wall = (sorted(column) for column in zip(*found, strict=True))
        print(  # noqa: T201 - a command
            f"{checkout}: CPU {cpu[0]:.2f} ms at least, {statistics.median(cpu):.2f} median;"
            f" wall {wall[0]:.2f} and {statistics.median(wall):.2f}; load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
