"""What leaves the chat for a moment runs nothing of the project."""

import json
from pathlib import Path

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.test_paint import program
from plugins.cli.commands import CommandLine
from plugins.cli.test_own_programs import importing, marking, ran
from support.tools.worktrees import git


async def test_commands_pages_and_editors_run_nothing_of_the_project(
    pegboard: CommandLine,
) -> None:
    git(pegboard.project, "init", "-q")
    inside = pegboard.project / "inside"
    marking(pegboard.project / "bin", "less", "ours", "wl-paste", "xclip", "git")
    importing(pegboard.project, "click", "pegboard")
    inside.mkdir()
    importing(inside, "click", "pegboard")
    pegboard.env |= {
        "PATH": f"{pegboard.project}/bin:/usr/bin:/bin",
        "EDITOR": "ours",
        "VISUAL": "",
        "PAGER": "",
    }
    scripts(pegboard, hello={"text": "Hello.", "calls": []})
    pegboard.project = inside

    async with chat(pegboard, rows=30) as terminal:
        await terminal.say("/doctor")
        await terminal.see("loaded, no problems")
        await terminal.say("/theme light")
        await terminal.see("Theme: light (saved)")
        terminal.press("c-g")
        await terminal.back()
        await terminal.say("hello")
        await terminal.see("Hello.")
        terminal.press("c-v")
        await terminal.see("there is no picture in the clipboard")
        terminal.press("c-d", "c-d")
        await terminal.end()

    assert ran(pegboard) == []


NOTED = """
import sys
import termios
from pegboard_plugins.chat.notices import Notices
from pegboard_plugins.shared.terminal.firstpaint import main

def noted(act):
    def with_state(self):
        echoes = bool(termios.tcgetattr(0)[3] & termios.ECHO)
        with open(NOTE, "a") as file:
            file.write(f"{act.__name__} {echoes}\\n")
        act(self)
    return with_state

Notices.begin, Notices.end = noted(Notices.begin), noted(Notices.end)
sys.argv[1:] = ["chat"]
main()
"""


async def test_the_terminal_reports_its_focus_only_while_it_echoes_nothing(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    scripts(pegboard)
    note = tmp_path / "states"

    async with program(pegboard, f"NOTE = {str(note)!r}\n{NOTED}") as terminal:
        await terminal.see_now("script.json")
        await terminal.say("/doctor")
        await terminal.see("loaded, no problems")
        await terminal.back()
        await terminal.until(lambda: len(note.read_text().splitlines()) == 3)

    assert note.read_text().splitlines() == ["begin False", "end False", "begin False"]


@pytest.mark.parametrize("command", ["/permissions", "/config", "/export x.md", "/doctor"])
async def test_what_is_typed_while_a_command_prints_is_sent_and_not_echoed(
    pegboard: CommandLine, place: Place, command: str
) -> None:
    scripts(pegboard, hello={"text": "Hello.", "calls": []})

    async with chat(pegboard, *await place.arguments(), rows=50) as terminal:
        await terminal.say("hello")
        await terminal.see("Hello.")
        await terminal.say(command)
        await terminal.left()
        terminal.press("first typed", "enter")
        await terminal.back()
        await terminal.see("You said: first typed")
        assert terminal.editor == "❯"
        terminal.press(command, "enter", "then typed", "enter")
        await terminal.see("You said: then typed")
        rows = terminal.everything.splitlines()

    assert not {"first typed", "then typed"} & {row.strip() for row in rows}


async def test_what_is_typed_before_the_question_of_trust_is_the_editors(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, hello={"text": "Hello.", "calls": []})
    tool = pegboard.project / ".pegboard" / "tool" / "mine.py"
    tool.parent.mkdir(parents=True)
    tool.write_text('def mine() -> str:\n    """Return a word."""\n    return "mine"\n')

    async with chat(pegboard, rows=50) as terminal:
        await terminal.say("/trust")
        await terminal.left()
        terminal.press("y", "enter", "y is typed ahead")
        await terminal.see("[y/N]:")
        terminal.press("n", "enter")
        await terminal.see("You said: y")
        await terminal.until(lambda: terminal.editor == "❯ y is typed ahead")
        assert "not trusted; nothing was stored" in terminal.everything
        terminal.press("c-u", "/trust", "enter")
        await terminal.left()
        await terminal.until(lambda: terminal.everything.count("[y/N]:") == 2)
        terminal.press("y", "enter")
        await terminal.back()
        await terminal.until(lambda: terminal.editor == "❯")
        await terminal.until(lambda: "not trusted: /trust" not in terminal.status)


@pytest.mark.parametrize("with_code", [True, False])
async def test_trust_asks_about_code_and_hooks_and_takes_both_answers(
    pegboard: CommandLine, *, with_code: bool
) -> None:
    scripts(pegboard, hello={"text": "Hello.", "calls": []}, bye={"text": "Bye.", "calls": []})
    hook = {"type": "command", "command": f"touch {pegboard.home}/ran"}
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    folder = pegboard.project / ".claude"
    (folder / "agents").mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(settings))
    if with_code:
        agent = "---\nname: judge\ndescription: Judge\n---\nJudge."
        (folder / "agents" / "judge.md").write_text(agent)

    async with chat(pegboard, rows=50) as terminal:
        await terminal.say("hello")
        await terminal.see("Hello.")
        await terminal.until(lambda: "hooks do not run: /trust" in terminal.status)
        assert not (pegboard.home / "ran").exists()
        await terminal.say("/trust")
        await terminal.left()
        if with_code:
            await terminal.see("to run its code? [y/N]:")
            terminal.press("y", "enter")
        await terminal.see("Run these hooks of")
        terminal.press("y", "enter")
        await terminal.back()
        await terminal.until(lambda: "hooks do not run" not in terminal.status)
        await terminal.say("bye")
        await terminal.see("Bye.")

    assert (pegboard.home / "ran").exists()


async def test_what_is_typed_before_the_key_of_a_login_is_the_editors(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, settings={"provider": {"fake": {"env": ["FAKE_API_KEY"]}}})

    async with chat(pegboard, rows=50) as terminal:
        await terminal.say("/login fake --no-check")
        await terminal.left()
        terminal.press("typed ahead", "enter", "a draft")
        await terminal.see("API key of fake")
        terminal.press("the-key", "enter")
        await terminal.see("fake: saved to")
        await terminal.see("You said: typed ahead")
        await terminal.until(lambda: terminal.editor == "❯ a draft")
        assert "the-key" not in terminal.everything

    kept = "".join(
        file.read_text() for file in pegboard.home.rglob("*") if file.name.startswith("auth")
    )
    assert "the-key" in kept
    assert "typed ahead" not in kept


async def test_ctrl_c_drops_no_key_while_a_command_prints(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/permissions")
        await terminal.left()
        terminal.press("typed", "c-c")
        await terminal.until(lambda: terminal.editor == "❯ typed")
