"""Other terminals for the chat: one at the end of a slow line, and tmux."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from plugins.chat.screen import KEYS, LIMIT_S, ChatTerminal
from plugins.cli.commands import COMMAND, CommandLine

DELAY_S = 0.05
"""Of each way."""
BYTES_A_SECOND = 2048


class SlowTerminal(ChatTerminal):
    """A terminal behind a line of 50 ms and 2 KB a second."""

    portion = int(BYTES_A_SECOND * DELAY_S)
    limit_s = 120.0

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._loop = asyncio.get_running_loop()

    def _read(self) -> None:
        """Take a portion, and the next one when the line has room for it."""
        super()._read()
        self._loop.remove_reader(self.ours)
        self._loop.call_later(DELAY_S, self._listen)

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            os.fstat(self.ours)
            self._loop.add_reader(self.ours, self._read)

    def press(self, *keys: str) -> None:
        """Keys arrive late."""
        text = "".join(KEYS.get(key, key) for key in keys).encode()
        self._loop.call_later(DELAY_S, os.write, self.ours, text)


class Tmux:
    """A chat in tmux."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.raw = b""

    def _run(self, *words: str) -> str:
        command = ["tmux", "-L", self._name, "-f", "/dev/null", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        return done.stdout

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, pegboard: CommandLine, *arguments: str, columns: int, rows: int
    ) -> "AsyncIterator[Tmux]":
        """A chat that is ready."""
        tmux = cls(f"pegboard-{uuid4().hex[:8]}")
        env = pegboard.environment() | {"TERM": "tmux-256color"}
        names = [f"{name}={value}" for name, value in env.items()]
        words = ["env", "-u", "XTERM_VERSION", *names, COMMAND, "chat", *arguments]
        script = (
            f"cd {shlex.quote(str(pegboard.project))}; {shlex.join(words)}; echo ENDED $?; sleep 60"
        )
        size = ("-x", str(columns), "-y", str(rows))
        try:
            tmux._run("new-session", "-d", *size, "sh", "-c", script)
            tmux._run("set-option", "-g", "history-limit", "50000")
            await tmux.see_now("script.json")
            yield tmux
        finally:
            tmux._run("kill-server")

    @property
    def everything(self) -> str:
        """Scrollback and screen."""
        rows = self._run("capture-pane", "-p", "-J", "-S", "-").split("\n")
        return "\n".join(row.rstrip() for row in rows)

    @property
    def shown(self) -> list[str]:
        """The rows of the screen."""
        return self._run("capture-pane", "-p").split("\n")

    def press(self, *keys: str) -> None:
        """Press keys by name; any other text is typed."""
        for key in keys:
            content = KEYS.get(key, key).encode()
            self._run("send-keys", "-H", *(f"{byte:02x}" for byte in content))

    def paste(self, text: str) -> None:
        """Paste as terminals do."""
        self._run("set-buffer", text)
        self._run("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    async def until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                while not holds():  # noqa: ASYNC110 - tmux tells nobody
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"it never came:\n{self.everything}") from None

    async def see(self, text: str) -> None:
        """Wait until this is on the screen or above it."""
        await self.until(lambda: text in self.everything)

    async def see_now(self, text: str) -> None:
        """Wait until this is on the screen."""
        await self.until(lambda: text in "\n".join(self.shown))

    async def gone(self, text: str) -> None:
        """Wait until this is no longer on the screen."""
        await self.until(lambda: text not in "\n".join(self.shown))

    async def say(self, text: str) -> None:
        """Write a prompt and send it."""
        self.press(text)
        await self.see_now(text[-20:])
        self.press("enter")

    async def end(self) -> int:
        """Wait until the chat has ended."""
        await self.see("ENDED")
        return 0
