"""Print the table of Pegboard and the other agents, all of it from one run.

python tests/bench/bench_peers.py -n 7

Installs the agents with npm where they are missing, runs them in turn against the fake model, and
prints Markdown: medians, then the best run of each. In brackets is the ratio to Pegboard. Below
the tables is how busy the machine was with other work. `--network` runs each agent once under
strace instead, and lists the addresses outside of this machine that it wants to reach.
"""

import argparse
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import peers
import repositories
from compare import compare
from measure import PROMPT, Run, environment, fake_model
from peers import PEERS
from process_tree import adopt_orphans

OURS = "pegboard"
STEPS = 30
SCENARIOS = ("hello", f"steps-{STEPS}", "edit", "par-20")
_CALLS = "connect,sendto,sendmsg,sendmmsg"
_OUTSIDE = re.compile(r'inet_addr\("(?!127\.)([^"]+)"\)|inet_pton\(AF_INET6, "(?!::1")([^"]+)"')
Runs = Mapping[str, Sequence[Run]]
"""The runs of one agent, by scenario."""
Figure = Callable[[Run], float]
Middle = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table; `beyond` is a scenario whose figure is subtracted first."""

    title: str
    scenario: str
    figure: Figure
    digits: int = 0
    beyond: str = ""
    divisor: float = 1.0

    def value(self, runs: Runs, middle: Middle) -> float:
        """The row's figure for one agent."""
        found = middle([self.figure(run) for run in runs[self.scenario]])
        if self.beyond:
            found -= middle([self.figure(run) for run in runs[self.beyond]])
        return found / self.divisor


def _step_ms(run: Run) -> float:
    return statistics.median(run.steps_s) * 1e3 if run.steps_s else 0.0


def _cpu_s(run: Run) -> float:
    return run.cpu_s


ROWS = (
    Row("start to first request, s", "hello", lambda run: run.first_request_s, 3),
    Row("`hello`, CPU s", "hello", _cpu_s, 3),
    Row("`hello`, peak memory, MB", "hello", lambda run: run.memory_bytes / 1e6),
    Row(f"step of {STEPS}, ms", f"steps-{STEPS}", _step_ms, 1),
    Row(f"step of {STEPS}, CPU ms", f"steps-{STEPS}", _cpu_s, 1, "hello", STEPS / 1e3),
    Row("step of read and edit, ms", "edit", _step_ms, 1),
    Row("read and edit beyond `hello`, CPU ms", "edit", _cpu_s, 0, "hello", 1e-3),
    Row("20 calls in one answer, ms", "par-20", _step_ms),
    Row("20 calls in one answer, CPU ms", "par-20", _cpu_s, 0, "hello", 1e-3),
    Row("bytes of the first request", "hello", lambda run: run.first_bytes),
)


class Load:
    """How many of the machine's processors others use, from its creation until `others`."""

    def __init__(self) -> None:
        self._began = time.monotonic(), *self._seconds()

    def others(self) -> float:
        """Processors that were busy with work that is not ours, on average."""
        began, busy, own = self._began
        busy_now, own_now = self._seconds()
        return max(0.0, busy_now - busy - (own_now - own)) / (time.monotonic() - began)

    @staticmethod
    def _seconds() -> tuple[float, float]:
        user, nice, system, _, _, irq, softirq, *_ = (
            int(ticks) / os.sysconf("SC_CLK_TCK")
            for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        )
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return user + nice + system + irq + softirq, sum(u.ru_utime + u.ru_stime for u in both)


def table(found: Mapping[str, Runs], middle: Middle) -> str:
    """A Markdown table: a column for each agent, a line for each row."""
    lines = [f"| | {' | '.join(found)} |", f"|---|{'--:|' * len(found)}"]
    for row in ROWS:
        values = {name: row.value(runs, middle) for name, runs in found.items()}
        ours = values.get(OURS, 0.0)
        cells = [
            f"{value:,.{row.digits}f}"
            + (f" ({value / ours:.2f})" if ours > 0 and name != OURS else "")
            for name, value in values.items()
        ]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def version_of(name: str, home: Path) -> str:
    """What an agent answers to `--version`."""
    if name == "floor":
        return platform.python_version()
    program = PEERS[name].path
    assert program, f"{name} is not installed: run bench_peers.py without --no-install"
    done = subprocess.run(
        [program, "--version"],
        env={**environment(str(home)), **PEERS[name].environment({"home": str(home)})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout.split()[-1]


def machine() -> str:
    """The processors, the system and the Python of this machine."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    processor = model[1] if model else platform.machine()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} x {processor}, Linux {platform.release().partition('-')[0]}, {python}"


def addresses(name: str) -> set[str]:
    """The addresses outside of this machine that a run of three steps wants to reach."""
    peer = PEERS[name]
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        home, repository, trace = (Path(folder, each) for each in ("home", "repository", "trace"))
        home.mkdir()
        repositories.small(repository)
        with fake_model(repository) as (_, url):
            facts = {"url": url, "model": "steps-3", "prompt": PROMPT, "home": str(home)}
            peer.write_files(home, facts | {"repository": str(repository)})
            subprocess.run(
                ["strace", "-f", "-e", f"trace={_CALLS}", "-o", str(trace), *peer.command(facts)],
                cwd=repository,
                env={**environment(str(home)), **peer.environment(facts)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
        return {four or six for four, six in _OUTSIDE.findall(trace.read_text())}


def measure(names: Sequence[str], times: int) -> None:
    """Run all scenarios and print both tables."""
    found: dict[str, dict[str, list[Run]]] = {name: {} for name in names}
    notes = []
    for scenario in SCENARIOS:
        sys.stderr.write(f"{scenario}: {times + 1} runs of {', '.join(names)} ...\n")
        load = Load()
        for name, runs in compare(names, scenario, times=times, timeout_s=180).items():
            found[name][scenario] = runs
            if failed := sum(not run.ok for run in runs):
                notes.append(f"{scenario}: {name} failed {failed} times")
        notes.append(f"{scenario}: other work used {load.others():.2f} processors")
    with tempfile.TemporaryDirectory() as home:
        versions = ", ".join(f"{name} {version_of(name, Path(home))}" for name in names)
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    sys.stdout.write(f"{day} UTC, {machine()}\n{versions}\n\n")
    sys.stdout.write(f"Medians of {times} runs:\n\n{table(found, statistics.median)}\n")
    sys.stdout.write(f"Best of {times} runs:\n\n{table(found, min)}\n")
    sys.stdout.write("\n".join(notes) + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", default=",".join(PEERS), help="with commas")
    parser.add_argument("-n", type=int, default=7, help="runs of each, after one that warms up")
    parser.add_argument("--folder", type=Path, default=peers.FOLDER, help="of the other agents")
    parser.add_argument("--no-install", action="store_true", help="use those of the PATH")
    parser.add_argument("--network", action="store_true", help="list addresses; needs strace")
    options = parser.parse_args()
    names = options.names.split(",")
    if not options.no_install and {*names} - {OURS, "floor"}:
        peers.install(options.folder)
        peers.use(options.folder)
    adopt_orphans()
    if options.network:
        for name in names:
            outside = ", ".join(sorted(addresses(name)))
            sys.stdout.write(f"{name:10} {outside or 'this machine only'}\n")
        return
    with suppress(KeyboardInterrupt):
        measure(names, options.n)


if __name__ == "__main__":
    main()
