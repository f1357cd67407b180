"""What stands on the terminal before the chat's libraries are there."""

import asyncio
import os
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from plugins.chat.screen import ChatTerminal, chat, scripts
from plugins.chat.terminals import RULE
from plugins.cli.commands import CommandLine

MOST_LOADED = 41
"""Modules beyond those that Python starts with; the encodings that a terminal has among them."""
PAINTED = """
import sys

before = set(sys.modules)
from pegboard_plugins.shared.terminal import firstpaint

write = firstpaint._write

def noted(text):
    open(NOTE, "w").write(" ".join(set(sys.modules) - before))
    firstpaint._write = write
    write(text)

firstpaint._write = noted
sys.argv[1:] = ARGUMENTS
firstpaint.main()
"""


@asynccontextmanager
async def program(pegboard: CommandLine, source: str) -> AsyncIterator[ChatTerminal]:
    """A program that becomes the chat."""
    terminal = ChatTerminal(80, 24)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", source,
        stdin=terminal.theirs, stdout=terminal.theirs, stderr=terminal.theirs,
        env={**pegboard.environment(), "TERM": "xterm-256color"}, cwd=pegboard.project,
    )  # fmt: skip
    try:
        yield terminal
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(terminal.ours)
        os.close(terminal.ours)
        os.close(terminal.theirs)


@pytest.mark.parametrize("arguments", [[], ["-c"], ["chat"], ["chat", "--continue"]])
async def test_the_footer_is_painted_before_anything_is_loaded(
    pegboard: CommandLine, tmp_path: Path, arguments: list[str]
) -> None:
    scripts(pegboard)
    note = tmp_path / "loaded"
    facts = f"NOTE, ARGUMENTS = {str(note)!r}, {arguments}"

    async with program(pegboard, f"{facts}\n{PAINTED}") as terminal:
        await terminal.see_now("script.json")
        terminal.press("hello", "enter")
        await terminal.see("You said: hello")

    loaded = set(note.read_text().split())
    ours = {name for name in loaded if name.startswith("pegboard")}
    assert ours == {
        "pegboard",
        "pegboard.cli",
        "pegboard.cli.memorylimit",
        "pegboard_plugins",
        "pegboard_plugins.shared",
        "pegboard_plugins.shared.terminal",
        "pegboard_plugins.shared.terminal.firstpaint",
    }
    assert len(loaded) <= MOST_LOADED
    assert sum(row.startswith(RULE) for row in terminal.everything.split("\n")) == 1


GONE = "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\n"


@pytest.mark.parametrize(
    ("arguments", "before", "said"),
    [(["chat", "-x"], "", "No such option"), (["-c"], GONE, "the current folder is not there")],
)
async def test_a_chat_that_cannot_begin_leaves_no_footer(
    pegboard: CommandLine, tmp_path: Path, arguments: list[str], before: str, said: str
) -> None:
    facts = f"NOTE, ARGUMENTS = {str(tmp_path / 'loaded')!r}, {arguments}"

    async with program(pegboard, f"{before}{facts}\n{PAINTED}") as terminal:
        state = termios.tcgetattr(terminal.theirs)
        await terminal.see(said)
        await asyncio.sleep(0.5)
        assert termios.tcgetattr(terminal.theirs) == state

    assert [row for row in terminal.shown if row.startswith((RULE, "❯"))] == []


async def test_keys_that_are_pressed_before_the_editor_is_there_are_not_lost(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        terminal.press("typed at once", "enter")
        await terminal.see("You said: typed at once")

    assert terminal.everything.count(RULE) >= 1


SLOW = """
import importlib, sys, time
from pathlib import Path

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "pegboard_plugins.chat.chat":
            while not Path(GO).exists():
                time.sleep(0.01)

sys.meta_path.insert(0, Slow())
from pegboard.cli.main import run_command_line
run_command_line(["chat"])
"""


async def test_what_is_typed_before_the_editor_is_there_is_shown_at_once_and_edited_by_it(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    scripts(pegboard)
    go = tmp_path / "go"

    async with program(pegboard, f"GO = {str(go)!r}\n{SLOW}") as terminal:
        await terminal.see_now(RULE)
        terminal.press("typo\x7fed 漢字")
        await terminal.until(lambda: terminal.editor.startswith("❯ typed 漢"))
        terminal.press("\x1b[D\x1b[D!")
        terminal.paste(" a\nb ")
        await asyncio.sleep(0.2)
        assert terminal.editor.startswith("❯ typed 漢")
        go.touch()
        await terminal.see_now("script.json")
        assert terminal.editor.startswith("❯ typed ! a")
        terminal.press("enter")
        await terminal.see("You said: typed ! a b 漢字")
        rules = sum(row.startswith(RULE) for row in terminal.everything.split("\n"))

    assert rules == 1
