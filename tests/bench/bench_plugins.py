"""What 60 installed plugins cost a run: its time with and without them, in turn, and the ratio.

`python tests/bench/bench_plugins.py [plugins] [times]`; the model plays a script, so all is ours.
The CPU time is the figure to trust on a busy machine.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

PLUGINS, TIMES = 60, 9
GOAL_S = 0.05
MODULE = '''
from pegboard import hookimpl, tool


@tool
def count_{number}(words: str) -> int:
    """Count words.

    Args:
        words: what to count.
    """
    return len(words.split())


@hookimpl
def register_tools():
    return [count_{number}]


@hookimpl
async def text_complete(text: str) -> None:
    return None
'''


def install(site: Path, number: int) -> None:
    """Install a distribution with one plugin, which has a tool and a hook."""
    folder = site / f"counting_{number}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: counting-{number}\nVersion: 1.0\n\n")
    point = f"[pegboard]\ncounting_{number} = counting_{number}\n"
    (folder / "entry_points.txt").write_text(point)
    (site / f"counting_{number}.py").write_text(MODULE.format(number=number))


def seconds(home: Path, site: Path) -> tuple[float, float]:
    """The time of a run that says a word, and its CPU time."""
    script = home / "script.json"
    script.write_text(json.dumps({"scripts": [{"steps": [{"text": "done"}]}]}))
    folders = {f"PEGBOARD_{each}_DIR": str(home / each) for each in ("CONFIG", "DATA", "STATE")}
    env = {**os.environ, **folders, "HOME": str(home), "PYTHONPATH": str(site)}
    words = ["run", "-m", f"scripted/{script}", "hi"]
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [str(Path(sys.executable).with_name("pegboard")), *words],
        cwd=home,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return time.perf_counter() - started, used


def main(plugins: int = PLUGINS, times: int = TIMES) -> None:
    """Print both medians, their difference beside its goal, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        home, empty, full = (Path(folder, name) for name in ("home", "empty", "full"))
        for each in (home, empty, full):
            each.mkdir()
        for number in range(plugins):
            install(full, number)
        seconds(home, empty), seconds(home, full)  # byte code is written once
        pairs = [(seconds(home, empty), seconds(home, full)) for _ in range(times)]
    for at, name in enumerate(("time", "CPU")):
        without, beside = (median(each[at] for each in some) for some in zip(*pairs, strict=True))
        more = median(second[at] - first[at] for first, second in pairs)
        sys.stdout.write(
            f"{name:5} none {without:.3f} s, {plugins} plugins {beside:.3f} s,"
            f" more {more:+.3f} s (goal {GOAL_S:+} s), ratio {beside / without:.2f}\n"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
