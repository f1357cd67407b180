"""A program on a terminal: what it writes, what is then on the screen, what it uses. Linux only."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte
from process_tree import descendants

COLUMNS, ROWS = 110, 40
LIMIT_S = 120.0
FRAME = b"\x1b[?2026h"
ALTERNATE, MOUSE = re.compile(rb"\x1b\[\?1049h"), re.compile(rb"\x1b\[\?100[0236][;\d]*h")
_ANSWERS: Mapping[bytes, bytes] = {
    rb"\x1b\[6n": b"\x1b[1;1R",
    rb"\x1b\[0?c": b"\x1b[?62;22c",
    rb"\x1b\[\?u": b"\x1b[?0u",
    rb"\x1b\]10;\?": b"\x1b]10;rgb:c9/d1/d9\x1b\\",
    rb"\x1b\]11;\?": b"\x1b]11;rgb:0d/11/17\x1b\\",
    rb"\x1b\[\?2026\$p": b"\x1b[?2026;2$y",
}
"""What programs ask a terminal, and what it answers: some wait for that."""
_TICKS_S = os.sysconf("SC_CLK_TCK")


class PtyProgram:
    """A program on a terminal of its own, from its start to `end`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self.written = bytearray()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self.began = time.monotonic()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], list(argv), dict(env))
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        modes = termios.tcgetattr(self._terminal)
        modes[3] &= ~termios.ECHO  # a key that the terminal shows is none that the program has
        termios.tcsetattr(self._terminal, termios.TCSANOW, modes)

    def __enter__(self) -> "PtyProgram":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def until(self, holds: Callable[[], bool]) -> float:
        """The seconds until it holds; looked at whenever something was written."""
        begin = time.monotonic()
        while not holds():
            self.read(0.1)
            if time.monotonic() - begin > LIMIT_S:
                raise TimeoutError("\n".join(self.shown))
        return time.monotonic() - begin

    def quiet(self, seconds: float) -> None:
        """Wait until nothing was written for so long."""
        while self.read(seconds):
            pass

    def read(self, wait_s: float) -> bool:
        """Take in what has come, and answer what was asked; whether something came."""
        if not select.select([self._terminal], [], [], wait_s)[0]:
            return False
        try:
            content = os.read(self._terminal, 65_536)
        except OSError:
            raise EOFError("\n".join(self.shown)) from None
        self.written += content
        for asked, answer in _ANSWERS.items():
            for _ in re.findall(asked, content):
                os.write(self._terminal, answer)
        return True

    @property
    def shown(self) -> list[str]:
        """The rows of the screen."""
        fresh = self.written[self._fed :]
        self._fed = len(self.written)
        self._stream.feed(re.sub(rb"\x1b\[[<>=?][\d;]*[um]|\x1bP.*?\x1b\\", b"", fresh))
        return list(self._screen.display)

    def has(self, text: str) -> bool:
        """Whether this is on the screen."""
        return any(text in row for row in self.shown)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._terminal, text.encode())

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far, of the whole tree."""
        return sum(_ticks(pid) for pid in {self.pid} | descendants(self.pid)) / _TICKS_S

    @property
    def memory_mb(self) -> float:
        """Resident memory of the whole tree; what two processes share counts twice."""
        return sum(_resident_kb(pid) for pid in {self.pid} | descendants(self.pid)) / 1000

    @property
    def wakes(self) -> int:
        """How often the first thread has woken up."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def end(self) -> None:
        """Leave it."""
        for pid in {self.pid} | descendants(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


def _ticks(pid: int) -> int:
    """Of user and system, with those of children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15])


def _resident_kb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1000
