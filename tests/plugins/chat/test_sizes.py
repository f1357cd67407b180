"""A terminal gets other sizes while text streams: no line is lost, doubled, or left behind."""

import asyncio
import random
import re

import pytest

from plugins.chat.conftest import Way
from plugins.chat.screen import FORBIDDEN, scripts
from plugins.chat.terminals import RULE, AnyTerminal
from plugins.cli.commands import CommandLine

LINES = 100
TASKS = [
    {"content": f"task {n} of the list", "status": "pending", "priority": "high", "id": str(n)}
    for n in range(4)
]
TODO = {"tool": "todowrite", "input": {"todos": TASKS}}
SAID = "\n\n".join(f"The line {n} of it, {'word ' * (n % 30)}ends." for n in range(LINES))
COMMITTED = re.compile(r"^The line (\d+) of it, ", re.MULTILINE)
FEWEST_ROWS = 14
"""The footer has 15 rows at most here, the first of them blank. In one of fewer than 14 a terminal
may move the second row, of a line that is still being written, to its history at once."""
LIVE = "Begin of it " + "word " * 36
"""Five rows of 40 columns, as many as are shown of what is being written."""
SHORTEST_S, LONGEST_S = 0.02, 0.4
"""Between two sizes: tmux tells a program of the second of two at most 250 ms later."""


async def resized_while_it_streams(terminal: AnyTerminal, chance: random.Random) -> None:
    """Other sizes at any time until the last line is there."""
    while f"The line {LINES - 1} of it, " not in terminal.everything:
        terminal.resize(chance.randint(40, 200), chance.randint(FEWEST_ROWS, 50))
        await asyncio.sleep(chance.uniform(SHORTEST_S, LONGEST_S))


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(2))
async def test_each_line_is_there_once_whatever_sizes_the_terminal_gets_while_it_streams(
    pegboard: CommandLine, way: Way, seed: int
) -> None:
    steps = [{"calls": [TODO]}, {"text": SAID}]
    scripts(pegboard, stream=steps, chunk_chars=20, delay_s=0.01)

    async with way.opened(*await way.arguments(), columns=100, rows=40) as terminal:
        await terminal.say("stream it")
        await terminal.see("The line 0 of it")
        await resized_while_it_streams(terminal, random.Random(seed))
        await terminal.quiet()
        everything = terminal.everything

    assert COMMITTED.findall(everything) == [str(number) for number in range(LINES)]
    assert everything.count("○ task 0 of the list") == 1
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1
    assert FORBIDDEN.findall(terminal.raw) == []


async def test_a_terminal_that_becomes_a_little_lower_than_the_footer_copies_no_line(
    pegboard: CommandLine, way: Way
) -> None:
    steps = [{"calls": [TODO]}, {"text": f"{LIVE}\n\nThe end."}]
    scripts(pegboard, stream=steps, chunk_chars=4, delay_s=0.05)

    async with way.opened(*await way.arguments(), columns=40, rows=30) as terminal:
        await terminal.say("stream it")
        await terminal.until(lambda: terminal.everything.count("word") >= LIVE.count("word") - 4)
        terminal.resize(40, FEWEST_ROWS)
        await terminal.see("The end.")
        await terminal.quiet()
        everything = terminal.everything

    assert everything.count("Begin of it") == 1
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1
