"""The example of a tool says nothing of permissions, and is bound by the rules all the same."""

import json
import shutil

import pytest

from docs.pages import EXAMPLES
from plugins.chat.conftest import Way
from plugins.chat.screen import scripts
from plugins.cli.commands import CommandLine

ROLL = [{"calls": [{"tool": "roll", "input": {"sides": 1}}]}, {"text": "That was the call."}]


def prepare(pegboard: CommandLine, action: str) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLES / "tool.py", folder / "dice.py")
    scripts(pegboard, roll=ROLL, settings={"permission": {"dice": action}})


@pytest.mark.parametrize(
    ("action", "headless"), [("allow", "allow"), ("ask", "deny"), ("deny", "deny")]
)
async def test_each_command_agrees(pegboard: CommandLine, action: str, headless: str) -> None:
    prepare(pegboard, action)

    explained = await pegboard("explain", "--tool", "roll", "--args", "{}", "--format", "json")
    foreseen = await pegboard("tool", "call", "roll", '{"sides": 1}', "--dry-run")
    called = await pegboard("tool", "call", "roll", '{"sides": 1}')
    run = await pegboard("run", "--format", "json", "roll")

    verdicts = [json.loads(each.out) for each in (explained, foreseen)]
    assert [each["verdict"] for each in verdicts] == [action, action]
    assert [each["headless"] for each in verdicts] == [headless, headless]
    is_allowed = headless == "allow"
    assert json.loads(called.out).get("denied", False) is not is_allowed
    assert (json.loads(called.out).get("output") == "1") is is_allowed
    assert ('"output":"1"' in run.out.replace(" ", "")) is is_allowed


async def test_the_chat_asks(pegboard: CommandLine, way: Way) -> None:
    prepare(pegboard, "ask")

    async with way.opened(*await way.arguments(), columns=100) as terminal:
        await terminal.say("roll")
        await terminal.see_dialog("Allow dice")
        terminal.press("n")
        await terminal.gone("Allow dice")
        await terminal.say("roll")
        await terminal.see_dialog("Allow dice")
        terminal.press("y")
        await terminal.see("That was the call.")


async def test_the_chat_does_not_ask_for_what_is_denied(pegboard: CommandLine, way: Way) -> None:
    prepare(pegboard, "deny")

    async with way.opened(*await way.arguments(), columns=100) as terminal:
        await terminal.say("roll")
        await terminal.see("That was the call.")
        assert "there is no tool 'roll'" in "\n".join(terminal.above.splitlines())
