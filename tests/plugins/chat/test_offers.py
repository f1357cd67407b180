"""What is offered while a command or a mention is typed, and only then."""

import asyncio
from collections.abc import Sequence

import pytest

from pegboard_plugins.chat.draft import Draft
from pegboard_plugins.chat.modes import Item
from pegboard_plugins.chat.offers import Offers
from plugins.chat.conftest import Way
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import RULE
from plugins.cli.commands import CommandLine


class Editor:
    """An editor with what is offered below it."""

    def __init__(self) -> None:
        self.looked_up = asyncio.Event()
        self.draft = Draft(None, self._changed)
        self.offers = Offers(self.draft, self._commands, self._look_up, lambda: None)
        self.draft.on_placed = self.offers.close

    def _changed(self, text: str) -> None:
        self.offers.changed(text)

    @staticmethod
    def _commands() -> Sequence[Item]:
        return [Item(value="model"), Item(value="mode")]

    async def _look_up(self, sign: str, letters: str) -> Sequence[Item]:
        self.looked_up.set()
        return [Item(value=f"{letters}.py"), Item(value=f"{letters}.py", note="again")]

    def type(self, text: str) -> None:
        """Type letter by letter."""
        for letter in text:
            self.draft.letter(letter)


@pytest.fixture
async def editor() -> Editor:
    return Editor()


@pytest.mark.parametrize("empties", ["empty", "take"])
async def test_an_emptied_editor_offers_nothing(editor: Editor, empties: str) -> None:
    editor.type("/mo")
    assert len(editor.offers.items) == 2

    getattr(editor.draft, empties)()

    assert editor.offers.items == ()


@pytest.mark.parametrize("text", ["/mo", "look at @calc"])
@pytest.mark.parametrize("puts", ["restore", "put_back", "put_before", "set", "recall"])
async def test_a_text_that_comes_back_offers_nothing_until_it_is_edited(
    editor: Editor, puts: str, text: str
) -> None:
    getattr(editor.draft, puts)(text)
    await asyncio.sleep(0)

    assert not editor.looked_up.is_set()
    assert editor.offers.items == ()

    editor.draft.buffer.delete_before_cursor()
    await asyncio.sleep(0)

    assert editor.offers.items != ()


async def test_what_is_found_twice_is_offered_once(editor: Editor) -> None:
    editor.type("@calc")
    await editor.looked_up.wait()
    await asyncio.sleep(0)

    assert editor.offers.items == (Item(value="calc.py"),)


async def test_a_search_that_is_under_way_ends_with_the_list(editor: Editor) -> None:
    editor.type("@calc")
    editor.offers.close()
    await asyncio.sleep(0)

    assert not editor.looked_up.is_set()


async def test_ctrl_c_closes_the_list_of_commands_and_enter_then_sends_nothing(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        terminal.press("/")
        await terminal.see_now("  1 of ")
        terminal.press("c-c")
        await terminal.gone("  1 of ")
        terminal.press("enter")
        await terminal.say("hello")
        await terminal.see("You said: hello")

    assert terminal.above.count("❯ ") == 1


async def test_a_command_of_the_history_is_followed_by_the_one_before_it(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard, ready=RULE) as terminal:
        await terminal.say("/todo")
        await terminal.see("the task list is empty")
        await terminal.say("/redo")
        await terminal.see("there is no session yet")
        terminal.press("up")
        await terminal.until(lambda: terminal.editor == "❯ /redo")
        terminal.press("up")
        await terminal.until(lambda: terminal.editor == "❯ /todo")


async def test_an_undone_prompt_that_ends_in_a_mention_opens_no_list(
    pegboard: CommandLine, way: Way
) -> None:
    (pegboard.project / "calc.py").write_text("x = 1\n")
    scripts(pegboard)

    async with way.opened(*await way.arguments()) as terminal:
        terminal.press("look at @calc.py ")
        await terminal.see_now("look at @calc.py")
        terminal.press("enter")
        await terminal.see("You said: look at @calc.py")
        terminal.press("/undo", "enter")
        await terminal.until(lambda: terminal.editor == "❯ look at @calc.py")
        await terminal.quiet()
        assert not any(row.startswith("❯ calc.py") for row in terminal.shown)
