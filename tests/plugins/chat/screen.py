"""A terminal with history for the chat, in the tests' own process."""

import asyncio
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any

import pyte

from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine, Process

FORBIDDEN = re.compile(rb"\x1b\[(\?1049h|\?100[0236]h|\?1015h|[23]J|\d+;\d+r)")
"""Alternate screen, mouse, clearing, scroll regions."""


BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
"""A synchronised update: a terminal shows what is between them at once."""
END_WAIT_S = 5
"""After the last byte: an update whose program was killed is shown without its end."""

SHELL = "bash --norc --noprofile -i"


class ChatTerminal(AnyTerminal):
    """A terminal of our own, which keeps all rows that leave its screen.

    It shows a frame that is one synchronised update when all of it has arrived.
    """

    portion = 65_536
    """Bytes that are read at once."""
    raw = b""

    def __init__(self, columns: int, rows: int) -> None:
        self.process: Process | None = None
        self._screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._unshown = b""
        self._read_at = time.monotonic()
        self.ours, self.theirs = pty.openpty()
        self._scrollback: list[str] = []
        self._more = asyncio.Event()
        self._size(columns, rows)
        asyncio.get_running_loop().add_reader(self.ours, self._read)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """This terminal cuts lines, and wraps none anew; no row is lost."""
        screen = self._screen
        place = screen.cursor.y
        filled = max([place, *(n for n, row in enumerate(screen.display) if row.strip())])
        for _ in range(max(0, filled + 1 - rows)):
            screen.cursor.y = screen.lines - 1
            screen.index()
            place -= 1
        screen.cursor.y = max(0, place)
        screen.lines = rows
        screen.resize(rows, columns)
        self._size(columns, rows)
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGWINCH)

    def _read(self) -> None:
        try:
            content = os.read(self.ours, self.portion)
        except OSError:
            content = b""
        if not content:
            asyncio.get_running_loop().remove_reader(self.ours)
            return
        self.raw += content
        self._read_at = time.monotonic()
        self._unshown += content
        self._show(_whole(self._unshown))

    def _show(self, length: int) -> None:
        content, self._unshown = self._unshown[:length], self._unshown[length:]
        self._stream.feed(content)
        self._more.set()

    @property
    def shown(self) -> list[str]:
        return [row.rstrip() for row in self._screen.display]

    @property
    def scrollback(self) -> list[str]:
        """The rows that have left the screen."""
        left = self._screen.history.top
        for row in islice(left, len(self._scrollback), None):
            cells = range(max(row, default=-1) + 1)
            self._scrollback.append("".join(row[n].data for n in cells).rstrip())
        return self._scrollback

    @property
    def everything(self) -> str:
        return "\n".join([*self.scrollback, *self.shown])

    def write(self, content: bytes) -> None:
        os.write(self.ours, content)

    def paste(self, text: str) -> None:
        content = f"\x1b[200~{text}\x1b[201~".encode()
        while content:
            written = os.write(self.ours, content[:1000])
            content = content[written:]

    async def changed(self) -> None:
        self._more.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._more.wait()
        if self._unshown and time.monotonic() - self._read_at > END_WAIT_S:
            self._show(len(self._unshown))

    def _cooked(self) -> bool:
        """Whether another program has the terminal: the chat takes each key as it is."""
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ISIG)

    async def left(self) -> None:
        """Wait until another program has the terminal."""
        await self._until_cooked(wanted=True)

    async def back(self) -> None:
        """Wait until the chat has it again."""
        await self._until_cooked(wanted=False)

    async def _until_cooked(self, *, wanted: bool) -> None:
        async with asyncio.timeout(self.limit_s):
            while self._cooked() is not wanted:  # noqa: ASYNC110 - a terminal tells nobody
                await asyncio.sleep(0.01)

    async def end(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(self.limit_s):
            return await self.process.wait()


def _whole(content: bytes) -> int:
    """Return how many of the bytes are before an update that has not ended."""
    begun = content.rfind(BEGIN)
    if begun > content.rfind(END):
        return begun
    cut = next((n for n in range(len(BEGIN) - 1, 0, -1) if content.endswith(BEGIN[:n])), 0)
    return len(content) - cut


@asynccontextmanager
async def chat(
    pegboard: CommandLine,
    *arguments: str,
    columns: int = 80,
    rows: int = 24,
    ready: str = "script.json",
    terminal: type[ChatTerminal] = ChatTerminal,
    **env: str,
) -> AsyncIterator[ChatTerminal]:
    """A chat that is ready: this is in its footer."""
    shown = terminal(columns, rows)
    pegboard.env |= {"TERM": "xterm-256color", "XTERM_VERSION": "pyte", **env}
    theirs = shown.theirs
    shown.process = await pegboard.start(
        "chat", *arguments, stdin=theirs, stdout=theirs, stderr=theirs
    )
    async with _held(shown):
        await shown.see_now(ready)
        yield shown


@asynccontextmanager
async def shell(pegboard: CommandLine, columns: int, rows: int) -> AsyncIterator[ChatTerminal]:
    """A shell with job control on a terminal of its own."""
    shown = ChatTerminal(columns, rows)
    place = os.ttyname(shown.theirs)
    env = {**pegboard.environment(), "TERM": "xterm-256color", "XTERM_VERSION": "pyte"}
    shown.process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"exec {SHELL} <{place} >{place} 2>&1"),
        start_new_session=True,
        cwd=pegboard.project,
        env=env,
    )
    async with _held(shown):
        yield shown


@asynccontextmanager
async def _held(shown: ChatTerminal) -> AsyncIterator[None]:
    """The terminal is open until the end of its process, which comes with ours."""
    assert shown.process is not None
    try:
        yield
    finally:
        if shown.process.returncode is None:
            with suppress(ProcessLookupError):
                shown.process.kill()
            await shown.process.wait()
        asyncio.get_running_loop().remove_reader(shown.ours)
        os.close(shown.ours)
        os.close(shown.theirs)


def scripts(pegboard: CommandLine, **said: Any) -> None:
    """Make a model of the user's whose answer depends on a word of the prompt.

    No mode asks, unless the settings name one.
    """
    listed = [
        {"when": {"prompt": word}, "steps": steps if isinstance(steps, list) else [steps]}
        for word, steps in said.items()
        if word not in ("delay_s", "chunk_chars", "settings")
    ]
    others: list[Any] = [
        {"when": {"tools": False}, "steps": [{"text": "A title"}]},
        *listed,
        {"steps": [{"text": "You said: {{prompt}}"}]},
    ]
    file = pegboard.home / "script.json"
    speed = {"chunk_chars": said.get("chunk_chars", 8), "chunk_delay_s": said.get("delay_s", 0)}
    transcript = {"scripts": others, **speed}
    file.write_text(json.dumps(transcript))
    settings = {"permission_mode": "everything", **said.get("settings", {})}
    pegboard.configure(model=f"scripted/{file}", **settings)
