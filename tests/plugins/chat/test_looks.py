"""Themes, what is offered, and how lines break: what the chat looks like."""

import os
import re

from pegboard_plugins.chat.slash import OWN
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import RULE
from plugins.cli.commands import CommandLine

COLOURS = {"COLORTERM": "truecolor"}
DARK_WARNING, LIGHT_WARNING = b"38;2;224;175;104m", b"38;2;138;90;0m"
WHITE = "\x1b]11;rgb:ff/ff/ff\x1b\\"


async def test_the_theme_is_the_one_of_the_background(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, **COLOURS) as terminal:
        terminal.press(WHITE)
        await terminal.say("/nothing")
        await terminal.see("there is no command /nothing")

    assert LIGHT_WARNING in terminal.raw


async def test_the_theme_of_the_settings_stays_whatever_the_background_is(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, settings={"plugins": {"chat": {"options": {"theme": "dark"}}}})

    async with chat(pegboard, **COLOURS) as terminal:
        terminal.press(WHITE)
        await terminal.say("/nothing")
        await terminal.see("there is no command /nothing")
        terminal.press("c-c")
        assert (LIGHT_WARNING in terminal.raw, DARK_WARNING in terminal.raw) == (False, True)
        await terminal.say("/theme auto")
        await terminal.say("/nothing else")
        await terminal.until(lambda: LIGHT_WARNING in terminal.raw)


async def test_a_theme_that_was_chosen_is_that_of_the_next_chat_too(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, **COLOURS) as terminal:
        await terminal.say("/theme light")
        await terminal.see("Theme: light (saved)")
    async with chat(pegboard, **COLOURS) as terminal:
        await terminal.say("/nothing")
        await terminal.see("there is no command /nothing")

    assert LIGHT_WARNING in terminal.raw


async def test_a_theme_that_nobody_has_is_named_with_those_there_are(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, settings={"plugins": {"chat": {"options": {"theme": "pink"}}}})

    async with chat(pegboard) as terminal:
        await terminal.see("! there is no theme pink: auto, terminal, dark, light, plain")


async def test_all_models_that_can_be_asked_are_offered_with_their_windows(
    pegboard: CommandLine,
) -> None:
    options = {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "key"}
    provider = {"options": options, "models": {"far": {"limit": {"context": 1_050_000}}}}
    pegboard.configure(model="mine/far", provider={"mine": provider})

    async with chat(pegboard, ready="mine/far") as terminal:
        await terminal.say("/model")
        await terminal.see_now("❯ mine/far ✓  1.05M")


async def test_commands_are_offered_that_were_begun_before_they_were_known(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        terminal.press("/mod")
        await terminal.see_now("/model  choose the model")


async def test_the_first_screen_offers_a_key_before_all_else(pegboard: CommandLine) -> None:
    async with chat(pegboard, ready="a letter or Enter") as terminal:
        assert "❯ l  Add an API key" in terminal.shown


async def test_a_letter_of_the_first_screen_does_what_stands_beside_it(
    pegboard: CommandLine,
) -> None:
    async with chat(pegboard, ready="a letter or Enter") as terminal:
        await terminal.see_dialog("a letter or Enter")
        terminal.press("d")
        await terminal.left()
        await terminal.see("python3 -m unittest")


async def test_words_are_whole_in_what_the_person_and_the_chat_say(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)
    words = "seventeen " * 9

    async with chat(pegboard, columns=50) as terminal:
        os.write(terminal.ours, f"{words}\r".encode())
        await terminal.see("You said")
        said = [row for row in terminal.above.split("\n") if "seven" in row]

    assert {word for row in said for word in row.split()} <= {"❯", "You", "said:", "seventeen"}


async def test_a_running_call_is_named_by_words_and_not_by_what_is_made_of_them(
    pegboard: CommandLine,
) -> None:
    asked = {"question": "Which?", "header": "Q", "options": [{"label": "Red"}]}
    question = {"tool": "question", "input": {"questions": [asked]}}
    scripts(pegboard, ask=[{"calls": [question]}])

    async with chat(pegboard) as terminal:
        await terminal.say("ask me")
        await terminal.see_now("1    Red")
        assert [row for row in terminal.shown if "{" in row] == []


async def test_the_commands_are_offered_in_columns_and_counted(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        terminal.press("/")
        await terminal.see_now("  1 of ")
        (count,) = re.findall(r"^  1 of (\d+)$", "\n".join(terminal.shown), re.MULTILINE)
        rows = [re.match(r"[❯ ] /\w+ +(?=\w)", row) for row in terminal.shown]
        terminal.press("up")
        await terminal.see_now(f"  {count} of {count}")

    assert int(count) > len(OWN)
    assert len({row.end() for row in rows if row}) == 1


async def test_a_list_marks_what_is_in_use(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        await terminal.say("/theme")
        await terminal.see_now("❯ auto ✓")
