"""A stopped line: no shell in it goes on with its next command."""

import asyncio
import os
from pathlib import Path

import pytest

from pegboard.kit.redact import child_env
from pegboard.processes.process import run_process


async def stopped(folder: Path, number: int, *, by_time: bool) -> None:
    """Stop a line of three shells, each of which goes on when its command ends."""
    inner = f"echo here; sleep 60; touch {number}c"
    line = f"bash -c 'sh -c \"{inner}\"; touch {number}b'; touch {number}a"
    here = asyncio.Event()
    task = asyncio.create_task(
        run_process(
            ["bash", "-c", line],
            cwd=folder,
            env=child_env(os.environ),
            timeout_s=2.0 if by_time else 60.0,
            limit_bytes=1 << 20,
            on_output=lambda _: here.set(),
        )
    )
    await here.wait()
    if not by_time:
        task.cancel()
    await asyncio.wait((task,))


@pytest.mark.parametrize("by_time", [False, True])
async def test_no_command_behind_the_one_that_is_stopped_runs(tmp_path, by_time):
    for start in range(0, 40, 10):
        numbers = range(start, start + 10)
        await asyncio.gather(*(stopped(tmp_path, each, by_time=by_time) for each in numbers))

    assert [path.name for path in tmp_path.iterdir()] == []
