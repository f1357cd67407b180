"""What the chat costs on a terminal, beside its limits, and beside other agents' terminals.

`python tests/bench/bench_chat.py` starts each in a pty with a fake model that says a thousand
pieces a second; `bench_chat.py pegboard,codex -n 5` takes these, five times. Linux only.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import repositories
from measure import environment, fake_model, log_of
from peers import TERMINALS, Peer
from process_tree import adopt_orphans
from pty_program import ALTERNATE, FRAME, MOUSE, PtyProgram

DELTAS, RATE = 5000, 1000
TURNS = 200
ECHOES = 60
KEYS = "zqz"
AGAIN_S = 3.0
"""After so long a key counts as lost, and is pressed again."""
REST_S = 3.0
COLUMNS = {
    "paint_s": "paint s",
    "key_s": "key s",
    "request_s": "request s",
    "rest_mb": "rest MB",
    "then_mb": "then MB",
    "cpu_s": "CPU s/1k",
    "written_kb": "KB/1k",
    "alternate": "alternate",
    "mouse": "mouse",
}
PAINTED = re.compile(r"\S{3}")
LIMITS = {
    "first paint, s": 0.20,
    "a key is seen, s from the start": 0.50,
    "request after Enter, s": 0.30,
    "memory at rest, MB": 60,
    "CPU for 1,000 deltas, s": 0.20,
    "written for 1,000 deltas, KB": 30,
    "frames a second": 30,
    "key seen while it streams, p95, ms": 16,
    f"memory after {TURNS} turns, MB": 100,
    "bytes written in 3 s of rest": 0,
    "wakes in 3 s of rest": 5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Of one start and one answer."""

    paint_s: float
    key_s: float
    request_s: float
    rest_mb: float
    then_mb: float
    cpu_s: float
    written_kb: float
    frames: float
    alternate: bool
    mouse: bool


@contextmanager
def opened(peer: Peer, model: str) -> Iterator[tuple[PtyProgram, str]]:
    """Its terminal in a home of its own, just started, and the URL of the model."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        home, repository = Path(folder, "home"), Path(folder, "repository")
        home.mkdir()
        repositories.small(repository)
        with fake_model(repository) as (_, url):
            facts = {"url": url, "model": model, "home": str(home), "prompt": ""}
            peer.write_files(home, facts | {"repository": str(repository)})
            env = {**environment(str(home)), **peer.environment(facts)}
            env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            del env["NO_COLOR"]
            argv = peer.command(facts, terminal=True)
            with PtyProgram(argv, env, repository) as program:
                yield program, url


def started(program: PtyProgram) -> tuple[float, float]:
    """The seconds from the start to the first text, and to the first key that is seen."""
    program.until(lambda: any(PAINTED.search(row) for row in program.shown))
    paint_s = time.monotonic() - program.began
    pressed = 0.0

    def seen() -> bool:
        nonlocal pressed
        if time.monotonic() - pressed > AGAIN_S:
            pressed = time.monotonic()
            program.type(KEYS)
        return program.has(KEYS)

    program.until(seen)
    return paint_s, time.monotonic() - program.began


def answered(program: PtyProgram, url: str) -> float:
    """Press Enter and wait for the end of the answer: the seconds until the request came."""
    before = len(_ends(url))
    pressed = time.monotonic()
    program.type("\r")
    looked = pressed

    def ended() -> bool:
        nonlocal looked
        if time.monotonic() - looked < 1 / 4:
            return False
        looked = time.monotonic()
        return len(_ends(url)) > before

    program.until(ended)
    return _ends(url)[before] - pressed


def _ends(url: str) -> list[float]:
    """When the requests came whose answers have ended."""
    return [each["arrive"] for each in log_of(url) if each["kind"] == "main" and "end" in each]


def costs(peer: Peer) -> Costs:
    """What a start and one answer cost."""
    with opened(peer, f"prose-{DELTAS}-{RATE}") as (program, url):
        paint_s, key_s = started(program)
        _rest(program)
        rest_mb, cpu_s, size = program.memory_mb, program.cpu_s, len(program.written)
        request_s = answered(program, url)
        _rest(program)
        thousands = DELTAS / 1000
        return Costs(
            paint_s=paint_s,
            key_s=key_s,
            request_s=request_s,
            rest_mb=rest_mb,
            then_mb=program.memory_mb,
            cpu_s=(program.cpu_s - cpu_s) / thousands,
            written_kb=(len(program.written) - size) / 1000 / thousands,
            frames=program.written[size:].count(FRAME) / (DELTAS / RATE),
            alternate=bool(ALTERNATE.search(program.written)),
            mouse=bool(MOUSE.search(program.written)),
        )


def _rest(program: PtyProgram) -> None:
    """Let it end what it has begun."""
    until = time.monotonic() + REST_S
    while time.monotonic() < until and program.read(1):
        pass


def echoes() -> Sequence[float]:
    """The seconds until each of many keys is on the terminal while an answer streams."""
    with opened(TERMINALS["pegboard"], f"prose-{2 * DELTAS}-{RATE}") as (program, _):
        started(program)
        _rest(program)
        program.type("\r")
        program.until(lambda: program.has("agent reads"))
        return list(_echoes(program))


def _echoes(program: PtyProgram) -> Iterator[float]:
    for number in range(ECHOES):
        letter = "qwzxQWZX"[number % 8]
        size = len(program.written)
        began = time.monotonic()
        program.type(letter)
        while letter.encode() not in program.written[size:]:
            program.read(0.05)
        yield time.monotonic() - began
        time.sleep(0.03)


def resting() -> tuple[float, int, int]:
    """Memory after many turns, and what is written and woken up for while nothing happens."""
    with opened(TERMINALS["pegboard"], "hello") as (program, url):
        started(program)
        for number in range(1, TURNS + 1):
            program.type(f" turn{number}\r")
            program.until(lambda: program.has(f"turn{number}"))  # noqa: B023 - called at once
            program.until(lambda: len(_ends(url)) >= number)  # noqa: B023 - called at once
        _rest(program)
        size, wakes = len(program.written), program.wakes
        time.sleep(REST_S)
        program.read(0)
        return program.memory_mb, len(program.written) - size, program.wakes - wakes


def limits(found: Sequence[Costs]) -> Mapping[str, float]:
    """The figures that have a limit; the best of several starts."""
    memory_mb, written, wakes = resting()
    figures = (
        min(each.paint_s for each in found),
        min(each.key_s for each in found),
        min(each.request_s for each in found),
        min(each.rest_mb for each in found),
        min(each.cpu_s for each in found),
        min(each.written_kb for each in found),
        max(each.frames for each in found),
        sorted(echoes())[int(ECHOES * 0.95)] * 1000,
        memory_mb,
        written,
        wakes,
    )
    return dict(zip(LIMITS, figures, strict=True))


def compared(names: Sequence[str], times: int) -> dict[str, list[Costs]]:
    """What each costs; they start in turn, so that all see the machine's moods."""
    found: dict[str, list[Costs]] = {name: [] for name in names}
    for _ in range(times):
        for name in names:
            found[name].append(costs(TERMINALS[name]))
    return found


def table(found: Mapping[str, Sequence[Costs]]) -> Iterator[str]:
    """A row for each: medians."""
    yield f"{'':<16}" + "".join(f"{head:>11}" for head in COLUMNS.values())
    for name, runs in found.items():
        row = (statistics.median(getattr(each, column) for each in runs) for column in COLUMNS)
        yield f"{name:<16}" + "".join(f"{value:>11.2f}" for value in row)


def main() -> None:
    """Print the chat's figures beside their limits, and the others' beside the chat's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", default=",".join(TERMINALS))
    parser.add_argument("-n", "--times", type=int, default=3)
    options = parser.parse_args()
    adopt_orphans()
    names = [name for name in options.names.split(",") if TERMINALS[name].path]
    for name in set(options.names.split(",")) - set(names):
        sys.stdout.write(f"{name} is not installed\n")
    sys.stdout.write(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
    found = compared(names, options.times)
    for line in table(found):
        sys.stdout.write(f"{line}\n")
    if "pegboard" in found:
        for name, figure in limits(found["pegboard"]).items():
            mark = "" if figure <= LIMITS[name] else "  MISSED"
            sys.stdout.write(f"{name:<40}{figure:>10.3f}   limit {LIMITS[name]:g}{mark}\n")


if __name__ == "__main__":
    main()
