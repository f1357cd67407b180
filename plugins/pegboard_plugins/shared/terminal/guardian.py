"""A parent process that ends and reports a program that ran out of memory.

Without any memory, Python 3.11 may search for an exception's handler forever and let no other
thread run, or C code may crash. The program cannot handle this itself. So it runs in a child
process, which regularly reports to the parent that it still runs.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from pegboard.unstable import OUT_OF_MEMORY, end_without_memory

BEAT_S = 1.0
MISSED_BEATS = 20
"""The number of missed reports after which the program is killed."""
_HEARD = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGALRM),
)
"""The signals that the parent process forwards, since other programs know only its id."""
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_HUNG = f"error: nothing has moved for {MISSED_BEATS} s; {OUT_OF_MEMORY}\n".encode()
_CRASHED = f"error: the program has crashed, most likely because {OUT_OF_MEMORY}\n".encode()
_FAILED = 1
_PR_SET_PDEATHSIG = 1


def call_guardian() -> None:
    """Continue the program in a child process, while this process waits until the child ends.

    The child gets a thread that regularly reports to the parent. If no process can be started, the
    program continues in this process.
    """
    sys.excepthook = _died
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        reading, writing = os.pipe()
        guardian = os.getpid()
        if program := os.fork():
            os.close(writing)
            _watch(program, reading)
    except (OSError, MemoryError):
        return
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guardian:
        os._exit(_FAILED)
    os.close(reading)
    # A signal that another thread takes does not interrupt what the main thread waits for.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=_beat, args=(writing,), name="pegboard-beat", daemon=True).start()
    except (RuntimeError, MemoryError):
        os.close(writing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _died(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End the process on MemoryError or SystemError; print any other uncaught exception."""
    if issubclass(kind, MemoryError | SystemError):
        end_without_memory()
    sys.__excepthook__(kind, error, trace)


def _beat(writing: int) -> None:
    try:
        while True:
            os.write(writing, b".")
            time.sleep(BEAT_S)
    finally:
        os.close(writing)


def _watch(program: int, reading: int) -> NoReturn:
    """Wait for the child process and exit with its status, or kill a child that reports no more."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored no end is told
        os.set_blocking(reading, False)
        # `sigtimedwait` gives what nobody has sent where a stop takes longer than its time.
        signal.setitimer(signal.ITIMER_REAL, BEAT_S, BEAT_S)
        missed = 0
        while missed < MISSED_BEATS:
            heard = signal.sigwaitinfo(_HEARD)
            ended, status = os.waitpid(program, os.WNOHANG)
            if ended:
                _end_as(os.waitstatus_to_exitcode(status))
            if heard.si_code <= 0:  # those of the kernel the program has itself
                os.kill(program, heard.si_signo)
            if _has_moved(reading) or _is_stopped(program):
                missed = 0
            else:
                missed += heard.si_signo == signal.SIGALRM
        os.kill(program, signal.SIGKILL)
        os.write(2, _HUNG)
    finally:
        os._exit(_FAILED)


def _end_as(code: int) -> NoReturn:
    """End with the child's exit code or signal; a crash becomes an error message."""
    if -code in _CRASHES:
        with suppress(OSError):
            os.write(2, _CRASHED)
        os._exit(_FAILED)
    if code < 0:
        with suppress(OSError):  # of SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code)


def _has_moved(reading: int) -> bool:
    """Return whether the child has written to the pipe since the last call, or has closed it."""
    try:
        os.read(reading, 1 << 16)
    except BlockingIOError:
        return False
    return True


def _is_stopped(process: int) -> bool:
    """Return whether the process is stopped, as by Ctrl-Z."""
    facts = Path(f"/proc/{process}/stat").read_bytes()
    return facts.rpartition(b")")[2].split()[0] in b"Tt"
