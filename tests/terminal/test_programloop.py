"""The loop of a program: it ends when a part of it dies for lack of memory, in whatever way."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard.cli import run_async
from pegboard.unstable import OUT_OF_MEMORY, Threads

Loop = asyncio.AbstractEventLoop


def dies(*_: object) -> Any:
    raise MemoryError


def in_its_work(_: Loop) -> None:
    threading.Thread(target=dies).start()


def in_a_timer(_: Loop) -> None:
    threading.Timer(0, dies).start()


def in_an_own_thread(loop: Loop) -> None:
    """The report of the end of a job finds no memory."""
    threads = Threads()

    def job() -> None:
        loop.call_soon_threadsafe = once_without_memory(loop)  # type: ignore[method-assign, assignment]

    loop.create_task(threads.run(job))


def in_the_loop_s_pool(loop: Loop) -> None:
    def job() -> None:
        loop.call_soon_threadsafe = once_without_memory(loop)  # type: ignore[method-assign, assignment]

    loop.run_in_executor(None, job)


def in_a_pool_s_own_code(loop: Loop) -> None:
    class Pool(ThreadPoolExecutor):
        _idle_semaphore: Any

    pool = Pool(1)
    pool._idle_semaphore.release = dies
    loop.run_in_executor(pool, int)


def in_a_callback(loop: Loop) -> None:
    loop.call_soon(dies)


def in_a_task(loop: Loop) -> None:
    """Nobody waits for it."""

    async def part() -> None:
        dies()

    loop.create_task(part())


def in_the_report(_: Loop) -> None:
    """Python's own report of the death finds no memory, and reports that."""
    before = threading.excepthook

    def fails(args: threading.ExceptHookArgs) -> None:
        threading.excepthook = before
        raise MemoryError

    threading.excepthook = fails
    threading.Thread(target=dies).start()


def once_without_memory(loop: Loop) -> Callable[..., Any]:
    call = loop.call_soon_threadsafe

    def fails(*_: object) -> Any:
        loop.call_soon_threadsafe = call  # type: ignore[method-assign, assignment]
        raise MemoryError

    return fails


WAYS = (
    in_its_work,
    in_a_timer,
    in_an_own_thread,
    in_the_loop_s_pool,
    in_a_pool_s_own_code,
    in_a_callback,
    in_a_task,
    in_the_report,
)


@pytest.mark.parametrize("way", WAYS)
def test_a_part_that_dies_ends_the_program(way: Callable[[Loop], None]) -> None:
    hooks = threading.excepthook, sys.unraisablehook, sys.excepthook

    async def main() -> None:
        way(asyncio.get_running_loop())
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), 30)  # its answer

    with pytest.raises(MemoryError):
        run_async(main())
    assert (threading.excepthook, sys.unraisablehook, sys.excepthook) == hooks


STUCK = """
import asyncio, contextlib, threading
from pegboard.cli import programloop
programloop.GRACE_S = 0.1
def dies(*_): raise MemoryError
async def stays():
    while True:
        with contextlib.suppress(asyncio.CancelledError): await asyncio.sleep(60)
async def main():
    {stuck}
programloop.run_async(main())
"""


@pytest.mark.parametrize(
    "stuck",
    [
        "threading.Thread._set_tstate_lock = dies; threading.Thread().start()",
        "threading.Thread(target=dies).start(); threading.Event().wait()",
        "asyncio.get_running_loop().call_soon(dies); await stays()",
    ],
    ids=["a start that waits for ever", "a loop that does not turn", "a task that cannot end"],
)
def test_what_does_not_end_after_it_is_ended(stuck: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK.format(stuck=stuck)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, f"error: {OUT_OF_MEMORY}\n")


LOST = """
import asyncio, resource, threading
from pegboard.cli import programloop
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
def dies(): raise SystemError("error return without exception set")
async def main():
    threading.Thread(target=dies).start()
    await asyncio.get_running_loop().create_future()
programloop.run_async(main())
"""


def test_under_a_limit_an_error_that_has_found_no_room_is_one_of_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST], capture_output=True, text=True, timeout=50, check=False
    )

    assert done.stderr.endswith("\nMemoryError\n")


PROCESS = """
import asyncio, threading
from pegboard.cli import run_async

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
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, check=True)

    assert done.stdout == b"(0, 0)\n"
