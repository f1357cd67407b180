"""Under a limit of memory a program that hangs or crashes ends with a sentence."""

import ast
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pegboard.unstable import OUT_OF_MEMORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
GIB = 1 << 30
SILENT_S = 4.0
"""Longer than a program that moves may be silent, in `PROGRAM`."""
PROGRAM = """
import ctypes, os, signal, sys, threading, time
from pegboard_plugins.shared.terminal import guardian
guardian.BEAT_S, guardian.MISSED_BEATS = 0.05, 60
guardian.call_guardian()
time.sleep(0.2)
{does}
"""


def run(code: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        preexec_fn=before,
    )


def test_a_thread_that_lets_no_other_run_is_ended() -> None:
    done = run(PROGRAM.format(does="ctypes.PyDLL(None).sleep(600)"))

    assert done.returncode == 1
    assert done.stderr.startswith("error: nothing has moved for ")
    assert "ulimit -v" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_has_a_sentence(number: signal.Signals) -> None:
    done = run(PROGRAM.format(does=f"os.kill(os.getpid(), {int(number)})"))

    assert done.returncode == 1
    assert done.stderr.startswith("error: the program has crashed, most likely because")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("does", "code"),
    [
        (f"time.sleep({SILENT_S})", 0),
        ("os._exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
    ids=["its end", "an end at once", "somebody's kill", "somebody's word"],
)
def test_any_other_end_is_passed_on_and_nothing_is_said(does: str, code: int) -> None:
    done = run(PROGRAM.format(does=does))

    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    "error", [MemoryError(), SystemError("error return without exception set")]
)
def test_an_error_without_room_for_itself_is_one_of_memory(
    error: Exception,
) -> None:
    done = run(PROGRAM.format(does=f"raise {error!r}"))

    assert done.returncode == 1
    assert done.stderr == f"error: {OUT_OF_MEMORY}\n"


def test_any_other_error_is_shown_as_python_does() -> None:
    done = run(PROGRAM.format(does="raise ValueError(7)"))

    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ValueError: 7\n")


@contextmanager
def started(does: str, *, first: str = "pass") -> Iterator[subprocess.Popen[str]]:
    """The program, which prints its id between the two."""
    program = PROGRAM.format(does=f"{first}; print(os.getpid(), flush=True); {does}")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def test_only_the_main_thread_takes_signals() -> None:
    masks = "[int(line.split()[1], 16) for line in open(f'/proc/self/task/{task}/status')"
    masks = f"{masks} if line.startswith('SigBlk')]"
    does = f"print({{int(task) == os.getpid(): {masks} for task in os.listdir('/proc/self/task')}})"

    blocked = ast.literal_eval(run(PROGRAM.format(does=does)).stdout)

    assert blocked[True] == [0]
    assert all(blocked[False][0] >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGUSR1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_what_is_sent_to_the_first_process_the_program_gets(number: signal.Signals) -> None:
    heeds = f"signal.signal({int(number)}, lambda *_: print('heard') or sys.exit(3))"
    with started("time.sleep(30)", first=heeds) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() != str(process.pid)
        process.send_signal(number)
        said, complaint = process.communicate(timeout=30)

    assert (said, complaint, process.returncode) == ("heard\n", "", 3)


def test_the_program_ends_with_the_first_process() -> None:
    with started("time.sleep(600)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        said, _ = process.communicate(timeout=30)  # the end of what both have open

    assert said == ""


@pytest.mark.parametrize("is_alone", [False, True], ids=["both", "it alone"])
def test_a_program_that_is_stopped_may_go_on(is_alone: bool) -> None:
    with started("sys.stdin.readline(); print('on')") as process:
        assert process.stdout is not None
        program = int(process.stdout.readline())
        stopped = (program,) if is_alone else (program, process.pid)
        for each in stopped:
            os.kill(each, signal.SIGSTOP)
        time.sleep(SILENT_S)
        for each in stopped:
            os.kill(each, signal.SIGCONT)
        said, complaint = process.communicate("\n", timeout=30)

    assert (said, complaint, process.returncode) == ("on\n", "", 0)


@pytest.mark.parametrize(
    ("limit", "has_one"), [(2 * GIB, True), (resource.RLIM_INFINITY, False)], ids=["limit", "none"]
)
def test_only_a_limited_program_has_one(limit: int, has_one: bool) -> None:
    code = (
        "import os, sys; from pegboard.cli import main\n"
        "from pegboard_plugins.shared.terminal import firstpaint\n"
        "first = os.getpid()\n"
        "main.run_command_line = lambda _: print(os.getppid() == first) or 0\n"
        "firstpaint.main()"
    )
    done = run(code, lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    assert (done.stdout, done.stderr) == (f"{has_one}\n", "")
