"""Under a limit of memory a program that hangs or crashes ends with a sentence."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
GIB = 1 << 30
SILENT_S = 4.0
"""Longer than a program that moves may be silent, in `PROGRAM`."""
PROGRAM = """
import ctypes, os, signal, sys, threading, time
from pegboard.cli import guardian
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

    assert done.returncode == -signal.SIGKILL
    assert done.stderr.startswith("error: nothing has moved for ")
    assert "ulimit -v" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_has_a_sentence(number: signal.Signals) -> None:
    done = run(PROGRAM.format(does=f"os.kill(os.getpid(), {int(number)})"))

    assert done.returncode == -number
    assert done.stderr.startswith("error: the program has crashed, most likely because")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "does",
    [f"time.sleep({SILENT_S})", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"],
    ids=["its end", "an end at once", "somebody's kill"],
)
def test_of_any_other_end_nothing_is_said(does: str) -> None:
    assert run(PROGRAM.format(does=does)).stderr == ""


def test_a_program_that_is_stopped_may_go_on() -> None:
    program = PROGRAM.format(does="print('up', flush=True); sys.stdin.readline(); print('on')")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(SILENT_S)
        process.send_signal(signal.SIGCONT)
        said, complaint = process.communicate("\n", timeout=30)

    assert (said, complaint, process.returncode) == ("on\n", "", 0)


@pytest.mark.parametrize(
    ("limit", "has_one"), [(2 * GIB, True), (resource.RLIM_INFINITY, False)], ids=["limit", "none"]
)
def test_only_a_limited_program_has_one(limit: int, has_one: bool) -> None:
    code = (
        "import sys; from pegboard.cli import main\n"
        "main.run_command_line = lambda _: print('pegboard.cli.guardian' in sys.modules) or 0\n"
        "main.main()"
    )
    done = run(code, lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    assert (done.stdout, done.stderr) == (f"{has_one}\n", "")
