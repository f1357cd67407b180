"""Every key and every command of the page is pressed, and does what the page says."""

import asyncio
import re
from pathlib import Path

import pytest

from pegboard_plugins.chat.keys import KEYS
from pegboard_plugins.chat.slash import OWN
from plugins.chat.screen import ChatTerminal, chat, scripts
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
LESS = '#!/bin/sh\necho PAGE-BEGINS\nfor last; do :; done\ncat "$last"\nsleep 0.5\n'


def test_the_page_has_the_keys_that_there_are() -> None:
    assert [(name, key, text) for name, key, text in KEY_ROWS] == [
        (each.name, each.key, each.help) for each in KEYS
    ]


def test_the_page_has_the_commands_that_there_are() -> None:
    own = {name: text for name, (text, _) in OWN.items()}
    assert dict(COMMAND_ROWS) == {**own, "cost": "what the session has cost"}


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
    spelt = {"escape enter": "alt-enter", "escape p": "\x1bp"}
    terminal.press(spelt.get(key, key))
    await terminal.see(seen)
    return next(each.name for each in KEYS if each.key == key)


async def test_every_key_of_the_page_does_what_it_says(  # noqa: PLR0915 - each key once
    pegboard: CommandLine,
) -> None:
    (pegboard.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    slow = [{"text": "Begun.", "calls": [SLOW]}, {"text": "End."}]
    scripts(pegboard, fix=FIX, begin=slow, ask=[{"calls": [SLOW]}])
    programs(pegboard)
    done: set[str] = set()

    async with chat(pegboard, rows=30, columns=220) as terminal:
        terminal.press("fix")
        done.add(await pressed(terminal, "enter", "Mended at last."))
        for key in ("c-o", "c-t"):
            done.add(await pressed(terminal, key, "PAGE-BEGINS"))
            await terminal.back()
        await terminal.see("● read {")
        done.add(await pressed(terminal, "?", "what it does"))
        done.add(await pressed(terminal, "tab", "· plan ·"))
        done.add(await pressed(terminal, "c-p", "scripted/demo"))
        done.add(await pressed(terminal, "escape p", "scripted/demo"))
        done.add(await pressed(terminal, "s-tab", "scripted/demo"))
        done.add(await pressed(terminal, "c-v", "there is no picture in the clipboard"))
        done.add(await pressed(terminal, "c-l", "scripted/demo"))
        done.add(await pressed(terminal, "c-g", "❯ from the editor"))
        terminal.press("c-c")
        await terminal.gone("❯ from the editor")
        done.add("interrupt")
        done.add(await pressed(terminal, "up", "❯ fix"))
        await asyncio.sleep(0.2)
        terminal.press("down")
        done.add("down")
        terminal.press("c-c", "first")
        done.add(await pressed(terminal, "c-j", "❯ first"))
        terminal.press("second")
        await terminal.see_now("second")
        terminal.press("c-c")
        await terminal.gone("❯ first")
        done.add(await pressed(terminal, "c-r", "Sent before"))
        terminal.press("pagedown", "pageup")
        done |= {"page_up", "page_down"}
        terminal.press("escape")
        await terminal.gone("Sent before")
        await terminal.say(f"/model scripted/{pegboard.home}/script.json")
        await terminal.see("the model is scripted")
        await terminal.say("/agent build")
        await terminal.see("the agent is build")
        await terminal.say("begin")
        await terminal.see_now("● bash")
        terminal.press("for later")
        done.add(await pressed(terminal, "escape enter", "queued: for later"))
        done.add(await pressed(terminal, "escape", "stopped"))
        await terminal.see_now("❯ for later")
        terminal.press("c-c")
        await terminal.gone("❯ for later")
        terminal.press("c-d")
        await terminal.end()
        done.add("leave")

    assert done | {"suspend"} == {each.name for each in KEYS}


@pytest.mark.timeout(180)
async def test_every_command_of_the_page_does_what_it_says(  # noqa: PLR0915 - each once
    pegboard: CommandLine,
) -> None:
    file = pegboard.project / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    scripts(pegboard, fix=FIX, Look={"text": "I write AGENTS.md."})
    programs(pegboard)
    done: set[str] = set()

    async with chat(pegboard, rows=50, columns=110) as terminal:

        async def run(line: str, seen: str) -> None:
            await asyncio.sleep(0.1)
            await terminal.say(f"/{line}")
            await terminal.see(seen)
            done.add(line.split(maxsplit=1)[0])

        async def outside(line: str) -> None:
            """One that leaves the chat for another program, and comes back."""
            await terminal.say(f"/{line}")
            await terminal.left()
            await terminal.back()
            done.add(line)

        async def chosen(line: str, seen: str, *keys: str) -> None:
            await run(line, seen)
            await asyncio.sleep(0.1)
            terminal.press(*keys)
            await terminal.gone("type to search")

        await run("todo", "the task list is empty")
        await run("diff", "the session has changed no file")
        await terminal.say("fix")
        await terminal.see("Mended at last.")
        await run("help", "choose the colours")
        await run("keys", "search what was sent before")
        await run("todo", "[ ] a task")
        await run("cost", "tokens in the last request")
        await run("context", "the parts are estimates")
        await run("tools", "todowrite")
        await run("plugins", "builtin")
        await outside("diff")
        await terminal.see("return a + b")
        await outside("trace")
        await terminal.see("PAGE-BEGINS")
        await run("copy", "copied")
        await run("rename a new name", "the session is called a new name")
        await run(f"export {pegboard.home}/out.jsonl", "written to")
        await outside("permissions")
        await outside("doctor")
        await terminal.say("/trust")
        await terminal.left()
        await terminal.see("[y/N]")
        terminal.press("n", "enter")
        await terminal.back()
        done.add("trust")
        await outside("login")
        await chosen("model", "Model", "escape")
        await chosen("agent", "Agent", "escape")
        await run("effort", "effort that are known")
        await chosen("theme", "Theme", "down", "enter")
        await chosen("sessions", "a new name", "escape")
        await chosen("resume", "a new name", "escape")
        await run("undo", "undone: fix")
        assert "a - b" in file.read_text()
        terminal.press("c-c")
        await run("redo", "all is as it was before")
        assert "a + b" in file.read_text()
        await chosen("rewind", "Go back to before", "escape")
        await run("compact", "the history was summarised")
        await run("fork", "a copy")
        await run("reload", "loaded anew")
        await run("init", "I write AGENTS.md.")
        await run("new", "a new session begins")
        await terminal.say("/quit")
        assert await terminal.end() == 0
        done.add("quit")

    assert done == {*OWN, "cost"}
    assert (pegboard.home / "out.jsonl").stat().st_mode & 0o77 == 0
    assert b"\x1b]52;c;" in terminal.raw


async def test_a_command_that_there_is_not_is_answered_with_the_nearest(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/modle")
        await terminal.see("there is no command /modle; did you mean /model?")


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
