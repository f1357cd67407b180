"""What every terminal of the tests has: keys go in, screen and scrollback come out."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from plugins.cli.commands import Process
from support.processes.processes import is_asleep, wake_ups

LIMIT_S = 40.0
QUIET_S = 0.15
OF_CLOCKS = 5
"""Wake-ups in that time which a chat at rest has: a timer for each of its parts."""
WAITING = "Ctrl+X to answer"
RULE = "──────────"
HEADS = ("Allow ", "Question", "Get started")
"""The head of a dialog: a call that is asked for stands on the screen before its dialog."""
KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "alt-enter": "\x1b\r",
    "tab": "\t",
    "s-tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f2": "\x1bOQ",
    **{f"c-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}


class AnyTerminal(ABC):
    """One chat on a terminal."""

    process: Process | None = None
    limit_s: ClassVar[float] = LIMIT_S

    @property
    @abstractmethod
    def raw(self) -> bytes:
        """All that the chat has written."""

    @property
    @abstractmethod
    def shown(self) -> list[str]:
        """The rows of the screen."""

    @property
    @abstractmethod
    def everything(self) -> str:
        """Scrollback and screen."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Send this to the chat."""

    @abstractmethod
    def paste(self, text: str) -> None:
        """Paste as terminals do (bracketed)."""

    @abstractmethod
    def resize(self, columns: int, rows: int) -> None:
        """Another size."""

    @abstractmethod
    async def changed(self) -> None:
        """Wait until something may be another."""

    @abstractmethod
    async def end(self) -> int:
        """Wait until the chat has ended."""

    @property
    def above(self) -> str:
        """All that stands above the footer's rule and lines for good, and what is live."""
        rows = self.everything.split("\n")
        rules = [n for n, row in enumerate(rows) if row.startswith(RULE)]
        return "\n".join(rows[: rules[-1]]) if rules else "\n".join(rows)

    @property
    def editor(self) -> str:
        """The first row of the editor."""
        rows = self.shown
        rules = [number for number, row in enumerate(rows) if row.startswith(RULE)]
        return rows[rules[-1] + 1].strip() if rules and rules[-1] + 1 < len(rows) else ""

    @property
    def status(self) -> str:
        """The last line."""
        return next((row for row in reversed(self.shown) if row.strip()), "")

    def press(self, *keys: str) -> None:
        """Press keys by name; any other text is typed."""
        for key in keys:
            self.write(KEYS.get(key, key).encode())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to be so."""
        try:
            async with asyncio.timeout(self.limit_s):
                while not holds():
                    await self.changed()
        except TimeoutError:
            raise AssertionError(f"it never came:\n{self.everything}") from None

    async def quiet(self) -> None:
        """Wait until the chat has slept and written nothing for a moment, but for its clocks."""
        written, woken = -1, -1
        while True:  # the kernel counts
            before, written = written, len(self.raw)
            slept, woken = woken, wake_ups(self.process.pid) if self.process else 0
            if written == before and woken - slept <= OF_CLOCKS and self._rests():
                return
            await asyncio.sleep(QUIET_S)

    def _rests(self) -> bool:
        return self.process is None or is_asleep(self.process.pid)

    async def see(self, text: str) -> None:
        """Wait until this is on the screen or above it."""
        await self.until(lambda: text in self.everything)

    async def see_now(self, text: str) -> None:
        """Wait until this is on the screen."""
        await self.until(lambda: text in "\n".join(self.shown))

    async def see_dialog(self, text: str) -> None:
        """Wait until a dialog with this text is on the screen and has the keys."""
        while True:
            await self.until(lambda: text in self.dialog and WAITING not in self.dialog)
            await self.quiet()  # a frame may be half drawn
            if text in self.dialog and WAITING not in self.dialog:
                return

    @property
    def dialog(self) -> str:
        """The rows from the head of the last dialog on, "" where there is none."""
        rows = self.shown
        heads = [number for number, row in enumerate(rows) if row.startswith(HEADS)]
        return "\n".join(rows[heads[-1] :]) if heads else ""

    async def gone(self, text: str) -> None:
        """Wait until this is no longer on the screen."""
        await self.until(lambda: text not in "\n".join(self.shown))

    async def say(self, text: str) -> None:
        """Write a prompt and send it."""
        self.press(text)
        await self.see_now(text[-20:])
        self.press("enter")
