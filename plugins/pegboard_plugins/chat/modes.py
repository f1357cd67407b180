"""The dialogs of the footer: lists to choose from, and short texts to type."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
from rich.cells import cell_len

from pegboard.display import Span
from pegboard.unstable import shown_line

SpanLine = tuple[Span, ...]
SAVE = "escape enter"
"""The key that chooses an item of a list and saves the choice."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a list: `value` is returned when the user chooses it.

    `text` is displayed instead of `value` if it is not empty, and `note` is dimmed text after it.
    """

    value: str
    text: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """The text of the item."""
        return self.text or self.value


class Mode(Protocol):
    """A dialog or list that gets the keys while open; if `edits` is true, the user types a text."""

    @property
    def edits(self) -> bool:
        """Whether typed letters go to the editor."""
        ...

    @property
    def is_unasked(self) -> bool:
        """Whether the dialog opened without a key press, while the user may be typing a prompt."""
        ...

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return at most `room` lines that show the dialog or list."""
        ...

    def press(self, key: str) -> bool:
        """Handle a key, by prompt_toolkit's name; return False if the key is not used."""
        ...

    def submit(self, text: str) -> None:
        """Handle the editor's text when Enter is pressed."""
        ...

    def changed(self, text: str) -> None:
        """Handle a change of the editor's text."""
        ...

    def close(self) -> None:
        """Close without an answer."""
        ...


class Choice:
    """A list to choose from, which typed words filter.

    `save_key` is the name of the key that also saves the choice; `is_saved` is then True.
    """

    edits = True
    is_unasked = False

    def __init__(
        self, title: str, items: Sequence[Item], *, current: str = "", save_key: str = ""
    ) -> None:
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._title = title
        self._every = tuple(items)
        self._shown = self._every
        self._current = current
        self._save_key = save_key
        self.is_saved = False
        places = [n for n, item in enumerate(self._every) if item.value == current]
        self._at = places[0] if places else 0

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return the title, and the rows around the selected item."""
        rows = max(1, room - 1)
        first = max(0, min(self._at - rows // 2, len(self._shown) - rows))
        found = [self._line(n) for n in range(first, min(first + rows, len(self._shown)))]
        helps = self._helps()
        fitting = (text for text in helps if cell_len(f"{self._title}  {text}") <= width)
        head = (Span(f"{self._title}  ", "bold"), Span(next(fitting, helps[-1]), "dim"))
        return [shown_line(head), *(found or [(Span("  no match", "dim"),)])]

    def _helps(self) -> Sequence[str]:
        """Return help texts about the keys, the longest first."""
        count = f"{len(self._shown)} of {len(self._every)}"
        key = self._save_key
        saves = f" · {key} also saves it" if key else ""
        return (
            f"{count} · type to filter · Enter chooses{saves} · Esc cancels",
            f"{count} · type to filter · Enter{saves} · Esc",
            f"{count} · {key} saves it" if key else f"{count} · Enter · Esc",
        )

    def _line(self, number: int) -> SpanLine:
        item, chosen = self._shown[number], number == self._at
        mark = Span("❯ " if chosen else "  ", "active")
        note = (Span(f"  {item.note}", "dim"),) if item.note else ()
        if self._current and item.value == self._current:
            note = (Span(" ✓", "done"), *note)
        return shown_line((mark, Span(item.label, "bold" if chosen else "plain"), *note))

    def press(self, key: str) -> bool:
        """Move the selection, choose the item for this and later chats, or close the list."""
        steps = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8, "tab": 1, "s-tab": -1}
        if key in steps:
            last = max(0, len(self._shown) - 1)
            self._at = min(max(0, self._at + steps[key]), last)
            return True
        if key == SAVE and self._save_key:
            self.is_saved = True
            self.submit("")
            return True
        if key == "escape":
            self.close()
            return True
        return False

    def submit(self, text: str) -> None:  # noqa: ARG002 - the protocol's
        """Choose the selected item."""
        if self._shown and not self.answer.done():
            self.answer.set_result(self._shown[self._at].value)

    def changed(self, text: str) -> None:
        """Filter the list by the words of the text."""
        words = text.lower().split()
        self._shown = tuple(
            item
            for item in self._every
            if all(word in f"{item.label} {item.note}".lower() for word in words)
        )
        self._at = 0

    def close(self) -> None:
        """Close the list without a choice."""
        if not self.answer.done():
            self.answer.set_result(None)


class Menu(Choice):
    """A short list in which the first letter of an item's value chooses the item at once."""

    edits = False
    is_unasked = True
    waits = False
    """Whether keys still go to the editor: the keys of the list are named once they count."""

    def _helps(self) -> Sequence[str]:
        if self.waits:
            return ("",)
        return "↑↓ · a letter or Enter · Esc skips", "letter · Enter · Esc"

    def _line(self, number: int) -> SpanLine:
        mark, *rest = super()._line(number)
        letter = self._every[number].value[0]
        return (mark, Span(f"{letter}  ", "active"), *rest)

    def press(self, key: str) -> bool:
        """Choose the item with this letter, or the selected item with Enter."""
        found = [item.value for item in self._every if item.value.startswith(key)]
        if key == "enter":
            self.submit("")
        elif len(key) == 1 and found and not self.answer.done():
            self.answer.set_result(found[0])
        else:
            return super().press(key)
        return True


class TextLine:
    """A dialog that asks for a short text."""

    edits = True
    is_unasked = False

    def __init__(self, title: str) -> None:
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._title = title

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:  # noqa: ARG002 - the protocol's
        """Return the line with the title."""
        return [shown_line((Span(self._title, "bold"), Span("  Enter sends · Esc cancels", "dim")))]

    def press(self, key: str) -> bool:
        """Close the dialog on Escape."""
        if key == "escape":
            self.close()
            return True
        return False

    def submit(self, text: str) -> None:
        """Close the dialog with the text as the user's answer."""
        if not self.answer.done():
            self.answer.set_result(text)

    def changed(self, text: str) -> None:
        """Do nothing, because only a submitted text counts."""

    def close(self) -> None:
        """Close the dialog without an answer."""
        if not self.answer.done():
            self.answer.set_result(None)
