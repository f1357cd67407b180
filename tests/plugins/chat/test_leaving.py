"""Whatever ends or stops the chat, its terminal is as it was, and what was said is not lost."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pegboard_plugins.chat.keyboard import TWICE_S
from plugins.chat.conftest import Way
from plugins.chat.screen import scripts
from plugins.chat.terminals import AnyTerminal
from plugins.chat.test_additions import CALL, install
from plugins.cli.commands import COMMAND, CommandLine

MODES = re.compile(rb"\x1b\[\?(2004|1004)([hl])")
"""Bracketed paste, and reports of the focus."""
CRASH = """
import asyncio
import sys
from pegboard import hookimpl
from pegboard_plugins.chat import SlashCommand


async def crash(*_):
    asyncio.get_running_loop().call_soon(sys.exit, 3)


@hookimpl
def register_slash():
    return (SlashCommand(name="crash", help="ends it all", action=crash),)
"""
BROKEN_FEED = """
from pegboard.cli.main import main
from pegboard_plugins.shared.frontend import LocalFeed


async def block(*_):
    raise RuntimeError("no block can be had")


LocalFeed.block = block
import sys
sys.argv[1:] = ["chat"]
main()
"""


class Shell:
    """A shell that starts chats and notes the state of the terminal."""

    def __init__(self, pegboard: CommandLine, terminal: AnyTerminal) -> None:
        self.terminal = terminal
        self._home = pegboard.home
        self._process = 0

    async def run(self, line: str) -> None:
        """Run a line, and wait for its end."""
        mark = f"DONE{os.urandom(3).hex()}"
        self.terminal.press(f"{line}; echo {mark[:4]}''{mark[4:]}", "enter")
        await self.terminal.see(mark)

    async def state(self) -> str:
        """What `stty` says."""
        await self.run(f"stty -g > {self._home}/stty")
        return (self._home / "stty").read_text()

    async def begin(
        self,
        *arguments: str,
        ready: str = "script.json",
        program: Sequence[str] = (COMMAND, "chat"),
    ) -> int:
        """Start a chat; its process id."""
        note = self._home / "pid"
        words = shlex.join([*program, *arguments])
        self.terminal.press(f"sh -c {shlex.quote(f'echo $$ > {note}; exec {words}')}", "enter")
        await self.terminal.see_now(ready)
        self._process = int(note.read_text())
        return self._process

    async def ended(self) -> int:
        """The exit code of the chat, once it has ended."""
        await self.terminal.until(lambda: not Path(f"/proc/{self._process}").exists())
        await self.run("echo CODE=$?.")
        return int(re.findall(r"CODE=(\d+)", self.terminal.everything)[-1])

    def modes(self) -> dict[bytes, bytes]:
        """What the terminal was asked for last."""
        return dict(MODES.findall(self.terminal.raw))


@asynccontextmanager
async def shell_of(pegboard: CommandLine, way: Way) -> AsyncIterator[Shell]:
    async with way.shell() as terminal:
        shell = Shell(pegboard, terminal)
        await shell.run("PS1=; bind 'set enable-bracketed-paste off'")
        yield shell


OFF = {b"2004": b"l", b"1004": b"l"}


def ends(*pairs: tuple[str, str]) -> pytest.MarkDecorator:
    """The first of the ways now, the others in the runs of all."""
    rows = [
        pytest.param(*pair, marks=[pytest.mark.long] if n else []) for n, pair in enumerate(pairs)
    ]
    return pytest.mark.parametrize(("way", "how"), rows, indirect=["way"])


@ends(
    ("pyte", "c-d"),
    ("pyte", "c-c twice"),
    ("pyte", "SIGTERM"),
    ("pyte", "SIGHUP"),
    ("pyte", "/crash"),
    ("pyte-attached", "SIGTERM"),
    ("tmux", "c-d"),
    ("tmux-attached", "SIGHUP"),
)
async def test_the_terminal_is_as_it_was_however_the_chat_ends(
    pegboard: CommandLine, way: Way, how: str
) -> None:
    scripts(pegboard)
    install(pegboard, CRASH)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        before = await shell.state()
        process = await shell.begin(*arguments)
        if how == "SIGHUP":
            with suppress(ProcessLookupError):
                while True:  # a shell repeats it, at any time
                    os.kill(process, signal.SIGHUP)
                    await asyncio.sleep(0.001)
        elif how.startswith("SIG"):
            os.kill(process, getattr(signal, how))
        elif how.startswith("/"):
            await shell.terminal.say(how)
        else:
            shell.terminal.press(*([how[:3]] * (1 + how.endswith("twice"))))
        code = await shell.ended()
        after = await shell.state()

    assert (after, shell.modes()) == (before, OFF)
    assert (code == 0) == (how != "/crash")


@pytest.mark.long
async def test_a_chat_that_cannot_begin_leaves_the_terminal_as_it_was(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        before = await shell.state()
        await shell.begin("-s", "ses_nobody", *arguments, ready="the chat cannot start")
        shell.terminal.press("c-d")
        code = await shell.ended()
        after = await shell.state()

    assert (after, shell.modes(), code) == (before, OFF, 1)


@pytest.mark.long
@pytest.mark.parametrize("way", ["pyte", "tmux"], indirect=True)
async def test_an_error_that_nothing_could_be_shown_after_ends_the_chat_and_is_told(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])
    program = pegboard.home / "broken.py"
    program.write_text(BROKEN_FEED)

    async with shell_of(pegboard, way) as shell:
        before = await shell.state()
        await shell.begin(program=(sys.executable, str(program)))
        shell.terminal.press("go", "enter")
        code = await shell.ended()
        after = await shell.state()

    assert (after, shell.modes()) == (before, OFF)
    assert code not in (0, 130)
    assert "no block can be had" in shell.terminal.everything


@ends(("pyte", "c-z"), ("pyte", "SIGTSTP"), ("pyte-attached", "c-z"), ("tmux", "c-z"))
async def test_the_chat_waits_in_the_background_and_comes_back(
    pegboard: CommandLine, way: Way, how: str
) -> None:
    scripts(pegboard)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        terminal = shell.terminal
        before = await shell.state()
        process = await shell.begin(*arguments)
        await terminal.say("hello")
        await terminal.see("You said: hello")
        terminal.press("half a prompt")
        await terminal.see_now("❯ half a prompt")
        if how == "c-z":
            terminal.press("c-z")
        else:
            os.kill(process, signal.SIGTSTP)
        await terminal.see("Stopped")
        stopped, modes = await shell.state(), shell.modes()
        rows = [row for row in terminal.shown if "half a prompt" in row]
        terminal.press("fg", "enter")
        await terminal.see_now("❯ half a prompt")
        terminal.press(" and the rest", "enter")
        await terminal.see("You said: half a prompt and the rest")
        await terminal.gone("Esc stops")
        terminal.press("c-d")
        code = await shell.ended()
        after = await shell.state()

    assert (stopped, modes, rows) == (before, OFF, [])
    assert (after, shell.modes(), code) == (before, OFF, 0)
    assert terminal.everything.count("❯ hello") == 1


@pytest.mark.long
async def test_what_was_said_outlives_a_kill(pegboard: CommandLine, way: Way) -> None:
    scripts(pegboard)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        before = await shell.state()
        process = await shell.begin(*arguments)
        for number in range(3):
            await shell.terminal.say(f"line {number}")
            await shell.terminal.see(f"You said: line {number}")
        os.kill(process, signal.SIGKILL)
        await shell.ended()
        await shell.run(f"stty {before.strip()}; clear")
        await shell.begin(*arguments, "-c")
        await shell.terminal.see_now("You said: line 2")
        shown = "\n".join(shell.terminal.shown)

    found = re.findall(r"^(?:❯|You said:) line (\d)$", shown, re.MULTILINE)
    assert found == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.long
async def test_ctrl_c_ends_the_program_that_has_the_terminal_and_not_the_chat(
    pegboard: CommandLine, way: Way
) -> None:
    editor = pegboard.home / "editor"
    editor.write_text("#!/bin/sh\necho EDITOR\nexec sleep 60\n")
    editor.chmod(0o755)
    scripts(pegboard)
    pegboard.env |= {"EDITOR": str(editor), "VISUAL": ""}
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        await shell.begin(*arguments)
        shell.terminal.press("a draft", "c-g")
        await shell.terminal.see("EDITOR")
        assert shell.modes() == OFF
        shell.terminal.press("c-c")
        await shell.terminal.see_now("❯ a draft")
        shell.terminal.press("enter")
        await shell.terminal.see("You said: a draft")


async def test_ctrl_d_leaves_a_turn_that_runs_at_the_second_press(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard, wait={"text": "At last.", "delay_s": 60})
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        await shell.begin(*arguments)
        await shell.terminal.say("wait")
        await shell.terminal.see_now("Waiting for the model")
        shell.terminal.press("c-d")
        await shell.terminal.see_now("Ctrl+D again stops the turn and leaves")
        shell.terminal.press("x", "c-h")
        await shell.terminal.gone("Ctrl+D again")
        shell.terminal.press("c-d")
        await shell.terminal.see_now("Ctrl+D again")
        await asyncio.sleep(2 * TWICE_S)  # however long the person reads
        shell.terminal.press("c-d")
        code = await shell.ended()

    assert code == 0


async def test_a_chat_with_a_session_ends_with_the_command_that_resumes_it(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        await shell.begin(*arguments)
        shell.terminal.press("c-d")
        await shell.ended()
        assert "Resume" not in shell.terminal.everything
        await shell.begin(*arguments)
        await shell.terminal.say("hello")
        await shell.terminal.see("You said: hello")
        await shell.terminal.gone("Esc stops")
        shell.terminal.press("c-d")
        await shell.ended()
        everything = shell.terminal.everything

    _, *found = everything.replace("\n", "").split("Resume this session: pegboard chat -s ses_")
    assert len(found) == 1
    assert [each for each in arguments if each not in found[0]] == []


async def test_what_has_come_of_an_answer_stays_when_the_chat_is_left(
    pegboard: CommandLine, way: Way
) -> None:
    text = f"FIRST half {'and more ' * 100}"
    scripts(pegboard, tell={"text": text}, chunk_chars=11, delay_s=0.5)
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        await shell.begin(*arguments)
        await shell.terminal.say("tell")
        await shell.terminal.see_now("FIRST half")
        shell.terminal.write(b"\x04\x04")
        await shell.ended()
        everything = shell.terminal.everything

    assert everything.count("FIRST half") == 1
    assert everything.index("❯ tell") < everything.index("FIRST half") < everything.index("Resume")
