"""Conditions for the start of processes: a start waits until all hold, and may be cancelled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.processes import add_start_condition, may_start, run_program
from pegboard.processes.process import run_process
from support.processes.processes import MARK, remaining


class Lease:
    """A right that a program has lost, and which counts how often it was asked for."""

    def __init__(self) -> None:
        self.is_held = False
        self.asked = 0
        self.again = asyncio.Event()

    def __call__(self) -> bool:
        """Return whether the right is held."""
        self.asked += 1
        if self.asked > 1:
            self.again.set()
        return self.is_held


@pytest.fixture
async def lease() -> AsyncIterator[Lease]:
    """Let tools start processes only while a lease is held, which is lost."""
    lease = Lease()
    remove = add_start_condition(lease)
    yield lease
    remove()


async def made(kind: str, folder: Path, command: str) -> int | None:
    """Run a command as a tool does, and return its exit code."""
    argv = ["bash", "-c", command]
    facts = {"cwd": folder, "env": {"PATH": "/usr/bin:/bin"}, "timeout_s": 60, "limit_bytes": 99}
    if kind == "process":
        return (await run_process(argv, **facts)).exit_code
    return (await run_program(argv, **facts, as_tool=kind == "tool")).exit_code


@pytest.mark.parametrize("kind", ["process", "tool"])
async def test_a_start_waits_until_the_condition_holds(
    tmp_path: Path, lease: Lease, kind: str
) -> None:
    running = asyncio.create_task(made(kind, tmp_path, "touch started; exit 3"))
    await lease.again.wait()
    early = (tmp_path / "started").exists()
    lease.is_held = True

    assert await running == 3
    assert not early
    assert may_start()


@pytest.mark.parametrize("kind", ["process", "tool"])
async def test_a_call_that_is_cancelled_while_it_waits_starts_nothing(
    tmp_path: Path, lease: Lease, kind: str
) -> None:
    running = asyncio.create_task(made(kind, tmp_path, f"touch started; sleep {MARK}"))
    await lease.again.wait()
    running.cancel()
    await asyncio.wait({running})
    lease.is_held = True

    assert running.cancelled()
    assert not (tmp_path / "started").exists()
    assert remaining(MARK) == []


async def test_programs_of_pegboard_itself_do_not_wait(tmp_path: Path, lease: Lease) -> None:
    assert await made("program", tmp_path, "exit 3") == 3
    assert lease.asked == 0


async def test_a_condition_that_was_removed_holds_no_start_up(tmp_path: Path) -> None:
    remove = add_start_condition(lambda: False)
    before = may_start()
    remove()

    assert not before
    assert await made("process", tmp_path, "exit 3") == 3
