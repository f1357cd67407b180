"""The editor with the keys of vi, where `plugins.chat.options.editing` chooses them."""

from pathlib import Path

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import RULE, WAITING
from plugins.chat.test_paint import SLOW, program
from plugins.cli.commands import CommandLine

FILE = "approved.txt"
ASKING = {"tool": "bash", "input": {"command": f"touch {FILE}", "description": "touch"}}
SHOWN = f"touch {FILE}"
NAVIGATES = "\u276e"


def prepare(pegboard: CommandLine, *, delay_s: float = 0) -> None:
    steps = [{"calls": [ASKING], "delay_s": delay_s}, {"text": "Went on."}]
    options = {"chat": {"options": {"editing": "vi"}}}
    settings = {"permission": {"bash": "ask"}, "plugins": options}
    scripts(pegboard, ask=steps, settings=settings)


async def test_the_editor_takes_commands_of_vi(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("one two three", "escape")
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} one two three")
        terminal.press("0", "d", "w", "f", "t")
        await terminal.quiet()
        terminal.press("x", "A", " four")
        await terminal.until(lambda: terminal.editor == "❯ two hree four")
        terminal.press("escape", "u", "?")
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} two hree")
        terminal.press("enter")
        await terminal.see("You said: two hree")
        await terminal.until(lambda: terminal.editor == "❯")
        terminal.press("ask?")
        await terminal.until(lambda: terminal.editor == "❯ ask?")


async def test_commands_may_be_typed_before_the_editor_is_there(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    prepare(pegboard)
    go = tmp_path / "go"

    async with program(pegboard, f"GO = {str(go)!r}\n{SLOW}") as terminal:
        await terminal.see_now(RULE)
        terminal.press("one two", "escape", *"0dw")
        await terminal.until(lambda: terminal.editor.startswith("❯ one two"))
        go.touch()
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} two")
        terminal.press("i", "new ")
        await terminal.until(lambda: terminal.editor == "❯ new two")


async def test_commands_may_be_typed_slowly(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("one two", "escape")
        await terminal.until(lambda: terminal.editor.startswith(NAVIGATES))
        terminal.press("g")
        await terminal.quiet()
        terminal.press("g")
        await terminal.quiet()
        terminal.press("x")
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} ne two")


async def test_escape_stops_a_turn_only_where_it_has_no_use_in_the_editor(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard, delay_s=30)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        await terminal.see_now("Esc stops")
        terminal.press("more", "escape")
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} more")
        await terminal.quiet()
        assert "Esc stops" in "\n".join(terminal.shown)
        terminal.press("escape")
        await terminal.gone("Esc stops")
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} more")


async def test_no_command_of_vi_answers_a_dialog_that_has_just_appeared(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard, delay_s=0.5)

    async with chat(pegboard, *await place.arguments()) as terminal:
        terminal.write(b"ask\ra draft\x1b")  # the draft begins before any dialog can come
        await terminal.until(lambda: terminal.editor == f"{NAVIGATES} a draft")
        await terminal.see_now(WAITING)
        terminal.press(*"yenw12wvv", "a", *"ys1", "escape")
        await terminal.until(lambda: terminal.editor.startswith(f"{NAVIGATES} a draft"))
        await terminal.see_now(SHOWN)
        assert not (pegboard.project / FILE).exists()
        terminal.press("c-x")
        await terminal.see_dialog(SHOWN)
        terminal.press("n")
        await terminal.see("You said no")

    assert not (pegboard.project / FILE).exists()


async def test_dialogs_and_lists_have_their_own_keys(pegboard: CommandLine, place: Place) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        terminal.press("/theme", "enter")
        await terminal.see_now("type to filter")
        terminal.press("pla")
        await terminal.see_now("1 of ")
        terminal.press("escape")
        await terminal.gone("type to filter")
        await terminal.say("ask")
        await terminal.see_dialog(SHOWN)
        terminal.press("y")
        await terminal.see("Went on.")

    assert (pegboard.project / FILE).exists()
