"""What the judgement of a shell line costs: the lines of the corpora, and long ones.

    python tests/bench/bench_shell_lines.py

The goals are 250 us of CPU a line and 150 ms for 100 kB.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pegboard_plugins.bash.reader import read
from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.syntax import Unclear

DATA = Path(__file__).parents[1] / "data"
CORPORA = ("honest_lines", "honest_lines_2", "honest_lines_3", "evil_lines")
LONG = {
    "a word of 100 kB": "echo " + "a" * 100_000,
    "4,880 commands, 100 kB": "; ".join(["ls -la 'a b' \"$x\" | grep -v x > out.txt"] * 2440),
    "a here-document of 100 kB": "cat > a <<'E'\n" + "some text\n" * 10_000 + "E\n",
}
ROUNDS = 5


def cost_s(judge: Callable[[str], object], lines: list[str]) -> float:
    """CPU seconds for all the lines, of several rounds the least."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for line in lines:
            judge(line)
        rounds.append(time.process_time() - started)
    return min(rounds)


def _read(line: str) -> None:
    try:
        read(line)
    except Unclear:
        return


def main() -> None:
    place = StartPlace(cwd=Path("/w/project"), home=Path("/home/u"), worktree=Path("/w/project"))
    for name in CORPORA:
        lines = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        whole = cost_s(lambda line: scan(line, place), lines) / len(lines)
        reading = cost_s(_read, lines) / len(lines)
        sys.stdout.write(f"{name}: {reading * 1e6:.0f} us to read, {whole * 1e6:.0f} us in all\n")
    for name, line in LONG.items():
        spent = cost_s(lambda each: scan(each, place), [line])
        sys.stdout.write(f"{name}: {spent * 1e3:.0f} ms\n")


if __name__ == "__main__":
    main()
