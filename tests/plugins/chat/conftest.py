"""The `pegboard` command in a project of its own, and where a chat is and what it talks with."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from plugins.chat.relays import SlowTerminal, Tmux
from plugins.chat.screen import ChatTerminal, chat, shell
from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine, Process


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    return CommandLine(tmp_path, project)


@pytest.fixture(params=["in-process", "attached"])
async def place(request: pytest.FixtureRequest, pegboard: CommandLine) -> "AsyncIterator[Place]":
    """Where the session is: started by the test when its model is written."""
    found = Place(pegboard, attached=request.param == "attached")
    yield found
    await found.close()


WAYS = ("pyte", "pyte-attached", "tmux", "tmux-attached")


@pytest.fixture(params=["pyte", *(pytest.param(name, marks=pytest.mark.long) for name in WAYS[1:])])
async def way(request: pytest.FixtureRequest, pegboard: CommandLine) -> "AsyncIterator[Way]":
    """Each terminal, with the session in the chat's process and on a server."""
    if request.param.startswith("tmux") and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    found = Way(pegboard, request.param)
    yield found
    await found.place.close()


class Way:
    """A terminal of one kind, and the place of its session."""

    def __init__(self, pegboard: CommandLine, name: str) -> None:
        self._pegboard = pegboard
        self.in_tmux = name.startswith("tmux")
        self._slow = name.startswith("slow")
        self.place = Place(pegboard, attached=name.endswith("attached"))

    async def arguments(self) -> tuple[str, ...]:
        """What a chat is started with; a server is begun with the first one."""
        return await self.place.arguments()

    def opened(
        self, *arguments: str, columns: int = 80, rows: int = 24, **env: str
    ) -> AbstractAsyncContextManager[AnyTerminal]:
        """A chat that is ready."""
        if self.in_tmux:
            return Tmux.opened(self._pegboard, *arguments, columns=columns, rows=rows, **env)
        terminal = SlowTerminal if self._slow else ChatTerminal
        return chat(
            self._pegboard, *arguments, columns=columns, rows=rows, terminal=terminal, **env
        )

    def shell(self) -> AbstractAsyncContextManager[AnyTerminal]:
        """A shell in which a chat can be started."""
        begin = Tmux.shell if self.in_tmux else shell
        return begin(self._pegboard, 80, 24)


class Place:
    """An App in the chat's process, or a server beside it."""

    def __init__(self, pegboard: CommandLine, *, attached: bool) -> None:
        self._pegboard = pegboard
        self._attached = attached
        self._server: Process | None = None
        self._url = ""

    async def arguments(self) -> tuple[str, ...]:
        """What the chat is started with."""
        if not self._attached:
            return ()
        if self._url:
            return ("--attach", self._url)
        process = await self._pegboard.start("serve", "--port", "0")
        self._server = process
        assert process.stdout is not None
        async with asyncio.timeout(30):
            while line := await process.stdout.readline():
                words = line.decode().split()
                url = next((word for word in words if word.startswith("http://")), None)
                if url:
                    self._url = url
                    return ("--attach", url)
        raise AssertionError("the server did not say where it is")

    async def close(self) -> None:
        """End the server."""
        if self._server is not None:
            os.kill(self._server.pid, signal.SIGTERM)
            await self._server.communicate()
