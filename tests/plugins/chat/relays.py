"""Other terminals for the chat: one at the end of a slow line, and tmux."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

from plugins.chat.screen import SHELL, ChatTerminal
from plugins.chat.terminals import LIMIT_S, AnyTerminal
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

    def write(self, content: bytes) -> None:
        self._loop.call_later(DELAY_S, os.write, self.ours, content)


class Tmux(AnyTerminal):
    """A chat in tmux."""

    def __init__(self, name: str, noted: Path) -> None:
        self._name = name
        self.noted = noted
        self._last = ""

    def _run(self, *words: str, given: str | None = None) -> str:
        command = ["tmux", "-L", self._name, "-f", "/dev/null", *words]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        return done.stdout

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        pegboard: CommandLine,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        ready: str = "script.json",
        **env: str,
    ) -> "AsyncIterator[Tmux]":
        """A chat that is ready: this is in its footer."""
        all_env = {**pegboard.environment(), "TERM": "tmux-256color", **env}
        names = [f"{name}={value}" for name, value in all_env.items()]
        chat = shlex.join(["env", "-u", "XTERM_VERSION", *names, COMMAND, "chat", *arguments])
        script = f"cd {shlex.quote(str(pegboard.project))}; {chat}; echo ENDED $?; sleep 60"
        async with cls.begun(pegboard.home, "sh", "-c", script, columns=columns, rows=rows) as tmux:
            await tmux.see_now(ready)
            yield tmux

    @classmethod
    def shell(
        cls, pegboard: CommandLine, columns: int, rows: int
    ) -> AbstractAsyncContextManager["Tmux"]:
        """A shell with job control."""
        env = {**pegboard.environment(), "TERM": "tmux-256color"}
        names = [f"{name}={value}" for name, value in env.items()]
        words = ["env", "-u", "XTERM_VERSION", "-C", str(pegboard.project), *names, *SHELL.split()]
        return cls.begun(pegboard.home, *words, columns=columns, rows=rows)

    @classmethod
    @asynccontextmanager
    async def begun(
        cls, folder: Path, *command: str, columns: int, rows: int
    ) -> "AsyncIterator[Tmux]":
        """A command in a tmux of its own; what it writes is noted in the folder."""
        name = f"pegboard-{uuid4().hex[:8]}"
        tmux = cls(name, folder / name)
        keep = ("start-server", ";", "set-option", "-g", "history-limit", "50000", ";")
        size = ("-x", str(columns), "-y", str(rows))
        note = (";", "pipe-pane", f"cat >> {shlex.quote(str(tmux.noted))}")
        try:
            tmux._run(*keep, "new-session", "-d", *size, *command, *note)
            yield tmux
        finally:
            tmux._last = tmux.everything
            tmux._run("kill-server")

    @property
    def raw(self) -> bytes:
        return self.noted.read_bytes()

    @property
    def everything(self) -> str:
        if self._last:
            return self._last
        rows = self._run("capture-pane", "-p", "-J", "-S", "-").split("\n")
        return "\n".join(row.rstrip() for row in rows)

    @property
    def shown(self) -> list[str]:
        return self._run("capture-pane", "-p").split("\n")

    def write(self, content: bytes) -> None:
        self._run("send-keys", "-H", *(f"{byte:02x}" for byte in content))

    def paste(self, text: str) -> None:
        self._run("load-buffer", "-", given=text)
        self._run("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    async def changed(self) -> None:
        await asyncio.sleep(0.05)

    async def end(self) -> int:
        await self.see("ENDED")
        return int(self.everything.rpartition("ENDED ")[2].split()[0])
