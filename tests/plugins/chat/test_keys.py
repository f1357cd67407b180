"""Every key and every command of the page is pressed, and does what the page says."""

import asyncio
import base64
import re
from pathlib import Path

import pytest

from pegboard_plugins.chat.keys import KEYS
from pegboard_plugins.chat.slash import OWN
from plugins.chat.conftest import Place
from plugins.chat.screen import ChatTerminal, chat, scripts
from plugins.chat.terminals import WAITING
from plugins.cli.commands import CommandLine

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "chat.md").read_text()
KEY_ROWS = re.findall(r"^\| `(\w+)` \| `([^|]+)` \| (.+) \|$", PAGE, re.MULTILINE)
COMMAND_ROWS = re.findall(r"^\| `/(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
EDIT = {
    "tool": "edit",
    "input": {"filePath": "calc.py", "oldString": "a - b", "newString": "a + b"},
}
READ = {"tool": "read", "input": {"filePath": "calc.py"}}
TODO = {
    "tool": "todowrite",
    "input": {"todos": [{"content": "a task", "status": "pending", "priority": "high", "id": "1"}]},
}
SLOW = {"tool": "bash", "input": {"command": "sleep 30", "description": "sleep"}}
FIX = [{"calls": [READ, TODO]}, {"calls": [EDIT]}, {"text": "Mended at last."}]
FETCH = {"tool": "webfetch", "input": {"url": "http://127.0.0.1:9/", "format": "text"}}
ASK = [{"calls": [FETCH]}, {"text": "Asked."}]
LESS = '#!/bin/sh\necho PAGE-BEGINS\nfor last; do :; done\ncat "$last"\nsleep 0.5\n'


def test_the_page_has_the_keys_that_there_are() -> None:
    assert [(name, key, text) for name, key, text in KEY_ROWS] == [
        (each.name, each.key, each.help) for each in KEYS
    ]


def test_the_page_has_the_commands_that_there_are() -> None:
    own = {name: text for name, (text, _) in OWN.items()}
    hooks = "show the [command hooks](command-hooks.md) that are found, and how often and how long"
    plugins = {"cost": "what the session has cost", "hooks": f"{hooks} each one ran"}
    assert dict(COMMAND_ROWS) == {**own, **plugins}


def programs(pegboard: CommandLine) -> None:
    """A pager and an editor that need nobody."""
    folder = pegboard.home / "bin"
    folder.mkdir()
    for name, text in (("less", LESS), ("ed2", '#!/bin/sh\necho "from the editor" > "$1"\n')):
        file = folder / name
        file.write_text(text)
        file.chmod(0o755)
    path = pegboard.environment()["PATH"]
    pegboard.env |= {"PATH": f"{folder}:{path}", "EDITOR": str(folder / "ed2"), "VISUAL": ""}


async def pressed(terminal: ChatTerminal, key: str, seen: str) -> str:
    """The name of the key, once what it does is seen."""
    spelt = {"escape enter": "alt-enter", "escape p": "\x1bp", "escape e": "\x1be"}
    terminal.press(spelt.get(key, key))
    await terminal.see(seen)
    return next(each.name for each in KEYS if each.key == key)


async def at_rest(terminal: ChatTerminal) -> set[str]:
    """The keys that do something while nothing runs."""
    done = {await pressed(terminal, "c-o", "PAGE-BEGINS")}
    await terminal.back()
    done.add(await pressed(terminal, "c-t", "● read {"))
    await terminal.back()
    done.add(await pressed(terminal, "?", "these keys"))
    for key in ("tab", "c-p", "escape p", "escape e", "c-l"):
        done.add(await pressed(terminal, key, "· plan ·"))
    done.add(await pressed(terminal, "s-tab", "· everything ·"))
    done.add(await pressed(terminal, "c-v", "there is no picture in the clipboard"))
    done.add(await pressed(terminal, "c-g", "❯ from the editor"))
    terminal.press("c-c")
    await terminal.gone("❯ from the editor")
    done.add(await pressed(terminal, "up", "❯ fix"))
    terminal.press("down", "c-c", "first")
    done.add(await pressed(terminal, "c-j", "❯ first"))
    terminal.press("second")
    await terminal.see_now("second")
    terminal.press("c-c")
    await terminal.gone("❯ first")
    done.add(await pressed(terminal, "c-r", "History"))
    terminal.press("pagedown", "pageup", "escape")
    await terminal.gone("History")
    return done | {"interrupt", "down", "page_up", "page_down"}


async def at_a_dialog(terminal: ChatTerminal) -> set[str]:
    """The key that gives a dialog the keys while a draft stands in the editor."""
    terminal.press("ask", "enter", "draft")
    await terminal.see_now(WAITING)
    terminal.press("c-x")
    await terminal.see_dialog("Yes, once")
    terminal.press("n")
    await terminal.gone("Yes, once")
    terminal.press("c-c")
    await terminal.gone("❯ draft")
    return {"answer"}


async def at_work(terminal: ChatTerminal) -> set[str]:
    """The keys that do something else while the agent works."""
    await terminal.say("begin")
    await terminal.see_now("● bash")
    terminal.press("for later")
    done = {await pressed(terminal, "escape enter", "after this turn: for later")}
    done.add(await pressed(terminal, "escape", "stopped"))
    await terminal.see_now("❯ for later")
    terminal.press("c-c")
    await terminal.gone("❯ for later")
    return done


async def test_every_key_of_the_page_does_what_it_says(pegboard: CommandLine) -> None:
    (pegboard.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    slow = [{"text": "Begun.", "calls": [SLOW]}, {"text": "End."}]
    scripts(pegboard, fix=FIX, begin=slow, ask=ASK, settings={"permission": {"webfetch": "ask"}})
    programs(pegboard)

    async with chat(pegboard, rows=30, columns=220) as terminal:
        terminal.press("fix")
        done = {await pressed(terminal, "enter", "Mended at last.")}
        done |= await at_rest(terminal)
        await terminal.say(f"/model scripted/{pegboard.home}/script.json")
        await terminal.see("Model: scripted")
        await terminal.say("/agent build")
        await terminal.see("Agent: build")
        done |= await at_work(terminal)
        done |= await at_a_dialog(terminal)
        terminal.press("c-d", "c-d")
        await terminal.end()

    assert done | {"leave", "suspend"} == {each.name for each in KEYS}


class Day:
    """Commands that are given one after the other."""

    def __init__(self, terminal: ChatTerminal) -> None:
        self.terminal = terminal
        self.done: set[str] = set()

    async def run(self, line: str, seen: str) -> None:
        """Give a command, and see what it does."""
        await asyncio.sleep(0.1)
        await self.terminal.say(f"/{line}")
        await self.terminal.see(seen)
        self.done.add(line.split(maxsplit=1)[0])

    async def outside(self, line: str, *keys: str, asked: str = "") -> None:
        """Give one that leaves the chat for another program, and comes back."""
        await self.terminal.say(f"/{line}")
        await self.terminal.left()
        if asked:
            await self.terminal.see(asked)
            self.terminal.press(*keys)
        await self.terminal.back()
        self.done.add(line.split(maxsplit=1)[0])

    async def chosen(self, line: str, seen: str, *keys: str) -> None:
        """Give one that opens a list, and leave the list."""
        await self.run(line, seen)
        await self.terminal.see_now("type to filter")
        self.terminal.press(*keys)
        await self.terminal.gone("type to filter")


async def look(day: Day, pegboard: CommandLine) -> None:
    """The commands that show something."""
    await day.run("help", "choose the colours")
    await day.run("keys", "search the history")
    await day.run("todo", "[ ] a task")
    await day.run("cost", "tokens in the last request")
    await day.run("context", "the parts are estimates")
    await day.run("tools", "todowrite")
    await day.run("plugins", "builtin")
    await day.run("diff", "│ calc.py  +1 -1")
    await day.outside("trace")
    await day.run("copy", "copied")
    await day.run("rename a new name", "renamed to a new name")
    await day.outside(f"export {pegboard.home}/out.jsonl")
    await day.outside("permissions")
    await day.outside("config")
    await day.run("status", "mode     everything")
    await day.outside("doctor")
    await day.outside("trust")
    await day.outside("login nobody", "x y", "enter", asked="API key of nobody")


async def choose(day: Day) -> None:
    """The commands that choose something."""
    await day.chosen("model", "Model", "escape")
    await day.chosen("agent", "Agent", "escape")
    await day.run("effort", "has no effort levels")
    await day.chosen("mode", "Mode", "escape")
    await day.chosen("theme", "Theme", "down", "enter")
    await day.chosen("sessions", "a new name", "escape")
    await day.chosen("resume", "a new name", "escape")
    await day.chosen("rewind", "Rewind to before", "escape")


async def go_on(day: Day, file: Path) -> None:
    """The commands that change the session."""
    await day.run("undo", "undone: fix")
    assert "a - b" in file.read_text()  # noqa: ASYNC240 - a file of two lines
    day.terminal.press("c-c")
    await day.run("redo", "redone")
    assert "a + b" in file.read_text()  # noqa: ASYNC240 - a file of two lines
    await day.run("compact", "compacted: ")
    await day.run("fork", "forked: this is now")
    await day.run("reload", "settings reloaded")
    await day.run("init", "AGENTS.md")
    await day.run("new", "the next prompt starts a new session")


@pytest.mark.timeout(180)
async def test_every_command_of_the_page_does_what_it_says(pegboard: CommandLine) -> None:
    file = pegboard.project / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    scripts(pegboard, fix=FIX, Look={"text": "I write AGENTS.md."})
    programs(pegboard)

    async with chat(pegboard, rows=50, columns=160) as terminal:
        day = Day(terminal)
        await day.run("todo", "the task list is empty")
        await day.run("diff", "the session has changed no file")
        await terminal.say("fix")
        await terminal.see("Mended at last.")
        await look(day, pegboard)
        await choose(day)
        await go_on(day, file)
        await terminal.say("/quit")
        assert await terminal.end() == 0

    assert day.done | {"quit"} == {*OWN, "cost"}
    assert b"\x1b]52;c;" in terminal.raw


async def test_the_last_answer_is_copied_and_no_summary(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await terminal.say("/compact")
        await terminal.see("compacted: ")
        await terminal.say("/copy")
        await terminal.see("copied 15 bytes")

    (copied,) = re.findall(rb"\x1b\]52;c;([^\x07]*)\x07", terminal.raw)
    assert base64.b64decode(copied) == b"You said: hello"
    file = pegboard.home / "state" / "copied.md"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("You said: hello", 0o600)


async def test_a_model_that_is_in_no_list_can_be_come_back_to(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, hello={"text": "The first says so."})
    other = pegboard.project / "other.json"
    other.write_text('{"scripts": [{"steps": [{"text": "The other says so."}]}]}')

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("/model")
        await terminal.see_now("Model  ")
        assert any(row.startswith("❯ scripted//") for row in terminal.shown)
        terminal.press("escape")
        await terminal.gone("type to filter")
        await terminal.say("/model scripted/other.json")
        await terminal.say("hello")
        await terminal.see("The other says so.")
        terminal.press("c-p")
        await terminal.until(lambda: "other.json" not in terminal.status)
        for _ in range(2):  # a server offers no demonstration
            if "other.json" not in terminal.status:
                terminal.press("c-p")
                await terminal.quiet()
        assert "other.json" in terminal.status


async def test_what_a_list_has_no_use_for_changes_nothing_behind_it(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, columns=120) as terminal:
        before = terminal.status
        await terminal.say("/theme")
        await terminal.see_now("type to filter")
        terminal.press("nothing like it")
        await terminal.see_now("no match")
        terminal.press("tab", "s-tab", "up", "down", "c-p", "\x1bp")
        await terminal.quiet()
        assert terminal.status == before
        terminal.press("escape")
        await terminal.gone("no match")
        assert terminal.status == before


@pytest.mark.parametrize("word", ["see @nothing", "/nothing"])
async def test_tab_behind_a_word_that_nothing_completes_does_nothing(
    pegboard: CommandLine, word: str
) -> None:
    scripts(pegboard)

    async with chat(pegboard, columns=120) as terminal:
        before = terminal.status
        terminal.press(word)
        await terminal.until(lambda: terminal.editor == f"❯ {word}")
        terminal.press("tab")
        await terminal.quiet()
        assert (terminal.editor, terminal.status) == (f"❯ {word}", before)
        terminal.press(" ", "tab")
        await terminal.see_now("· plan ·")


async def test_the_transcript_has_a_call_s_input_as_json(pegboard: CommandLine) -> None:
    given = {"pattern": "*.py"}
    scripts(pegboard, find=[{"calls": [{"tool": "glob", "input": given}]}, {"text": "Found."}])
    programs(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("find")
        await terminal.see("Found.")
        terminal.press("c-t")
        await terminal.see('● glob {"pattern": "*.py"}')
        await terminal.back()


async def test_why_the_last_call_failed_is_on_its_page_once(pegboard: CommandLine) -> None:
    wrong = {"tool": "read", "input": {"filePath": "missing.py"}}
    scripts(pegboard, fail=[{"calls": [wrong]}, {"text": "It failed."}])
    programs(pegboard)

    async with chat(pegboard, columns=1000) as terminal:  # the text has the path of the project
        await terminal.say("fail")
        await terminal.see("It failed.")
        before = terminal.everything.count("does not exist")
        terminal.press("c-o")
        await terminal.until(lambda: terminal.everything.count("does not exist") > before)
        await terminal.back()
        assert terminal.everything.count("does not exist") == before + 1


async def test_a_command_that_there_is_not_is_answered_with_the_nearest(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/modell")
        await terminal.see("there is no command /modell; did you mean /model?")
        await terminal.until(lambda: terminal.editor == "❯ /modell")
        terminal.press("/status")
        await terminal.until(lambda: terminal.editor == "❯ /status")


async def test_a_command_of_the_users_becomes_a_prompt(pegboard: CommandLine) -> None:
    scripts(pegboard, settings={"command": {"shout": {"template": "Say loudly: $ARGUMENTS"}}})

    async with chat(pegboard) as terminal:
        await terminal.say("/shout hello you")
        await terminal.see("You said: Say loudly: hello you")


async def test_a_shell_line_runs_unasked_and_the_model_sees_it(pegboard: CommandLine) -> None:
    scripts(pegboard, settings={"permission": {"bash": "ask"}})

    async with chat(pegboard) as terminal:
        await terminal.say("!echo from the shell")
        await terminal.see("│ from the shell")


async def test_a_file_is_offered_behind_an_at_sign(pegboard: CommandLine) -> None:
    (pegboard.project / "calculator.py").write_text("x = 1\n")
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("see @lcu")
        await terminal.see_now("❯ calculator.py")
        terminal.press("tab")
        await terminal.see_now("see @calculator.py")
