"""Nothing that a tool has started outlives this program."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pegboard.processes.lifeline import Lifeline

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from pegboard.processes.family import MARK, Family
from pegboard.processes.lifeline import Lifeline
from pegboard.processes.limits import Bounds
from pegboard.schema.config import ProcessLimits
lifeline = Lifeline()
env = dict(os.environ, **lifeline.hold())
script = "sleep {nap} & setsid env -i sleep {nap} & exec sleep {nap}"
seal = Family(env[MARK]).seal
shell = ["/bin/sh", "-c", script]
argv, env = Bounds(ProcessLimits()).around(shell, cwd=Path.cwd(), env=env, seal=seal)
subprocess.Popen(argv, env=env, start_new_session=True)
print("begun", flush=True)
sys.stdin.read()
"""
LIMIT_S = 60.0


def asleep(nap: str) -> int:
    """How many processes sleep for so long."""
    wanted = f"sleep\0{nap}\0".encode()
    return sum(_command(place) == wanted for place in Path("/proc").glob("[0-9]*"))


def _command(place: Path) -> bytes:
    try:
        return (place / "cmdline").read_bytes()
    except OSError:
        return b""


def wait_for(nap: str, wanted: int) -> None:
    end = time.monotonic() + LIMIT_S
    while asleep(nap) != wanted:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to find processes in")
def test_processes_end_when_the_program_is_killed() -> None:
    nap = f"86399.{time.time_ns()}"
    command = [sys.executable, "-c", PROGRAM.format(nap=nap)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        wait_for(nap, 3)

        child.kill()

        wait_for(nap, 0)


async def test_letting_go_leaves_what_still_runs_alone() -> None:
    lifeline = Lifeline()
    process = await asyncio.create_subprocess_exec("sleep", "86398", env=dict(lifeline.hold()))

    await lifeline.aclose()
    await lifeline.aclose()

    assert process.returncode is None
    process.kill()
    await process.wait()
