"""Runs the `pegboard` command as a user does: a process, with pipes or on a terminal.

It is a fork with all modules in memory, see `forks`; the start itself has its own tests.
"""

import asyncio
import codecs
import fcntl
import json
import os
import pty
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.ids import IdSource
from pegboard.schema.session import Rule
from pegboard.storage.changes import PutApproval
from pegboard.workspace import open_workspace
from pegboard_plugins.sqlite import open_sqlite
from support.models.model_server import Answer, Pause, text
from support.processes.forks import (
    DEVNULL,
    PEGBOARD,
    PIPE,
    READ_AT_START,
    Running,
    begin,
    environment,
)
from support.processes.processes import is_asleep, wake_ups
from support.running.beside import VARIABLE as DISABLING
from support.running.beside import without_others

COMMAND = PEGBOARD
Process = Running | asyncio.subprocess.Process
LIMIT_S = 60


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The JSON records on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class CommandLine:
    """The command with its user's folders in `home`, at work in `project`."""

    home: Path
    project: Path
    env: dict[str, str] = field(default_factory=dict)

    def use_model(self, url: str, **settings: object) -> None:
        """Make `fake/model` at this base URL the user's model."""
        provider = {
            "options": {"baseURL": url, "apiKey": "key"},
            "models": {
                "model": {
                    "limit": {"context": 100_000, "output": 4_000},
                    "cost": {"input": 1_000.0, "output": 2_000.0},
                }
            },
        }
        self.configure(model="fake/model", provider={"fake": provider}, **settings)

    def configure(self, **settings: object) -> None:
        """Write the user's configuration."""
        folder = self.home / "config"
        folder.mkdir(exist_ok=True)
        (folder / "opencode.json").write_text(json.dumps(settings))

    def script(self, *steps: dict[str, Any]) -> str:
        """The name of a model that answers with these steps."""
        file = self.home / "script.json"
        file.write_text(json.dumps({"scripts": [{"steps": list(steps)}]}))
        return f"scripted/{file}"

    def environment(self) -> dict[str, str]:
        """The environment of the process: a user's, without keys and colours."""
        folders = {
            f"PEGBOARD_{name.upper()}_DIR": str(self.home / name)
            for name in ("config", "data", "state", "cache")
        }
        kept = {
            name: value
            for name, value in environment().items()
            if name in ("PATH", "HOME") or name.startswith(READ_AT_START)
        }
        quick = {"TERM": "xterm", DISABLING: "litellm"}
        chosen = {**kept, **quick, **folders, **self.env}
        return {**chosen, DISABLING: without_others(chosen[DISABLING])}

    async def start(self, *arguments: str, **streams: int) -> Process:
        """A running command."""
        return await begin(
            (COMMAND, *arguments),
            cwd=self.project,
            env=self.environment(),
            **{"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, **streams},
        )

    async def __call__(self, *arguments: str, stdin: str | None = None) -> Done:
        """A command that has ended."""
        streams = {} if stdin is None else {"stdin": PIPE}
        process = await self.start(*arguments, **streams)
        return await finished(process, stdin)

    @asynccontextmanager
    async def terminal(
        self, *arguments: str, columns: int | None = None
    ) -> "AsyncIterator[Terminal]":
        """A command on a terminal, which has this many columns."""
        ours, theirs = pty.openpty()
        if columns is not None:
            termios.tcsetwinsize(theirs, (24, columns))
        process = await self.start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs)
        terminal = Terminal(ours, os.ttyname(theirs), process)
        os.close(theirs)
        try:
            yield terminal
        finally:
            if process.returncode is None:
                process.kill()
            await terminal.end()
            os.close(ours)


class HalfAnswer:
    """The script of a model that answers half and then waits; `asked` is set by the request."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def __call__(self, _: dict[str, Any]) -> Answer:
        """Begin to answer a request."""
        self.asked.set()
        return [*text("half an answer"), Pause()]


async def finished(process: Process, stdin: str | None = None) -> Done:
    """The end of a command."""
    try:
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate(None if stdin is None else stdin.encode())
    except TimeoutError:
        process.kill()
        await process.communicate()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


class Terminal:
    """The person's side of a terminal."""

    def __init__(self, descriptor: int, name: str, process: Process) -> None:
        self._descriptor, self._name = descriptor, name
        self._more = asyncio.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.process = process
        self.shown = ""
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._descriptor, text.encode())

    async def press(self, text: str) -> None:
        """Press keys, and wait until the command has read them and waits for more."""
        pid = self.process.pid
        async with asyncio.timeout(LIMIT_S):
            while not is_asleep(pid):  # noqa: ASYNC110 - the kernel has no event for it
                await asyncio.sleep(0.01)
            before = wake_ups(pid)
            self.type(text)
            while wake_ups(pid) == before or self._unread() or not is_asleep(pid):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def _unread(self) -> bool:
        theirs = os.open(self._name, os.O_RDWR | os.O_NOCTTY)
        try:
            return any(fcntl.ioctl(theirs, termios.FIONREAD, bytes(4)))
        finally:
            os.close(theirs)

    async def see(self, text: str) -> None:
        """Wait until this is on the screen."""
        await self.see_again(text, 1)

    async def see_again(self, text: str, times: int) -> None:
        """Wait until this was written so often."""
        async with asyncio.timeout(LIMIT_S):
            while self.shown.count(text) < times:
                self._more.clear()
                await self._more.wait()

    async def end(self) -> int:
        """Wait for the end of the command; its exit code."""
        async with asyncio.timeout(LIMIT_S):
            code = await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._drain()
        return code

    def _drain(self) -> None:
        os.set_blocking(self._descriptor, False)
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            content = os.read(self._descriptor, 65_536)
        except OSError:  # the other side is closed, or nothing is left
            asyncio.get_running_loop().remove_reader(self._descriptor)
            return False
        self.shown = (self.shown + self._decoder.decode(content)).replace("\r\n", "\n")
        self._more.set()
        return bool(content)


def quick_model(pegboard: CommandLine) -> str:
    """The name of a model that looks at the project and is done, without a pause."""
    file = pegboard.home / "quick.json"
    steps = [{"calls": [{"tool": "list", "input": {}}]}, {"text": "Done."}]
    file.write_text(json.dumps({"scripts": [{"steps": steps}], "chunk_delay_s": 0}))
    return f"scripted/{file}"


async def approve(
    pegboard: CommandLine, *patterns: str, key: str | None = None, agent: str | None = None
) -> str:
    """Approvals as somebody would have given them; the key they are stored for."""
    storage = await open_sqlite(pegboard.home / "data" / "pegboard.db", ids=IdSource())
    used = key or open_workspace(pegboard.project).project_id
    rules = tuple(Rule("bash", pattern, "allow") for pattern in patterns)
    await storage.commit(PutApproval(used, rules, agent=agent, at=1_700_000_000_000))
    await storage.aclose()
    return used
