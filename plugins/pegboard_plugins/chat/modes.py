"""The footer while the user chooses something: lists and short texts."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
from rich.cells import cell_len

from pegboard.display import Span
from pegboard.unstable import shown_line

SpanLine = tuple[Span, ...]
SAVE = "escape enter"
"""The key of a list that chooses for good."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One choice: `value` is its result, `note` is dim text after it."""

    value: str
    text: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """The label."""
        return self.text or self.value


class Mode(Protocol):
    """A dialog or list that gets the keys while it is open; with `edits` the editor is its own."""

    @property
    def edits(self) -> bool:
        """Whether letters go to the editor."""
        ...

    @property
    def is_unasked(self) -> bool:
        """Whether it opens by itself, so that keys may still be meant for the editor."""
        ...

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Draw the mode in at most `room` lines."""
        ...

    def press(self, key: str) -> bool:
        """Handle a key by prompt_toolkit's name; return False to leave it to the chat."""
        ...

    def submit(self, text: str) -> None:
        """Take the editor's content, when Enter is pressed."""
        ...

    def changed(self, text: str) -> None:
        """Take the editor's new text."""
        ...

    def close(self) -> None:
        """Close without an answer."""
        ...


class Choice:
    """A list to choose from; typed words narrow it.

    `save_key` is the name of the key that chooses for good, which `is_saved` then says.
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
        """Draw the title, and the rows around the chosen one."""
        rows = max(1, room - 1)
        first = max(0, min(self._at - rows // 2, len(self._shown) - rows))
        found = [self._line(n) for n in range(first, min(first + rows, len(self._shown)))]
        helps = [text for text in self._helps() if cell_len(f"{self._title}  {text}") <= width]
        head = (Span(f"{self._title}  ", "bold"), Span((helps or self._helps())[0], "dim"))
        return [shown_line(head), *(found or [(Span("  no match", "dim"),)])]

    def _helps(self) -> Sequence[str]:
        """Return help texts for the keys, the longest first."""
        count = f"{len(self._shown)} of {len(self._every)}"
        keys = "Enter chooses · Esc cancels"
        saves = (f"Enter chooses · {self._save_key} also saves it · Esc cancels", keys)
        every = [*(saves if self._save_key else ()), keys]
        return *(f"{count} · type to filter · {each}" for each in every), f"{count} · Enter · Esc"

    def _line(self, number: int) -> SpanLine:
        item, chosen = self._shown[number], number == self._at
        mark = Span("❯ " if chosen else "  ", "active")
        note = (Span(f"  {item.note}", "dim"),) if item.note else ()
        if self._current and item.value == self._current:
            note = (Span(" ✓", "done"), *note)
        return shown_line((mark, Span(item.label, "bold" if chosen else "plain"), *note))

    def press(self, key: str) -> bool:
        """Move, or leave."""
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
        """Choose."""
        if self._shown and not self.answer.done():
            self.answer.set_result(self._shown[self._at].value)

    def changed(self, text: str) -> None:
        """Narrow the list to the items that contain all words of the text."""
        words = text.lower().split()
        self._shown = tuple(
            item
            for item in self._every
            if all(word in f"{item.label} {item.note}".lower() for word in words)
        )
        self._at = 0

    def close(self) -> None:
        """Close it without a choice."""
        if not self.answer.done():
            self.answer.set_result(None)


class Menu(Choice):
    """A short list; pressing the first letter of an item's value chooses it at once."""

    edits = False
    is_unasked = True

    def _helps(self) -> Sequence[str]:
        return "↑↓ · a letter or Enter · Esc skips", "letter · Enter · Esc"

    def _line(self, number: int) -> SpanLine:
        mark, *rest = super()._line(number)
        letter = self._every[number].value[0]
        return (mark, Span(f"{letter}  ", "active"), *rest)

    def press(self, key: str) -> bool:
        """Choose the item with this letter."""
        found = [item.value for item in self._every if item.value.startswith(key)]
        if key == "enter":
            self.submit("")
        elif len(key) == 1 and found and not self.answer.done():
            self.answer.set_result(found[0])
        else:
            return super().press(key)
        return True


class TextLine:
    """A short text to write."""

    edits = True
    is_unasked = False

    def __init__(self, title: str) -> None:
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._title = title

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:  # noqa: ARG002 - the protocol's
        """Draw the title."""
        return [shown_line((Span(self._title, "bold"), Span("  Enter sends · Esc cancels", "dim")))]

    def press(self, key: str) -> bool:
        """Leave."""
        if key == "escape":
            self.close()
            return True
        return False

    def submit(self, text: str) -> None:
        """Take the text."""
        if not self.answer.done():
            self.answer.set_result(text)

    def changed(self, text: str) -> None:
        """Do nothing: the text counts when it is sent."""

    def close(self) -> None:
        """Close it without an answer."""
        if not self.answer.done():
            self.answer.set_result(None)
