"""Requests of the engine that wait side by side: each is answered once, wherever that is."""

import pytest

from plugins.chat.conftest import Place, Way
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine

ASKED = {"question": "Which?", "header": "Q", "options": [{"label": "Red"}, {"label": "Blue"}]}
CALLS = [
    {"tool": "bash", "input": {"command": "echo first >> done.txt", "description": "one"}},
    {"tool": "bash", "input": {"command": "echo second >> done.txt", "description": "two"}},
    {"tool": "question", "input": {"questions": [ASKED]}},
]
STEPS = [{"calls": CALLS}, {"text": "All was answered."}]


def prepare(pegboard: CommandLine) -> None:
    scripts(pegboard, ask=STEPS, settings={"permission": {"bash": "ask"}})


async def answer(terminal: AnyTerminal, shown: str, key: str) -> None:
    """Press the key when this is asked."""
    await terminal.see_dialog(shown)
    terminal.press(key)
    await terminal.gone(shown)


async def test_requests_at_once_are_each_answered_once(pegboard: CommandLine, way: Way) -> None:
    prepare(pegboard)
    answers = {"echo first": "y", "echo second": "y", "Which?": "2"}

    async with way.opened(*await way.arguments(), columns=100) as terminal:
        await terminal.say("ask")
        await terminal.see_now("1 of 3")
        for _ in range(3):
            await terminal.until(lambda: any(each in _asked(terminal) for each in answers))
            shown = next(each for each in answers if each in _asked(terminal))
            await terminal.see_dialog(shown)
            terminal.press(answers.pop(shown))
            await terminal.until(lambda: shown not in _asked(terminal))  # noqa: B023 - awaited here
        await terminal.see("All was answered.")

    lines = (pegboard.project / "done.txt").read_text().split()
    assert sorted(lines) == ["first", "second"]
    assert "Which?  Blue" in terminal.above


def _asked(terminal: AnyTerminal) -> str:
    """What is in the dialog."""
    rows = "\n".join(terminal.shown)
    places = [rows.rfind(head) for head in ("Allow ", "Question")]
    return rows[max(places) :] if max(places) >= 0 else ""


@pytest.mark.parametrize("in_tmux", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_what_is_answered_elsewhere_is_asked_no_more(
    pegboard: CommandLine, in_tmux: bool
) -> None:
    prepare(pegboard)
    way = Way(pegboard, "tmux-attached" if in_tmux else "pyte-attached")
    arguments = await way.arguments()

    try:
        async with way.opened(*arguments, columns=100) as first:
            await first.say("ask")
            await first.see_now("1 of 3")
            async with chat(pegboard, *arguments, "-c", columns=100) as second:
                await second.see_now("1 of 3")
                answers = {"echo first": "y", "echo second": "y", "Which?": "1"}
                for _ in range(3):
                    await second.until(lambda: any(each in _asked(second) for each in answers))
                    shown = next(each for each in answers if each in _asked(second))
                    await second.see_dialog(shown)
                    second.press(answers.pop(shown))
                    await first.until(lambda: shown not in _asked(first))  # noqa: B023 - awaited here
                    await second.until(lambda: shown not in _asked(second))  # noqa: B023 - awaited here
                await second.see("All was answered.")
            await first.see("All was answered.")
            assert _asked(first) == ""
            await first.say("hello")
            await first.see("You said: hello")
    finally:
        await way.place.close()

    lines = (pegboard.project / "done.txt").read_text().split()
    assert sorted(lines) == ["first", "second"]


PUSH = {"tool": "bash", "input": {"command": "git push origin main", "description": "push"}}
UNCLEAR = {"tool": "bash", "input": {"command": "$CMD -x", "description": "unclear"}}
OFFERED = "Yes, always in this project: git push *"


async def written(terminal: AnyTerminal, pattern: str) -> None:
    """Put the pattern in the editor, in the place of what is there, and send it."""
    terminal.press("c-u", pattern)
    await terminal.until(lambda: terminal.editor == f"❯ {pattern}")
    terminal.press("enter")


async def test_the_pattern_of_an_approval_can_be_narrowed(
    pegboard: CommandLine, place: Place
) -> None:
    rules = {"bash": {"*": "allow", "git push *": "ask"}}
    push = [{"calls": [PUSH]}, {"text": "It was pushed."}]
    scripts(pegboard, push=push, settings={"permission": rules})

    async with chat(pegboard, *await place.arguments(), columns=100) as terminal:
        terminal.press("push", "enter")
        await terminal.see_dialog(OFFERED)
        terminal.press("e")
        await terminal.until(lambda: terminal.editor == "❯ git push *")
        await written(terminal, "git p*")
        await terminal.see_now('"git p*" would allow more than is offered: "git push *"')
        await terminal.until(lambda: terminal.editor == "❯ git p*")
        await written(terminal, "git push upstream *")
        await terminal.see_now('a pattern must still match "git push origin main"')
        terminal.press("escape")
        await terminal.see_now(OFFERED)
        await terminal.until(lambda: terminal.editor == "❯")
        terminal.press("e")
        await terminal.until(lambda: terminal.editor == "❯ git push *")
        await written(terminal, "git push origin *")
        await terminal.see("It was pushed.")
        await terminal.until(lambda: terminal.editor == "❯")

    listed = await pegboard("permission", "list")
    explained = await pegboard("explain", "git push origin next")
    other = await pegboard("explain", "git push upstream main")
    assert "git push origin *" in listed.out
    assert 'approved before, for the project: bash "git push origin *"' in explained.out
    assert "approved before" not in other.out


async def test_of_an_unclear_line_there_is_no_pattern_to_edit(
    pegboard: CommandLine, place: Place
) -> None:
    steps = [{"calls": [UNCLEAR]}]
    scripts(pegboard, unclear=steps)

    async with chat(pegboard, *await place.arguments(), columns=100) as terminal:
        terminal.press("unclear", "enter")
        await terminal.see_dialog("a    Yes, always in this project: [unclear] $CMD -x")
        terminal.press("e")
        await terminal.see_now("allows exactly this: there is no pattern to change")
        terminal.press("n")
        await terminal.see("You said no")
