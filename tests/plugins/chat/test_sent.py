"""What the person sends: at once, with the next step, after the turn, and in one piece."""

import json
import re

from plugins.chat.conftest import Way
from plugins.chat.screen import scripts
from plugins.cli.commands import CommandLine

SLOW = {"tool": "bash", "input": {"command": "sleep 2; echo slept", "description": "sleep"}}


async def test_enter_steers_and_alt_enter_queues_while_the_agent_works(
    pegboard: CommandLine, way: Way
) -> None:
    steps = [{"text": "Begun.", "calls": [SLOW]}, {"text": "First answer."}]
    scripts(pegboard, begin=steps, delay_s=0.002)

    async with way.opened(*await way.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        await terminal.say("steering words")
        await terminal.see_now("↳ steers: steering words")
        terminal.press("queued words")
        await terminal.see_now("queued words")
        terminal.press("alt-enter")
        await terminal.see_now("queued: queued words")
        await terminal.see("You said: queued words")

    above = terminal.above
    assert above.index("slept") < above.index("❯ steering words") < above.index("❯ queued words")
    assert above.count("❯ steering words") == above.count("❯ queued words") == 1


async def test_what_is_queued_goes_out_in_order_however_soon_it_comes(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        for number in range(5):
            terminal.press(f"line {number}", "alt-enter")
        await terminal.see("You said: line 4")

    found = re.findall(r"^(❯ line|You said: line) (\d)$", terminal.above, re.MULTILINE)
    assert found == [(who, str(n)) for n in range(5) for who in ("❯ line", "You said: line")]


async def test_what_is_sent_at_once_begins_one_session(pegboard: CommandLine, way: Way) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        terminal.press("first", "enter", "second", "enter")
        await terminal.see("You said: second")

    assert terminal.everything.count("❯ first") == terminal.everything.count("❯ second") == 1
    listed = await pegboard("session", "list", "--format", "json")
    assert len(json.loads(listed.out)) == 1


async def test_a_long_paste_is_a_chip_and_nothing_is_sent(pegboard: CommandLine, way: Way) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        terminal.paste("\n".join(f"pasted {number}" for number in range(5000)))
        await terminal.see_now("[Pasted text #1: 5,000 lines]")
        assert "You said" not in terminal.everything
        terminal.press("enter")
        await terminal.see("You said")

    assert "pasted 1" in terminal.everything
