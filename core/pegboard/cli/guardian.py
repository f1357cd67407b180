"""Under a limit of memory a second process sees to it that this one ends, and with a sentence.

Where not even an integer finds room, Python 3.11 may look for the handler of an exception without
end and lets no other thread run meanwhile; C code of others crashes. The process itself can help
neither: it tells the second one that it moves, and `faulthandler` tells it of a crash.
"""

import faulthandler
import os
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from pegboard.kit.outofmemory import OUT_OF_MEMORY

BEAT_S = 1.0
MISSED_BEATS = 20
"""So many in turn end the process: no code of ours or of a library keeps all threads so long."""
_MOVES, _QUIET, _CRASH = b".", b"q", b"Fatal"
_HUNG = f"error: nothing has moved for {MISSED_BEATS} s; {OUT_OF_MEMORY}\n".encode()
_CRASHED = f"error: the program has crashed, most likely because {OUT_OF_MEMORY}\n".encode()


def call_guardian() -> None:
    """Start the second process, which ends when this one does; without one where there is no room.

    This process then has a thread more, which tells that it moves.
    """
    with suppress(OSError, RuntimeError, MemoryError):
        watched = os.getpid()
        reading, writing = os.pipe()
        if os.fork() == 0:
            _watch(reading, watched)
        os.close(reading)
        faulthandler.enable(writing)
        beat = threading.Thread(target=_beat, args=(writing,), name="pegboard-beat", daemon=True)
        beat.start()


def _beat(writing: int) -> None:
    with suppress(OSError):  # the guardian was killed
        try:
            while True:
                os.write(writing, _MOVES)
                time.sleep(BEAT_S)
        finally:
            os.write(writing, _QUIET)


def _watch(reading: int, watched: int) -> NoReturn:
    """The second process: all that it has left open is the pipe and stderr."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(reading, 0)
        os.dup2(2, 1)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        words = _verdict(watched)
        if words and os.getppid() == watched:
            os.write(2, words)
            if words is _HUNG:
                os.kill(watched, signal.SIGKILL)
    finally:
        os._exit(0)


def _verdict(watched: int) -> bytes:
    """What there is to say at the end of the process; empty if it has ended by itself."""
    missed, beats = 0, False
    while missed < MISSED_BEATS:
        if not select.select([0], [], [], BEAT_S)[0]:
            missed += beats and not _is_stopped(watched)
            continue
        said = os.read(0, 1 << 16)
        if not said:
            return b""
        if _CRASH in said:
            return _CRASHED
        missed, beats = 0, _QUIET not in said
    return _HUNG


def _is_stopped(process: int) -> bool:
    """Whether somebody has stopped it (Ctrl-Z), so that it cannot move."""
    facts = Path(f"/proc/{process}/stat").read_bytes()
    return facts.rpartition(b")")[2].split()[0] in b"Tt"
