"""Programs at a terminal: what they read and write, how they end, and that nothing is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pegboard import InvalidInputError
from pegboard_plugins.server.terminal import PAUSE_S, READ_BYTES, Terminal, TerminalSize
from support.processes.processes import remaining

LIMIT_S = 30.0
ENV = {"PATH": os.environ["PATH"], "PS1": "$ ", "TERM": "xterm"}


class Heard:
    """What a terminal has shown."""

    def __init__(self) -> None:
        self.content = b""
        self._more = asyncio.Event()

    def __call__(self, content: bytes) -> None:
        self.content += content
        self._more.set()

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(LIMIT_S):
            while text not in self.content:
                self._more.clear()
                await self._more.wait()


Opened = Callable[..., Awaitable[tuple[Terminal, Heard]]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    terminals: list[Terminal] = []

    async def start(*command: str, rows: int = 24, cols: int = 80) -> tuple[Terminal, Heard]:
        heard = Heard()
        terminal = await Terminal.open(
            command,
            cwd=tmp_path,
            env=ENV,
            size=TerminalSize(rows=rows, cols=cols),
            on_output=heard,
        )
        terminals.append(terminal)
        return terminal, heard

    yield start
    for terminal in terminals:
        await terminal.aclose()


async def ended(terminal: Terminal) -> int:
    async with asyncio.timeout(LIMIT_S):
        return await terminal.exited


async def test_a_shell_is_at_a_terminal_of_its_own(opened: Opened, tmp_path: Path) -> None:
    terminal, heard = await opened("bash", "--norc", rows=10, cols=33)

    await terminal.write("tty; stty size; pwd; echo h\u00e9-$((1+1)); exit 3\n".encode())

    assert await ended(terminal) == 3
    shown = heard.content.decode()
    assert "/dev/pts/" in shown
    assert "10 33" in shown
    assert str(tmp_path) in shown
    assert "h\u00e9-2" in shown
    assert "no job control" not in shown


async def test_ctrl_c_reaches_what_runs(opened: Opened) -> None:
    trap = "trap 'echo caught-$((40+2)); exit 5' INT"
    terminal, heard = await opened(
        "sh", "-c", f"{trap}; echo ready-$((1+1)); while :; do sleep 0.05; done"
    )
    await heard.until(b"ready-2")

    await terminal.write(b"\x03")

    await heard.until(b"caught-42")
    assert await ended(terminal) == 5


async def test_a_new_size_is_told(opened: Opened) -> None:
    terminal, heard = await opened(
        "bash", "--norc", "-c", "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done"
    )
    await heard.until(b"up")

    terminal.resize(TerminalSize(rows=50, cols=120))

    await heard.until(b"50 120")


@pytest.mark.parametrize("rows", [0, -1, 1001])
async def test_a_size_that_cannot_be_is_refused(opened: Opened, rows: int) -> None:
    with pytest.raises(InvalidInputError, match="1 to 1000"):
        await opened("bash", rows=rows)


@pytest.mark.parametrize("command", [("no-such-program",), ("",), ("bash", "a\0b")])
async def test_a_program_that_is_not_there_is_refused(
    opened: Opened, command: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInputError, match="no program"):
        await opened(*command)


async def test_the_last_words_come_before_the_end(opened: Opened) -> None:
    terminal, heard = await opened("bash", "-c", "head -c 300000 /dev/zero | tr '\\0' x; echo end")

    assert await ended(terminal) == 0
    assert heard.content.count(b"x") == 300_000
    assert heard.content.endswith(b"end\r\n")


async def test_closing_ends_the_whole_tree(opened: Opened) -> None:
    nap = str(80_000_000 + os.getpid())
    naps = f"setsid sleep {nap} & sleep {nap} & echo up"
    script = f"trap '' HUP TERM; {naps}; while :; do wait; done"
    terminal, heard = await opened("bash", "-c", script)
    await heard.until(b"up")

    await terminal.aclose()
    await terminal.aclose()

    assert await ended(terminal) == 128 + 9
    assert remaining(nap) == []


async def test_a_flood_leaves_the_loop_free(opened: Opened) -> None:
    terminal, heard = await opened("yes")
    await heard.until(b"y\r\ny")

    await asyncio.sleep(10 * PAUSE_S)
    before = len(heard.content)
    turns = 0
    async with asyncio.timeout(LIMIT_S):
        while len(heard.content) < before + 8 * READ_BYTES:
            await asyncio.sleep(0)
            turns += 1

    await terminal.aclose()
    assert turns > 8


async def test_typing_waits_for_a_program_that_does_not_read(opened: Opened) -> None:
    terminal, heard = await opened("bash", "-c", "stty raw -echo; echo up; read -n 1; exec cat")
    await heard.until(b"up")
    typing = asyncio.create_task(terminal.write(b"x" + b"z" * 200_000 + b"!"))

    await heard.until(b"!")

    await typing
    assert heard.content.count(b"z") == 200_000
