"""The completions of the editor: slash commands after `/`, files and more after `@`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pegboard.display import Span
from pegboard_plugins.chat.draft import COMMAND, Draft, word_before
from pegboard_plugins.chat.modes import Item

SIGNS = ("@",)
LABEL_LETTERS = 20
"""The width of the column of names."""


class Offers:
    """The completions for the word before the cursor, displayed below the editor."""

    def __init__(
        self,
        draft: Draft,
        commands: Callable[[], Sequence[Item]],
        look_up: Callable[[str, str], Awaitable[Sequence[Item]]],
        touch: Callable[[], None],
    ) -> None:
        self._draft = draft
        self._commands = commands
        self._look_up = look_up
        self._touch = touch
        self._looking: asyncio.Task[None] | None = None
        self._closed_at: str | None = None
        self.items: Sequence[Item] = ()
        self.chosen = 0

    @property
    def spans(self) -> Sequence[Span]:
        """The completions as displayed, in columns."""
        wide = max((len(each.label) for each in self.items), default=0)
        return [
            Span(f"{each.label:<{min(wide, LABEL_LETTERS)}}  {each.note}".rstrip())
            for each in self.items
        ]

    @property
    def is_command(self) -> bool:
        """Whether the completions are commands."""
        return self._draft.text.startswith(COMMAND)

    @property
    def may_come(self) -> bool:
        """Whether completions may exist for the word at the cursor."""
        text = self._draft.text
        return self._names_command(text) if self.is_command else self._word() is not None

    @staticmethod
    def _names_command(text: str) -> bool:
        return " " not in text and "\n" not in text

    def _word(self) -> tuple[str, str] | None:
        return word_before(self._draft.buffer.document.text_before_cursor, SIGNS)

    def changed(self, text: str) -> None:
        """Update the completions after a change of the editor's text."""
        self._forget()
        if text == self._closed_at:
            return
        self._closed_at = None
        if text.startswith(COMMAND):
            self.items = self._fitting(text[1:]) if self._names_command(text) else ()
            return
        word = self._word()
        if word is not None:
            self._looking = asyncio.ensure_future(self._look(*word))

    def _fitting(self, name: str) -> Sequence[Item]:
        first = [each for each in self._commands() if each.value.startswith(name)]
        others = [each for each in self._commands() if name in each.value[1:]]
        return [*first, *(each for each in others if each not in first)]

    async def _look(self, sign: str, letters: str) -> None:
        once: dict[str, Item] = {}
        for each in await self._look_up(sign, letters):  # a server and a plugin may find the same
            once.setdefault(each.value, each)
        self.items = tuple(once.values())
        self._touch()

    def move(self, step: int) -> None:
        """Move the selection by `step` completions, cyclically."""
        self.chosen = (self.chosen + step) % max(1, len(self.items))

    def accept(self) -> None:
        """Insert the selected completion into the editor."""
        item, buffer = self.items[self.chosen], self._draft.buffer
        if self.is_command:
            self._draft.set(f"/{item.value} ")
        else:
            word = self._word()
            buffer.delete_before_cursor(len(word[1]) if word else 0)
            buffer.insert_text(f"{item.value} ")
        self.close()

    def take_blank(self) -> bool:
        """Return whether a typed blank repeats the blank that `accept` has inserted."""
        text = self._draft.text
        is_double = text == self._closed_at and text.endswith(" ")
        self._closed_at = "" if is_double else self._closed_at
        return is_double

    def close(self) -> None:
        """Hide the completions until the user changes the text."""
        self._forget()
        self._closed_at = self._draft.text

    def _forget(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self.items, self.chosen = (), 0
