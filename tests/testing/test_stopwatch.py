"""What a suite for authors measures does not depend on how busy the machine is."""

import subprocess
import sys
from pathlib import Path

import pytest

STARVED = """
import os, subprocess, sys, time
from pegboard.testing.stopwatch import Stopwatch

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
spin = [sys.executable, "-c", "print(flush=True)\\nwhile True: pass"]
others = [subprocess.Popen(spin, stdout=subprocess.PIPE) for _ in range(3)]
for each in others:
    each.stdout.readline()
os.setpriority(os.PRIO_PROCESS, 0, 10)  # a twentieth of the processor is left
try:
    watch, end = Stopwatch(), time.perf_counter() + 1
    while time.perf_counter() < end:
        pass
    print(watch.taken_s)
finally:
    for each in others:
        each.kill()
        each.communicate()
"""


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the system does not count what waits"
)
def test_a_stopwatch_stands_still_while_others_have_the_processor() -> None:
    command = [sys.executable, "-c", STARVED]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert float(done.stdout) < 0.5
