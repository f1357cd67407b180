"""A session in the chat: what is said and done stands above the footer, once, in order."""

import random
import re
from pathlib import Path

import pytest

from plugins.chat.conftest import Place
from plugins.chat.held import HeldCall
from plugins.chat.screen import FORBIDDEN, chat, scripts
from plugins.chat.terminals import RULE
from plugins.cli.commands import CommandLine

EDIT = {
    "tool": "edit",
    "input": {"filePath": "calc.py", "oldString": "a - b", "newString": "a + b"},
}
READ = {"tool": "read", "input": {"filePath": "calc.py"}}


def calc(pegboard: CommandLine) -> Path:
    file = pegboard.project / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    return file


async def test_an_answer_stands_above_the_footer_as_markdown(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, hello={"text": "It is **bold**.\n\n- one\n- two\n"})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("hello")
        await terminal.see("• two")

    assert "❯ hello" in terminal.above
    assert "It is bold." in terminal.above
    assert "**" not in terminal.above


async def test_a_change_is_asked_with_its_diff_and_shown_with_line_numbers(
    pegboard: CommandLine, place: Place
) -> None:
    file = calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("fix")
        await terminal.see_dialog("Yes, once")
        assert "2 +     return a + b" in terminal.everything
        assert "edit" in terminal.everything
        terminal.press("y")
        await terminal.see("Mended.")

    assert "● edit calc.py +1 -1" in terminal.above
    assert "│ 2 +     return a + b" in terminal.above
    assert "a + b" in file.read_text()


async def test_a_refusal_says_what_to_do_instead(pegboard: CommandLine, place: Place) -> None:
    calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Heard: {{result.-1}}"}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("fix")
        await terminal.see_dialog("Yes, once")
        terminal.press("w")
        await terminal.see_now("Tell the agent what to do instead · Enter")
        await terminal.say("rather divide")
        await terminal.see("✗ edit calc.py")

    assert "rather divide" in terminal.above


async def test_a_question_of_the_model_is_answered_by_number(
    pegboard: CommandLine, place: Place
) -> None:
    asked = {"question": "Which?", "header": "Q", "options": [{"label": "Red"}, {"label": "Blue"}]}
    call = {"tool": "question", "input": {"questions": [asked]}}
    scripts(pegboard, ask=[{"calls": [call]}, {"text": "Chosen: {{result.0}}"}])

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog("2    Blue")
        terminal.press("2")
        await terminal.see("Chosen:")

    assert "Which?  Blue" in terminal.above or "Blue" in terminal.above


async def test_what_is_queued_can_be_edited(pegboard: CommandLine) -> None:
    held = HeldCall(pegboard)
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [held.call]}, {"text": "End."}])

    async with chat(pegboard) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        terminal.press("later", "alt-enter")
        await terminal.see_now("after this turn: later")
        terminal.press("up")
        await terminal.gone("after this turn: later")
        terminal.press(" on", "alt-enter")
        await terminal.see_now("after this turn: later on")


async def test_what_the_model_has_not_read_can_be_edited(
    pegboard: CommandLine, place: Place
) -> None:
    held = HeldCall(pegboard)
    scripts(pegboard, begin={"text": "Begun.", "calls": [held.call]}, delay_s=0.002)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        terminal.paste("\n".join(f"pasted {number}" for number in range(20)))
        await terminal.say("first words")
        await terminal.see_now("↳ next step: ")
        terminal.press("up")
        await terminal.gone("↳ next step")
        await terminal.see_now("[Pasted text #1: 20 lines] first words")
        terminal.press("c-c")
        await terminal.say("other words")
        await terminal.see_now("↳ next step: other words")
        held.release()
        await terminal.see("You said: other words")
        terminal.press("up")
        await terminal.see_now("other words")

    assert terminal.above.count("❯ other words") == 1
    assert "first words" not in terminal.above
    assert "pasted 1" not in terminal.above


async def test_escape_stops_the_turn_and_the_editor_is_ready(
    pegboard: CommandLine, place: Place
) -> None:
    call = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [call]}, {"text": "End."}])

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see_now("● bash")
        terminal.press("escape")
        await terminal.see("stopped")
        await terminal.say("!echo begun; sleep 60")
        await terminal.see_now("│ begun")
        terminal.press("escape")
        await terminal.until(lambda: terminal.above.count("stopped after") == 2)
        await terminal.say("hello again")
        await terminal.see("You said: hello again")

    assert "│ begun" in terminal.above
    assert terminal.above.lower().count("stopped") == 2  # each call says it, and nothing else does


@pytest.mark.timeout(240)
async def test_each_row_is_above_the_footer_once_and_in_order_after_many_turns_and_sizes(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, line={"text": "Answer to {{prompt}}, end."})
    chance = random.Random(7)

    async with chat(pegboard, columns=100, rows=24) as terminal:
        for number in range(16):
            await terminal.say(f"line {number} of many")
            await terminal.see(f"Answer to line {number} of many, end.")
            if number % 2:
                terminal.resize(chance.randrange(60, 160), chance.randrange(16, 40))
        await terminal.until(
            lambda: (
                sum(row.startswith(RULE) for row in [*terminal.scrollback, *terminal.shown]) == 1
            )
        )
        found = re.findall(r"Answer to line (\d+) of many, end\.", terminal.above)

    assert found == [str(number) for number in range(16)]
    assert sum(row.startswith(RULE) for row in [*terminal.scrollback, *terminal.shown]) == 1
    assert FORBIDDEN.findall(terminal.raw) == []


HOSTILE = (
    "\x1b]52;c;aGk=\x07 \x1b]0;title\x07 \x9b2J \x1b[2J\x1b[1;1H \u202ertl \r over"
    " 👨\u200d👩\u200d👧 漢字"
)


async def test_hostile_text_neither_moves_the_cursor_nor_leaves_its_block(
    pegboard: CommandLine, place: Place
) -> None:
    file = pegboard.project / "evil.txt"
    file.write_text(HOSTILE + "\n" + "x" * 100_000)
    show = {"tool": "bash", "input": {"command": f"cat {file.name}", "description": HOSTILE}}
    scripts(pegboard, evil=[{"text": HOSTILE, "calls": [show]}, {"text": "After it."}])

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("evil")
        await terminal.see("After it.")

    assert "❯ evil" in terminal.above
    assert b"\x1b]52" not in terminal.raw
    assert b"\x1b]0;" not in terminal.raw
    assert FORBIDDEN.findall(terminal.raw) == []


async def test_a_picture_whose_path_is_pasted_is_a_chip(pegboard: CommandLine) -> None:
    scripts(pegboard)
    picture = pegboard.project / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")

    async with chat(pegboard) as terminal:
        terminal.paste(str(picture))
        await terminal.see_now("[Picture #1: a.png]")


async def test_of_a_resumed_session_so_many_prompts_are_shown(pegboard: CommandLine) -> None:
    scripts(pegboard, line={"text": "Answer to {{prompt}}, end."})
    async with chat(pegboard) as terminal:
        for number in range(3):
            await terminal.say(f"line {number} of it")
            await terminal.see(f"Answer to line {number} of it, end.")

    async with chat(pegboard, "-c", "--show", "1") as terminal:
        await terminal.see("Answer to line 2 of it, end.")
        assert "line 1 of it" not in terminal.everything


async def test_a_request_that_is_answered_elsewhere_closes_its_dialog(
    pegboard: CommandLine,
) -> None:
    calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})
    place = Place(pegboard, attached=True)
    arguments = await place.arguments()
    try:
        async with chat(pegboard, *arguments) as first:
            await first.say("fix")
            await first.see_now("Yes, once")
            async with chat(pegboard, *arguments, "-c") as second:
                await second.see_dialog("Yes, once")
                second.press("y")
                await second.see("Mended.")
            await first.see("Mended.")
            await first.gone("Yes, once")
    finally:
        await place.close()


async def test_who_looks_elsewhere_is_told_that_the_turn_is_over(pegboard: CommandLine) -> None:
    scripts(pegboard, hello={"text": "Hello.", "delay_s": 0.5})

    async with chat(pegboard) as terminal:
        await terminal.say("hello")
        terminal.press("\x1b[O")
        await terminal.until(lambda: b"\x1b]9;Pegboard is ready" in terminal.raw)
        assert "[O" not in "\n".join(terminal.shown)


async def test_the_first_screen_says_what_was_found_where_no_model_can_be_used(
    pegboard: CommandLine,
) -> None:
    async with chat(pegboard, rows=30, ready="a letter or Enter") as terminal:
        assert "Choose a model to start." in terminal.everything
        assert "Add an API key" in terminal.everything
        assert "Watch the demo" in terminal.everything
