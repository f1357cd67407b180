"""What a step with a command waits for, wakes and starts, counted and not timed."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from pegboard import ToolContext, tool
from pegboard.engine.writer import Writer
from pegboard.schema.part import Running, ToolPart
from support.models.played import ToolsPlugin, opened
from support.models.stepping import GO, Stepping, per_step, repository

TESTS = Path(__file__).parents[2]
MOST_WAKES = 1
"""Of threads: for the snapshot. The audit log is written on the loop; the database has its own."""
MOST_TASKS = 8
"""5 were counted: the call and its tool, the start of its process and its pipes, the snapshot."""
MOST_FILE_CALLS = 130
"""Of the system, with a path, by all threads; 105 were counted, half of them for hook files."""
TRACED = """
import asyncio, sys
from pathlib import Path
from support.models.played import opened
from support.models.stepping import GO, Stepping, repository

async def main(folder):
    repository(folder)
    provider = Stepping(12, name="bash")
    provider.at_step = [lambda _: Path("/a-step").exists()]
    async with opened(folder, provider, builtins=True) as app:
        session = await app.create_session()
        await app.prompt(session.id, GO)

asyncio.run(main(Path(sys.argv[1])))
"""


def append_all(series: dict[str, list[int]], counts: Counter[str]) -> None:
    for name, each in series.items():
        each.append(counts[name])


async def test_a_step_with_a_command_waits_wakes_and_starts_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path)
    monkeypatch.setattr("pegboard_plugins.audit.trail.SLOW_S", 600)
    counts: Counter[str] = Counter()
    series: dict[str, list[int]] = {"waits": [], "wakes": [], "naps": [], "bash": [], "sh": []}
    series |= {"commits": [], "tasks": []}

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "c_call":
            counts["naps"] += argument is time.sleep
        elif event != "call":
            return
        elif code is Writer.mark.__code__:
            counts["commits"] += 1
            caller = frame.f_back and frame.f_back.f_code
            counts["waits"] += caller is Writer.barrier.__code__
        elif code is asyncio.BaseEventLoop.create_task.__code__:
            counts["tasks"] += 1
        elif code.co_name == "_execute_child":
            counts[Path(frame.f_locals["args"][0]).name] += 1
        elif code.co_name == "run_in_executor":
            job = frame.f_locals["func"].args[0]
            counts["wakes"] += job.__name__ != "_sync"  # the audit log's, twice a second

    provider = Stepping(12, name="bash")
    provider.at_step = [lambda _: append_all(series, counts)]
    async with opened(tmp_path, provider, builtins=True) as app:
        session = await app.create_session()
        sys.setprofile(note)
        try:
            await app.prompt(session.id, GO)
        finally:
            sys.setprofile(None)

    costs = {name: per_step(each, (4, 12)) for name, each in series.items()}
    assert costs.pop("tasks") <= MOST_TASKS
    # The call before it has an effect, and its result before the next request leaves.
    assert costs.pop("commits") == 2
    assert costs == {"waits": 0, "wakes": MOST_WAKES, "naps": 0, "bash": 1, "sh": 0}


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_step_with_a_command_starts_one_program_and_looks_at_few_files(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    options = ["-f", "-qq", "-e", "signal=none", "-e", "trace=%file,vfork,fork", "-o", str(trace)]
    command = [sys.executable, "-c", TRACED, str(tmp_path)]

    done = subprocess.run(
        ["strace", *options, *command],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )

    if "ptrace" in done.stderr:
        pytest.skip(f"no process may be traced here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    calls = re.findall(r"^(\d+) +(\w+)\((.*)", trace.read_text(), re.MULTILINE)
    children = {pid for pid, name, _ in calls[1:] if name == "execve"}
    counts = Counter[str]()
    series: dict[str, list[int]] = {"files": [], "programs": [], "forks": []}
    for pid, name, rest in calls:
        if "/a-step" in rest:
            append_all(series, counts)
        kind = {"execve": "programs", "vfork": "forks", "fork": "forks"}.get(name, "files")
        counts[kind] += kind != "files" or pid not in children
    costs = {name: per_step(each, (4, 12)) for name, each in series.items()}
    assert costs.pop("files") <= MOST_FILE_CALLS
    assert costs == {"programs": 1, "forks": 1}


async def test_a_call_is_stored_before_its_tool_runs(tmp_path: Path) -> None:
    repository(tmp_path)
    stored: list[list[str]] = []

    @tool(permission="read", effect="reads")
    async def look(step: int, context: ToolContext) -> str:
        """Look at what the database has of this call."""
        turns = await app.storage.turns(context.session.id)
        calls = [part for part in turns[-1].parts if isinstance(part, ToolPart)]
        stored.append([each.call_id for each in calls if isinstance(each.state, Running)])
        return f"step {step}"

    async with opened(tmp_path, Stepping(5), ToolsPlugin(look)) as app:
        session = await app.create_session()
        await app.prompt(session.id, GO)

    assert stored == [[f"call_{step}_0"] for step in range(1, 6)]
