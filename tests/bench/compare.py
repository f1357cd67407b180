"""Compare agents on what they cost around the model: see README.md.

python tests/bench/compare.py pegboard,codex,opencode hello,steps-30,stream-20000 -n 5
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import repositories
from measure import Run, run_once
from peers import PEERS
from process_tree import adopt_orphans

BIG = {"big-hello": "hello", "big-10": "steps-10"}
"""The scenarios in the repository of 20,000 files, with their scripts."""
FEWEST_STEPS = 10
FLOOR = "floor"
COLUMNS = ("ok", "first_s", "wall_s", "cpu_s", "memory_mb", "step_ms", "late/early", "first_bytes")
RATIOS = ("first_s", "cpu_s", "memory_mb", "step_ms")
"""What is printed as a ratio to the floor, too, where the floor runs along."""


def summary(runs: Sequence[Run]) -> dict[str, float | str]:
    """The medians of the runs that went well, or of all when none did."""
    counted = [run for run in runs if run.ok] or list(runs)
    steps = [step for run in counted for step in run.steps_s]
    found: dict[str, float | str] = {
        "ok": f"{sum(run.ok for run in runs)}/{len(runs)}",
        "first_s": round(statistics.median(run.first_request_s for run in counted), 3),
        "wall_s": round(statistics.median(run.wall_s for run in counted), 3),
        "cpu_s": round(statistics.median(run.cpu_s for run in counted), 3),
        "memory_mb": round(statistics.median(run.memory_bytes for run in counted) / 1e6, 1),
        "after_s": round(statistics.median(run.after_last_s for run in counted), 3),
        "first_bytes": statistics.median(run.first_bytes for run in counted),
        "requests": statistics.median(run.requests for run in counted),
    }
    if steps:
        found["step_ms"] = round(statistics.median(steps) * 1e3, 2)
    if len(steps) >= FEWEST_STEPS * len(counted):
        found["late/early"] = round(_growth(counted), 2)
    return found


def _growth(runs: Sequence[Run]) -> float:
    """The median late step over the median early one: fifths of a run, the first step left out."""
    fifth = max(2, len(runs[0].steps_s) // 5)
    early = [step for run in runs for step in run.steps_s[1 : fifth + 1]]
    late = [step for run in runs for step in run.steps_s[-fifth:]]
    return float(statistics.median(late) / statistics.median(early))


def compare(
    names: Sequence[str], scenario: str, *, times: int, timeout_s: float
) -> dict[str, list[Run]]:
    """The runs of each agent; they run in turn, so that all see the machine's moods."""
    big = _big_repository() if scenario in BIG else None
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for turn in range(times + 1):
        for name in names:
            model = BIG.get(scenario, scenario)
            run = run_once(PEERS[name], model, big=big, timeout_s=timeout_s)
            if turn:  # the first warms the machine's caches
                runs[name].append(run)
    return runs


def ratios(runs: Sequence[Run], floor: Sequence[Run]) -> dict[str, float | str]:
    """The medians of `runs` divided by those of the floor."""
    row, least = summary(runs), summary(floor)
    pairs = {name: (row.get(name), least.get(name)) for name in RATIOS}
    return {
        f"{name}/floor": round(value / base, 2)
        for name, (value, base) in pairs.items()
        if isinstance(value, float) and isinstance(base, float) and base
    }


def show(scenario: str, name: str, runs: Mapping[str, Sequence[Run]], *, as_json: bool) -> None:
    """Print an agent's medians, their ratios to the floor, and what its first failure said."""
    row = summary(runs[name])
    found = {} if name == FLOOR or FLOOR not in runs else ratios(runs[name], runs[FLOOR])
    row |= found
    if as_json:
        sys.stdout.write(json.dumps({"scenario": scenario, "peer": name, **row}) + "\n")
        return
    shown = (f"{column}={row[column]}" for column in (*COLUMNS, *found) if column in row)
    sys.stdout.write(f"{scenario:14} {name:10} {'  '.join(shown)}\n")
    for run in [run for run in runs[name] if not run.ok][:1]:
        sys.stdout.write(f"    exit {run.exit_code}, {run.requests} requests: {run.output!r}\n")
    sys.stdout.flush()


def _big_repository() -> Path:
    folder = Path(tempfile.gettempdir(), "pegboard-bench-repository")
    if not (folder / ".git").is_dir():
        folder.mkdir(exist_ok=True)
        repositories.big(folder)
    return folder


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", help=f"of {', '.join(PEERS)}; with commas")
    parser.add_argument(
        "scenarios", help=f"scripts of the fake model, {', '.join(BIG)}; with commas"
    )
    parser.add_argument("-n", type=int, default=5, help="runs of each, after one that warms up")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for a run")
    parser.add_argument("--json", action="store_true", help="one object a line, all figures")
    options = parser.parse_args()
    adopt_orphans()
    for scenario in options.scenarios.split(","):
        names = options.peers.split(",")
        runs = compare(names, scenario, times=options.n, timeout_s=options.timeout)
        for name in runs:
            show(scenario, name, runs, as_json=options.json)


if __name__ == "__main__":
    main()
