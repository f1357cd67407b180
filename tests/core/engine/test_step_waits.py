"""What a step with a command waits for, wakes and starts, counted and not timed."""

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

MOST_WAKES = 1
"""Of threads: for the snapshot. The audit log is written on the loop; the database has its own."""


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

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "c_call":
            counts["naps"] += argument is time.sleep
        elif event != "call":
            return
        elif code is Writer.mark.__code__:
            caller = frame.f_back and frame.f_back.f_code
            counts["waits"] += caller is Writer.barrier.__code__
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
    assert costs == {"waits": 0, "wakes": MOST_WAKES, "naps": 0, "bash": 1, "sh": 0}


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
