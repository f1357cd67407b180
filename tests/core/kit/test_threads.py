"""Worker threads: used again, daemons, and never in the way of the exit."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from pegboard.kit.threads import Threads, run_in_thread


async def test_a_thread_is_used_again() -> None:
    threads = Threads()

    first = await threads.run(threading.get_ident)
    async with asyncio.timeout(30):
        while await threads.run(threading.get_ident) != first:  # it may not wait again yet
            pass
    threads.close()

    assert first != threading.get_ident()


async def test_calls_run_beside_each_other() -> None:
    threads = Threads()
    barrier = threading.Barrier(3, timeout=30)

    await asyncio.gather(*(threads.run(barrier.wait) for _ in range(3)))

    threads.close()


async def test_the_caller_s_context_is_there() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    threads = Threads()

    assert await threads.run(variable.get) == "set"

    threads.close()


async def test_a_call_that_is_given_up_disturbs_nobody() -> None:
    threads = Threads()
    release = threading.Event()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(threads.run(lambda: release.wait(5)), 0.02)
    assert await threads.run(lambda: "next") == "next"

    release.set()
    threads.close()


def test_a_hung_thread_does_not_hold_the_process() -> None:
    code = (
        "import asyncio, time\n"
        "from pegboard.kit.threads import Threads\n"
        "async def main():\n"
        "    try:\n"
        "        await asyncio.wait_for(Threads().run(lambda: time.sleep(60)), 0.05)\n"
        "    except TimeoutError:\n"
        "        print('given up')\n"
        "asyncio.run(main())\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)

    assert done.stdout == b"given up\n"
    assert done.stderr == b""


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
async def test_what_a_function_raises_is_raised_to_its_caller(kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind("wrong")

    with pytest.raises(kind, match="wrong"):
        await run_in_thread(fail, name="pegboard-test")


async def test_an_error_that_no_coroutine_may_raise_ends_no_thread() -> None:
    def fail() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(fail, name="pegboard-test")


def test_a_call_that_ends_when_its_loop_has_just_been_closed_raises_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, raised = threading.Event(), list[object]()
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())
    loop = asyncio.new_event_loop()

    async def give_up() -> None:
        await asyncio.wait_for(run_in_thread(lambda: release.wait(30), name="left"), 0.01)

    with pytest.raises(TimeoutError):
        loop.run_until_complete(give_up())
    monkeypatch.setattr(loop, "is_closed", lambda: False)  # as the thread saw it
    loop.close()
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)

    assert raised == []
