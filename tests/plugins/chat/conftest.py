"""The `pegboard` command in a project of its own, and the two things that a chat talks with."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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


class Place:
    """An App in the chat's process, or a server beside it."""

    def __init__(self, pegboard: CommandLine, *, attached: bool) -> None:
        self._pegboard = pegboard
        self._attached = attached
        self._server: Process | None = None

    async def arguments(self) -> tuple[str, ...]:
        """What the chat is started with."""
        if not self._attached:
            return ()
        process = await self._pegboard.start("serve", "--port", "0")
        self._server = process
        assert process.stdout is not None
        async with asyncio.timeout(30):
            while line := await process.stdout.readline():
                words = line.decode().split()
                url = next((word for word in words if word.startswith("http://")), None)
                if url:
                    return ("--attach", url)
        raise AssertionError("the server did not say where it is")

    async def close(self) -> None:
        """End the server."""
        if self._server is not None:
            os.kill(self._server.pid, signal.SIGTERM)
            await self._server.communicate()
