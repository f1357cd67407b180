"""What was said stands in the scrollback for good, once and in order, whatever sizes it saw."""

import asyncio
import random
import re

import pytest

from plugins.chat.conftest import Way
from plugins.chat.screen import FORBIDDEN, scripts
from plugins.chat.terminals import RULE
from plugins.cli.commands import CommandLine

TURNS, SIZES = 200, 20
SAID = re.compile(r"^❯ line (\d+)$", re.MULTILINE)
ANSWERED = re.compile(r"^Answer to line (\d+)\.$", re.MULTILINE)
LOOK = {"tool": "bash", "input": {"command": "seq 30", "description": "count"}}
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\nTabled."


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_each_line_is_in_the_scrollback_once_and_in_order(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard, line={"text": "Answer to {{prompt}}."})
    chance = random.Random(7)
    at_once = TURNS // SIZES

    async with way.opened(*await way.arguments(), columns=100, rows=24) as terminal:
        for first in range(0, TURNS, at_once):
            for number in range(first, first + at_once):
                terminal.press(f"line {number}", "alt-enter")
            await asyncio.sleep(chance.random() / 5)
            terminal.resize(chance.randint(40, 200), chance.randint(12, 50))
            await terminal.see(f"Answer to line {first + at_once - 1}.")
            await terminal.quiet()
            terminal.resize(chance.randint(40, 200), chance.randint(12, 50))
        await terminal.quiet()
        everything = terminal.everything

    every = [str(number) for number in range(TURNS)]
    assert (SAID.findall(everything), ANSWERED.findall(everything)) == (every, every)
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1
    assert FORBIDDEN.findall(terminal.raw) == []


async def test_what_stands_above_the_footer_never_changes(pegboard: CommandLine, way: Way) -> None:
    look = [{"text": "I look.", "calls": [LOOK]}, {"text": "Looked."}]
    scripts(pegboard, look=look, table={"text": TABLE})
    before: list[str] = []

    async with way.opened(*await way.arguments(), rows=16) as terminal:
        for number in range(6):
            await terminal.say(("look at it", "a table", "hello")[number % 3])
            answer = ("Looked.", "Tabled.", "You said: hello")[number % 3]
            await terminal.until(lambda: terminal.above.endswith(f"\n\n{answer}"))  # noqa: B023 - awaited here
            after = terminal.above.split("\n")
            assert after[: len(before)] == before
            before = after

    assert len(before) > 2 * 16
