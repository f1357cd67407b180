"""The event loop of programs whose tools start processes."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, threading
from pegboard.embedding import run_async

async def threads_while_a_process_runs():
    before = threading.active_count()
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    started = threading.active_count() - before
    await process.communicate(b"")
    return started, process.returncode

print(run_async(threads_while_a_process_runs()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python 3.11 needs a thread")
def test_no_thread_is_started_for_a_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)

    assert done.stdout == b"(0, 0)\n"
