"""What the person sends: at once, with the next step, after the turn, and in one piece."""

import json
import re

from plugins.chat.conftest import Place, Way
from plugins.chat.held import HeldCall
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import RULE, AnyTerminal
from plugins.cli.commands import CommandLine

LONG = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}


async def test_enter_steers_and_alt_enter_queues_while_the_agent_works(
    pegboard: CommandLine, way: Way
) -> None:
    held = HeldCall(pegboard)
    steps = [{"text": "Begun.", "calls": [held.call]}, {"text": "First answer."}]
    scripts(pegboard, begin=steps, delay_s=0.002)

    async with way.opened(*await way.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        await terminal.say("steering words")
        await terminal.see_now("↳ next step: steering words")
        terminal.press("queued words")
        await terminal.see_now("queued words")
        terminal.press("alt-enter")
        await terminal.see_now("after this turn: queued words")
        held.release()
        await terminal.see("You said: queued words")

    above = terminal.above
    assert above.index("slept") < above.index("❯ steering words") < above.index("❯ queued words")
    assert above.count("❯ steering words") == above.count("❯ queued words") == 1


async def test_a_stop_gives_back_what_was_queued_and_what_the_model_has_not_read(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [LONG]}])

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        for words in ("first words", "second words"):
            await terminal.say(words)
            await terminal.see_now(f"↳ next step: {words}")
        terminal.press("queued words", "alt-enter")
        await terminal.see_now("↳ after this turn: queued words · Up edits")
        terminal.press("escape")
        await terminal.see("stopped")
        await terminal.until(lambda: _editor(terminal) == ["first", "second", "queued"])
        terminal.press(" at once", "enter")
        await terminal.see("You said: first words")
        await terminal.until(lambda: terminal.above.count("queued words at once") == 2)

    assert terminal.above.count("❯ first words") == 1
    assert terminal.above.count("second words") == 2  # of the one prompt, and of its answer


async def test_a_command_may_be_typed_right_after_escape(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [LONG]}])

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        await terminal.say("steering words")
        await terminal.see_now("↳ next step: steering words")
        terminal.press("queued words", "alt-enter")
        await terminal.see_now("↳ after this turn: queued words · Up edits")
        terminal.write(b"\x1b/todo\r")
        await terminal.see("the task list is empty")
        await terminal.see("stopped")
        await terminal.say("hello")
        await terminal.until(lambda: terminal.above.count("hello") >= 2)


def _editor(terminal: AnyTerminal) -> list[str]:
    """Return the first words of the lines in the editor."""
    rows = terminal.shown
    first = max(number for number, row in enumerate(rows) if row.startswith(RULE)) + 1
    words = [row.strip("❯ ") for row in rows[first:]]
    return [each.removesuffix(" words") for each in words if each.endswith(" words")]


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


async def test_a_paste_of_the_history_is_sent_in_full_by_another_chat(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)
    pasted = "\n".join(f"pasted {number}" for number in range(20))

    async with way.opened(*await way.arguments()) as terminal:
        terminal.paste(pasted)
        await terminal.say("what is this?")
        await terminal.see("You said")
        terminal.press("up")
        await terminal.until(lambda: terminal.editor.startswith("❯ [Pasted text #1: 20 lines]"))
    async with way.opened(*await way.arguments(), rows=60) as terminal:
        terminal.press("c-r")
        await terminal.see_now("type to filter")
        terminal.press("what is", "enter")
        await terminal.gone("type to filter")
        terminal.press("enter")
        await terminal.see("You said: pasted 0")
        await terminal.quiet()

    assert "Pasted text" not in terminal.above
    assert re.search(r"pasted 19\s+what is this\?", terminal.above.partition("You said")[2])


async def test_a_chip_that_stands_for_nothing_is_not_sent_at_once(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments(), columns=120) as terminal:
        await terminal.say("[Picture #1: a.png] what is this?")
        await terminal.see("[Picture #1: a.png] is from another chat")
        await terminal.until(lambda: terminal.editor == "❯ [Picture #1: a.png] what is this?")
        assert "You said" not in terminal.above
        terminal.press("enter")
        await terminal.see("You said: [Picture #1: a.png] what is this?")


async def test_a_prompt_that_no_server_takes_stays_in_the_editor(pegboard: CommandLine) -> None:
    scripts(pegboard)
    place = Place(pegboard, attached=True)

    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await place.close()
        await terminal.say("a prompt")
        await terminal.see("✗ ")
        await terminal.until(lambda: terminal.editor == "❯ a prompt")
        assert "❯ a prompt" not in terminal.above
