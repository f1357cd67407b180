"""Commands that need the session at rest wait for it, and the person can end the wait."""

import asyncio

import pytest

from pegboard import InvalidInputError
from pegboard_plugins.chat import rest
from pegboard_plugins.chat.rest import IdleWait
from plugins.chat.conftest import Place
from plugins.chat.held import HeldCall
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine


def held(pegboard: CommandLine) -> HeldCall:
    """Write the script of a turn that ends when its call is released."""
    found = HeldCall(pegboard)
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [found.call]}, {"text": "First answer."}])
    return found


@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("/compact", "compacted: "),
        ("/undo", "undone: begin"),
        ("/fork", "forked: this is now"),
        ("/reload", "plugins and settings reloaded"),
        ("!echo from the shell", "from the shell"),
    ],
)
async def test_a_command_waits_until_the_turn_has_ended(
    pegboard: CommandLine, place: Place, command: str, done: str
) -> None:
    turn = held(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        await terminal.say(command)
        await terminal.see_now(f"{command} waits for the end of the turn")
        turn.release()
        await terminal.see("First answer.")
        await terminal.until(lambda: done in terminal.everything.partition("First answer.")[2])

    assert "is busy" not in terminal.everything


async def test_escape_ends_the_wait_and_not_the_turn(pegboard: CommandLine, place: Place) -> None:
    turn = held(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        await terminal.say("/compact")
        await terminal.see_now("/compact waits for the end of the turn")
        terminal.press("escape")
        await terminal.see("/compact was not done")
        turn.release()
        await terminal.see("First answer.")
        await terminal.quiet()

    assert "summarised" not in terminal.everything


async def test_commands_that_wait_are_done_in_order(pegboard: CommandLine) -> None:
    turn = held(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("begin")
        await terminal.see("● bash")
        for number in range(3):
            await terminal.say(f"!echo line {number}")
        turn.release()
        await terminal.see("● bash echo line 2")

    above = terminal.above
    places = [above.index(f"● bash echo line {number}") for number in range(3)]
    assert above.index("First answer.") < places[0] < places[1] < places[2]


async def test_a_wait_has_a_limit_and_the_next_command_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = True
    waits = IdleWait(lambda: works, lambda: None)
    monkeypatch.setattr(rest, "REST_S", 0.05)

    with pytest.raises(InvalidInputError, match=r"/undo: the turn is still running after 0\.05 s"):
        async with waits.before("/undo"):
            pass
    works = False
    async with asyncio.timeout(30), waits.before("/redo"):
        assert waits.notice == ""


async def test_rewind_goes_back_before_a_prompt_and_redo_brings_all_back(
    pegboard: CommandLine, place: Place
) -> None:
    write = {"tool": "write", "input": {"filePath": "made.txt", "content": "made"}}
    scripts(pegboard, make=[{"calls": [write]}, {"text": "It is made."}])
    made = pegboard.project / "made.txt"

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await terminal.say("make")
        await terminal.see("It is made.")
        await terminal.say("/rewind")
        await terminal.see_now("Rewind to before")
        terminal.press("hello")
        await terminal.see_now("1 of 2")
        terminal.press("enter")
        await terminal.until(lambda: not made.exists())
        await terminal.until(lambda: terminal.editor == "❯ hello")
        terminal.press("c-u")
        await terminal.say("/redo")
        await terminal.see("redone")

    assert made.read_text() == "made"
