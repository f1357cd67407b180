"""A day's work in one chat: more than sixty things done, nothing lost and nothing drawn twice."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from plugins.chat.conftest import WAYS, Way
from plugins.chat.held import HeldCall
from plugins.chat.screen import FORBIDDEN, scripts
from plugins.chat.terminals import RULE, AnyTerminal
from plugins.cli.commands import CommandLine

READ = {"tool": "read", "input": {"filePath": "shop.py"}}
TASK = {"content": "a task", "status": "pending", "priority": "high", "id": "1"}
TODO = {"tool": "todowrite", "input": {"todos": [TASK]}}
LONG = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}
SHOW = {"tool": "bash", "input": {"command": "git log --oneline | cat; ls", "description": "look"}}
ASKED = {"question": "Which?", "header": "Q", "options": [{"label": "Red"}, {"label": "Blue"}]}
QUESTION = {"tool": "question", "input": {"questions": [ASKED]}}
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\nTabled."
ACTIONS, LINES = 60, 50
pytestmark = pytest.mark.long
LONG_ONE = pytest.mark.skipif(
    not os.environ.get("PEGBOARD_LONG_TESTS"), reason="a minute; PEGBOARD_LONG_TESTS=1 runs it"
)
SLOW_WAYS = [pytest.param(name, marks=LONG_ONE) for name in ("slow", "slow-attached")]


def edit(old: str, new: str) -> dict[str, object]:
    return {"tool": "edit", "input": {"filePath": "shop.py", "oldString": old, "newString": new}}


def prepare(pegboard: CommandLine) -> HeldCall:
    """A repository with a history, and a model that does what a day needs; its slow call."""
    held = HeldCall(pegboard)
    files = {"shop.py": "PRICE = 1\nTAX = 2\nSHIP = 3\n", "notes.md": "# Notes\n", "a/b.py": ""}
    for name, text in files.items():
        file = pegboard.project / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "the first")):
        subprocess.run(["git", *words], cwd=pegboard.project, check=True)
    lines = {f"line {number:02}": _answer(f"{number:02} of many") for number in range(1, LINES)}
    pricey, taxed = edit("PRICE = 1", "PRICE = 10"), edit("TAX = 2", "TAX = 20")
    turns: dict[str, object] = {
        "line waits": _answer("waits"),
        "do fix": [{"calls": [READ, TODO]}, {"calls": [pricey]}, _said("Fixed")],
        "do allow": [{"calls": [taxed]}, _said("Allowed")],
        "do refuse": [{"calls": [edit("SHIP = 3", "SHIP = 30")]}, _said("Refused")],
        "do other": [{"calls": [edit("SHIP = 3", "SHIP = 31")]}, _said("Otherwise")],
        "do ask": [{"calls": [QUESTION]}, _said("Asked")],
        "do slow": [{"text": "Begun.", "calls": [held.call]}, _said("Slowly")],
        "do forever": [{"text": "Begun.", "calls": [LONG]}, _said("Never")],
        "do look": [{"calls": [SHOW]}, _said("Looked")],
        "do table": {"text": TABLE},
    }
    scripts(pegboard, **lines, **turns, settings={"permission": {"edit": "ask"}})
    return held


def _answer(words: str) -> dict[str, str]:
    return {"text": f"Answer to line {words}, **end**."}


def _said(word: str) -> dict[str, str]:
    return {"text": f"{word} at last."}


class Day:
    """What is done, counted."""

    def __init__(self, terminal: AnyTerminal, slow: HeldCall) -> None:
        self.terminal = terminal
        self.slow = slow
        self.actions = 0
        self.lines = 0

    async def say(self, text: str, seen: str) -> None:
        """Send something, and see what comes of it."""
        self.actions += 1
        await self.terminal.say(text)
        await self.terminal.see(seen)
        await self.terminal.until(lambda: text not in self.terminal.editor)

    async def press(self, *keys: str, seen: str = "", gone: str = "") -> None:
        """Press keys, and see what comes of it."""
        self.actions += 1
        self.terminal.press(*keys)
        if seen:
            await self.terminal.see_now(seen)
        if gone:
            await self.terminal.gone(gone)

    async def clear(self) -> None:
        """Empty the editor."""
        self.actions += 1
        self.terminal.press("c-c")
        await self.terminal.until(lambda: self.terminal.editor == "❯")

    async def talk(self, times: int) -> None:
        """Say so many lines, each with its answer."""
        for _ in range(times):
            self.lines += 1
            await self.say(
                f"line {self.lines:02} of many", f"Answer to line {self.lines:02} of many, end."
            )

    async def dialog(self, prompt: str, *keys: str, seen: str) -> None:
        """Send what a rule asks for, and answer the dialog."""
        self.actions += 1
        await self.terminal.say(prompt)
        await self.terminal.see_dialog("Yes, once")
        await self.press(*keys)
        if seen:
            await self.terminal.see(seen)


async def morning(day: Day) -> None:
    """Talk, look round, change a file, take the change back and bring it back."""
    await day.talk(6)
    await day.dialog("do fix", "y", seen="Fixed at last.")
    await day.say("/todo", "[ ] a task")
    await day.say("/undo", "undone: do fix")
    await day.clear()
    await day.say("/redo", "redone")
    await day.say("/help", "choose the colours")
    await day.say("/keys", "search the history")
    await day.say("/cost", "tokens in the last request")
    await day.say("/context", "the parts are estimates")
    await day.say("!echo from the shell", "│ from the shell")
    await day.say("do look", "Looked at last.")
    await day.say("do table", "Tabled.")
    await day.talk(2)


async def noon(day: Day) -> None:
    """Write, complete, search, choose."""
    await day.press("first", "c-j", "second", seen="second")
    await day.clear()
    await day.press("see @not", seen="❯ notes.md")
    await day.press("tab", seen="see @notes.md")
    await day.clear()
    await day.press("c-r", seen="History")
    await day.press("line 03", seen="line 03 of many")
    await day.press("escape", gone="History")
    await day.press("up", seen="❯ line 08 of many")
    await day.clear()
    await day.press("tab", seen="· plan ·")
    await day.press("tab", gone="· plan ·")
    await day.say("/agent build", "Agent: build")
    await day.press("/model", seen="/model")
    await day.press("enter", seen="type to filter")
    await day.press("escape", gone="type to filter")
    await day.press("/sess", "tab", seen="❯ /sessions")
    await day.press("enter", seen="type to filter")
    await day.press("escape", gone="type to filter")
    await day.say("/theme dark", "")
    await day.terminal.say("/modell")
    await day.terminal.see("did you mean /model?")
    await day.clear()
    await day.talk(2)


async def afternoon(day: Day) -> None:
    """Allow, refuse, explain, answer; steer, queue, stop."""
    await day.dialog("do allow", "y", seen="Allowed at last.")
    await day.dialog("do refuse", "n", seen="✗ edit shop.py")
    await day.talk(1)
    await day.dialog("do other", "w", seen="Tell the agent what to do instead · Enter")
    await day.say("leave it", "leave it")
    await day.talk(1)
    await day.terminal.say("do ask")
    await day.terminal.see_dialog("2    Blue")
    await day.press("2")
    await day.terminal.see("Asked at last.")
    await day.terminal.say("do slow")
    await day.terminal.see_now("● bash")
    await day.terminal.say("line steers")
    await day.press("line waits", seen="line waits")
    await day.press("alt-enter", seen="after this turn: line waits")
    day.slow.release()
    await day.terminal.see("Answer to line waits, end.")
    await day.say("do forever", "● bash")
    await day.terminal.see_now("● bash sleep 60")
    await day.press("escape")
    await day.terminal.see("stopped")
    await day.talk(2)


async def evening(day: Day) -> None:
    """Paste, change the size, rename, copy, summarise, go on elsewhere, leave."""
    day.terminal.paste("\n".join(f"pasted {number}" for number in range(30)))
    await day.press(seen="[Pasted text #1: 30 lines]")
    await day.clear()
    for columns, rows in ((70, 24), (120, 30), (90, 20), (100, 30)):
        day.actions += 1
        day.terminal.resize(columns, rows)
        await day.talk(1)
    await day.say("/rename a good name", "renamed to a good name")
    await day.say("/copy", "copied")
    await day.say("/compact", "compacted: ")
    await day.talk(1)
    await day.say("/fork", "forked: this is now")
    await day.talk(1)
    await day.say("/new", "the next prompt starts a new session")
    await day.talk(2)
    await day.say("/reload", "settings reloaded")
    await day.talk(1)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("way", [*WAYS, *SLOW_WAYS], indirect=True)
async def test_a_days_work_loses_nothing_and_draws_nothing_twice(
    pegboard: CommandLine, way: Way
) -> None:
    slow = prepare(pegboard)

    async with way.opened(*await way.arguments(), columns=100, rows=30) as terminal:
        day = Day(terminal, slow)
        await morning(day)
        await noon(day)
        await afternoon(day)
        await evening(day)
        await terminal.until(lambda: f"\n{terminal.everything}".count(f"\n{RULE}") == 1)
        everything = terminal.everything
        rules = sum(row.startswith(RULE) for row in everything.split("\n"))
        terminal.press("c-d", "c-d")
        assert await terminal.end() == 0

    answers = re.findall(r"^Answer to line (\d\d) of many, end\.$", everything, re.MULTILINE)
    said = re.findall(r"^❯ line (\d\d) of many$", everything, re.MULTILINE)
    every = [f"{number:02}" for number in range(1, day.lines + 1)]
    assert (answers, said, rules) == (every, every, 1)
    for word in ("Fixed", "Allowed", "Asked", "Slowly", "Looked"):
        assert everything.count(f"{word} at last.") <= 1
    assert day.actions >= ACTIONS
    text = (Path(pegboard.project) / "shop.py").read_text()
    assert text == "PRICE = 10\nTAX = 20\nSHIP = 3\n"
    assert FORBIDDEN.findall(terminal.raw) == []
