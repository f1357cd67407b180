"""What is shown of calls, changes and answers, and of what waits."""

import asyncio
import base64
import re

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.test_additions import CALL, PLUGIN, install
from plugins.chat.test_session import EDIT, READ, calc
from plugins.cli.commands import CommandLine

WAITED_S = 4
ECHO = {"tool": "bash", "input": {"command": "echo slept", "description": "say"}}


async def test_the_seconds_of_a_call_are_not_those_of_the_person(
    pegboard: CommandLine, place: Place
) -> None:
    calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("fix")
        await terminal.see_now("Yes, once")
        await asyncio.sleep(WAITED_S)
        terminal.press("y")
        await terminal.see("Mended.")

    found = re.search(r"● edit calc\.py \+1 -1\s+([0-9.]+) s", terminal.above)
    assert found is not None
    assert float(found[1]) < WAITED_S


async def test_what_is_allowed_for_good_is_not_asked_again(
    pegboard: CommandLine, place: Place
) -> None:
    calc(pegboard)
    back = {**EDIT, "input": {"filePath": "calc.py", "oldString": "a + b", "newString": "a * b"}}
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"calls": [back]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, *await place.arguments(), rows=40) as terminal:
        await terminal.say("fix")
        await terminal.see_dialog("Yes, once")
        terminal.press("a", "enter")
        await terminal.see("Mended.")

    assert terminal.above.count("● edit calc.py +1 -1") == 2
    assert "a * b" in (pegboard.project / "calc.py").read_text()


async def test_the_plugins_of_this_machine_work_beside_a_server(
    pegboard: CommandLine, place: Place
) -> None:
    install(pegboard, PLUGIN)
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])

    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.see_now("status of build")
        await terminal.say("/greet you")
        await terminal.see_now("Whom?")
        terminal.press("down", "enter")
        await terminal.see("hello Grace you in project")
        await terminal.say("go")
        await terminal.see("End.")

    assert "● bash drawn by a plugin" in terminal.above


async def test_why_a_call_failed_is_seen_while_one_before_it_goes_on(
    pegboard: CommandLine, place: Place
) -> None:
    calc(pegboard)
    slow = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}
    wrong = {**READ, "input": {"filePath": "missing.py"}}
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [slow, wrong]}, {"text": "End."}])

    async with chat(pegboard, *await place.arguments(), columns=250) as terminal:
        await terminal.say("begin")
        await terminal.see_now("✗ read missing.py")
        row = next(row for row in terminal.shown if "✗ read" in row)
        terminal.press("escape")
        await terminal.see("stopped")

    assert "missing.py does not exist" in row


async def test_the_tail_ends_where_words_do(pegboard: CommandLine) -> None:
    words = " ".join(f"word{number:02}" for number in range(60))
    script = {"text": words, "delay_s": 0.05}
    scripts(pegboard, talk=script, delay_s=0.05)

    async with chat(pegboard, columns=50) as terminal:
        await terminal.say("talk")
        await terminal.see_now("word20")
        live = [row for row in terminal.shown if row.startswith("word")]

    assert len(live) > 1
    assert all(re.fullmatch(r"(word\d\d ?)+", row) for row in live[:-1])


async def test_a_long_line_of_a_change_goes_on_behind_its_number(pegboard: CommandLine) -> None:
    file = calc(pegboard)
    changed = {"filePath": "calc.py", "oldString": "a - b", "newString": "a + b  # " + "x" * 60}
    long = {"tool": "edit", "input": changed}
    scripts(pegboard, fix=[{"calls": [READ]}, {"calls": [long]}, {"text": "Mended."}])

    async with chat(pegboard, columns=50) as terminal:
        await terminal.say("fix")
        await terminal.see("Mended.")

    assert "x" * 60 in file.read_text()
    rows = terminal.above.split("\n")
    first = next(n for n, row in enumerate(rows) if "│ 2 + " in row)
    assert re.fullmatch(r"  │     x+", rows[first + 1])


async def test_keys_that_are_none_write_nothing(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("a", "\x1b[99;7u", "\x1b]11;rgb:ff/ff/ff\x07", "\x1b[?62;22c", "b")
        await terminal.see_now("❯ ab")


@pytest.mark.parametrize(
    ("reply", "shade"), [("ffff/ffff/ffff", "46;89;168"), ("1c1c/1c1c/1c1c", "122;162;247")]
)
async def test_the_colours_are_those_for_the_background_that_the_terminal_tells(
    pegboard: CommandLine, reply: str, shade: str
) -> None:
    scripts(pegboard, go=[{"calls": [ECHO]}, {"text": "End."}])

    async with chat(pegboard, ready="", COLORTERM="truecolor") as terminal:
        await terminal.until(lambda: b"\x1b]11;?" in terminal.raw)
        terminal.press(f"\x1b]11;rgb:{reply}\x07")
        await terminal.see_now("script.json")
        await terminal.say("go")
        await terminal.see("End.")

    assert f"38;2;{shade}".encode() in terminal.raw


async def test_what_is_copied_is_an_answer_also_after_the_history_was_summarised(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, hello={"text": "The answer itself."})

    async with chat(pegboard) as terminal:
        await terminal.say("hello")
        await terminal.see("The answer itself.")
        await terminal.say("/compact")
        await terminal.see("compacted: ")
        await terminal.say("/copy")
        await terminal.see("copied 18 bytes")

    copied = re.findall(rb"\x1b\]52;c;([^\x07]*)\x07", terminal.raw)
    assert [base64.b64decode(each) for each in copied] == [b"The answer itself."]


async def test_the_context_names_what_each_request_carries(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, hello={"text": "Hello."})

    async with chat(pegboard, *await place.arguments(), columns=120, rows=50) as terminal:
        await terminal.say("hello")
        await terminal.see("Hello.")
        await terminal.say("/context")
        await terminal.see("the parts are estimates")
        await terminal.see("tool descriptions (")

    found = re.findall(r"([\d,]+)\s+\d+%\s+system prompt \([^)]+\)", terminal.above)
    assert len(found) > 1
    assert all(int(size.replace(",", "")) > 0 for size in found)
    assert "tool descriptions (bash)" in terminal.above
    assert "tool descriptions (invalid)" not in terminal.above, "no model is offered this tool"


async def test_tools_plugins_and_their_changes_are_shown(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, hello={"text": "Hello."})
    folder = pegboard.home / "bin"
    folder.mkdir()
    less = folder / "less"
    less.write_text('#!/bin/sh\nfor last; do :; done\ncat "$last"\nsleep 0.5\n')
    less.chmod(0o755)
    pegboard.env["PATH"] = f"{folder}:{pegboard.environment()['PATH']}"

    async with chat(pegboard, *await place.arguments(), columns=120, rows=50) as terminal:
        await terminal.say("hello")
        await terminal.see("Hello.")
        await terminal.say("/tools")
        await terminal.see("write")
        await terminal.say("/plugins")
        await terminal.see("websearch")
        await terminal.say("/trace")
        await terminal.until(lambda: b"chat_system_transform" in terminal.raw)

    assert re.search(r"bash\s+bash\n", terminal.above)
    assert re.search(r"environment\s+built-?in", terminal.above)
