"""What the chat costs on a terminal: first paint, memory, CPU and bytes of a stream, key echo.

`python tests/bench/bench_chat.py` starts the chat in a pty with a scripted model that says
a thousand pieces a second, and prints the figures beside their targets. Linux only.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

COLUMNS, ROWS = 110, 40
STARTS = 5
DELTAS = 5000
TURNS = 200
ECHOES = 60
LIMIT_S = 120.0
RULE = "──────────".encode()  # the top of the footer
FRAME = b"\x1b[?2026h"
WORDS = ("agent", "reads", "`calc`", "finds", "that", "**add**", "edits", "line")
WORDS_A_BLOCK = 60
CHUNK = 5


class Program:
    """A chat in a pty, and all that it has written."""

    def __init__(self, folder: Path) -> None:
        names = ("config", "data", "state", "cache")
        places = {f"PEGBOARD_{name.upper()}_DIR": str(folder / name) for name in names}
        env = {**os.environ, **places, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        command = str(Path(sys.executable).with_name("pegboard"))
        self.began = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder / "project")
            os.execve(command, [command, "chat"], env)
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self.written = bytearray()

    def until(self, holds: Callable[[bytearray], bool]) -> float:
        """The seconds until what was written is so."""
        begin = time.perf_counter()
        while not holds(self.written):
            self.read(0.5)
            if time.perf_counter() - begin > LIMIT_S:
                raise TimeoutError(bytes(self.written[-2000:]))
        return time.perf_counter() - begin

    def read(self, wait_s: float) -> None:
        """Take in what has come."""
        if select.select([self._terminal], [], [], wait_s)[0]:
            self.written += os.read(self._terminal, 65_536)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._terminal, text.encode())

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far, of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """Resident memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> None:
        """Leave it."""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@contextmanager
def started(folder: Path) -> Iterator[Program]:
    """A chat that has painted."""
    program = Program(folder)
    try:
        program.until(lambda written: RULE in written)
        yield program
    finally:
        program.end()


def prepare(folder: Path) -> None:
    """A project, and a model that streams or answers in a word."""
    (folder / "project").mkdir()
    (folder / "config").mkdir()
    pieces = (
        "\n\n" if number % WORDS_A_BLOCK == 0 else WORDS[number % len(WORDS)]
        for number in range(1, DELTAS + 1)
    )
    text = "".join(f"{piece:<{CHUNK}}"[:CHUNK] for piece in pieces) + "streamend."
    scripts = [
        {"when": {"tools": False}, "steps": [{"text": "Title"}]},
        {"when": {"prompt": "stream"}, "steps": [{"text": text}]},
        {"steps": [{"text": "Answer {{prompt}}."}]},
    ]
    for name, delay_s in (("slow", 0.001), ("quick", 0)):
        transcript = {"scripts": scripts, "chunk_chars": CHUNK, "chunk_delay_s": delay_s}
        (folder / f"{name}.json").write_text(json.dumps(transcript))


def use(folder: Path, name: str) -> None:
    """Make one of the models the user's."""
    config = {"model": f"scripted/{folder / name}.json"}
    (folder / "config" / "opencode.json").write_text(json.dumps(config))


def first_paint(folder: Path) -> tuple[float, float, float]:
    """The best seconds to the first paint, to an answer's first letter after Enter; MB at rest."""
    use(folder, "quick")
    paints, answers, memory = [], [], []
    for _ in range(STARTS):
        with started(folder) as program:
            paints.append(time.perf_counter() - program.began)
            program.type("hello\r")
            answers.append(program.until(lambda written: b"Answer hello" in written))
            time.sleep(1)
            memory.append(program.memory_mb)
    return min(paints), min(answers), min(memory)


def stream(folder: Path) -> tuple[float, float, float, float]:
    """CPU seconds and KB for 1,000 deltas, frames a second, and the 95th percentile of a key."""
    use(folder, "slow")
    with started(folder) as program:
        time.sleep(2)
        cpu_s, size = program.cpu_s, len(program.written)
        began = time.perf_counter()
        program.type("stream\r")
        program.until(lambda written: b"streamend." in written)
        took_s = time.perf_counter() - began
        thousands = DELTAS / 1000
        frames = program.written[size:].count(FRAME)
        costs = (program.cpu_s - cpu_s) / thousands, (len(program.written) - size) / thousands
    with started(folder) as program:
        time.sleep(2)
        program.type("stream\r")
        time.sleep(0.5)
        echoes = list(_echoes(program))
    return costs[0], costs[1] / 1000, frames / took_s, _p95(echoes)


def _echoes(program: Program) -> Iterator[float]:
    for number in range(ECHOES):
        letter = "qwzxQWZX"[number % 8]
        size = len(program.written)
        began = time.perf_counter()
        program.type(letter)
        while letter.encode() not in program.written[size:]:
            program.read(0.05)
        yield time.perf_counter() - began
        time.sleep(0.03)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def turns(folder: Path) -> float:
    """MB after many turns."""
    use(folder, "quick")
    with started(folder) as program:
        for number in range(TURNS):
            program.type(f"turn{number}x\r")
            wanted = f"Answer turn{number}x".encode()
            program.until(lambda written, wanted=wanted: wanted in written)  # type: ignore[misc]
        return program.memory_mb


def main() -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        paint_s, answer_s, rest_mb = first_paint(folder)
        cpu_s, written_kb, frames, echo_s = stream(folder)
        rows = (
            ("first paint, s", paint_s, 0.20),
            ("first answer after Enter at once, s", answer_s, 0.5),
            ("memory after one turn, MB", rest_mb, 60),
            ("CPU for 1,000 deltas, s", cpu_s, 0.20),
            ("written for 1,000 deltas, KB", written_kb, 30),
            ("frames a second", frames, 30),
            ("key echo while it streams, p95, ms", echo_s * 1000, 16),
            (f"memory after {TURNS} turns, MB", turns(folder), 100),
        )
    for text, figure, target in rows:
        sys.stdout.write(f"{text:<40}{figure:>10.3f}   target {target:g}\n")


if __name__ == "__main__":
    main()
