"""A prompt that was undone comes back to the editor, and is in no next command's way."""

import pytest

from pegboard_plugins.chat.draft import Draft
from plugins.chat.conftest import Way
from plugins.chat.screen import scripts
from plugins.cli.commands import CommandLine


@pytest.fixture
def draft() -> Draft:
    return Draft(None, lambda _: None)


async def test_undo_is_given_again_behind_the_prompt_that_came_back(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        for word in ("first", "second", "third"):
            await terminal.say(word)
            await terminal.see(f"You said: {word}")
        for word in ("third", "second", "first"):
            terminal.press("/undo", "enter")
            await terminal.see(f"undone: {word}")
            await terminal.until(lambda: terminal.editor == f"❯ {word}")  # noqa: B023 - awaited here
        terminal.press("/redo", "enter")
        await terminal.see("redone")
        await terminal.until(lambda: terminal.editor == "❯")

    assert "You said: /" not in terminal.everything


async def test_what_an_undo_leaves_of_the_files_is_reported_once(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await terminal.say("!echo made > made.txt; rm made.txt")
        await terminal.see("● bash")
        await terminal.say("/undo")
        await terminal.see("undone: hello")
        await terminal.see("! ")
        await terminal.quiet()

    notes = [row for row in terminal.above.split("\n") if row.startswith("! ")]
    assert len(notes) == len(set(notes)) == 1


async def test_two_undos_in_one_breath_go_back_by_two(pegboard: CommandLine, way: Way) -> None:
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        for word in ("first", "second"):
            await terminal.say(word)
            await terminal.see(f"You said: {word}")
        terminal.press("/undo", "enter", "/undo", "enter")
        await terminal.see("undone: first")
        await terminal.until(lambda: terminal.editor == "❯ first")


async def test_a_command_takes_the_place_of_a_restored_prompt_which_is_then_history(
    draft: Draft,
) -> None:
    draft.restore("mend it")
    draft.letter("/")

    assert (draft.text, draft.earlier()) == ("/", ("mend it",))


async def test_a_restored_prompt_that_was_edited_stays(draft: Draft) -> None:
    draft.restore("look in")
    for letter in " a/":
        draft.letter(letter)

    assert (draft.text, draft.earlier()) == ("look in a/", ())


async def test_a_command_that_is_being_written_stays_when_a_prompt_comes_back(
    draft: Draft,
) -> None:
    draft.letter("/")
    draft.letter("u")
    draft.restore("mend it")

    assert (draft.text, draft.earlier()) == ("/u", ("mend it",))


async def test_what_is_sent_and_recalled_is_not_restored(draft: Draft) -> None:
    draft.restore("mend it")
    draft.take()
    draft.set("mend it")
    draft.letter("/")

    assert draft.text == "mend it/"
