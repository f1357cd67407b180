"""The handling of SIGHUP, and a time limit for the end of the process."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


@contextmanager
def on_hangup(act: Callable[[], object]) -> Iterator[None]:
    """Call `act` in the signal handler at the first SIGHUP, and ignore every later SIGHUP.

    Later signals are ignored until the process ends, because they may arrive while a session is
    being saved. If SIGHUP is already ignored, as with `nohup`, `act` is never called.
    """
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        yield
        return

    def hear(*_: object) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        act()

    signal.signal(signal.SIGHUP, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGHUP) is hear:
            signal.signal(signal.SIGHUP, before)


def end_within(limit_s: float, log: "Logger") -> None:
    """End the process with status 1 after `limit_s` seconds, even if a thread or plugin hangs."""

    def leave(*_: object) -> None:
        log.error("not all has ended within %.0f s, and it is left behind", limit_s)
        os._exit(1)

    signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
