"""The list of a dialog's answers: one row per answer, or in a low window all in one paragraph."""

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len

from pegboard.display import Span, plain_line
from pegboard.unstable import shown_line
from pegboard_plugins.chat.modes import SpanLine
from pegboard_plugins.shared.terminal import wrapped

BETWEEN = " · "
MOST_ROWS_EACH = 3
"""The maximum number of rows of one answer."""
MARK = "❯ "
STEPS = {"up": -1, "down": 1, "s-tab": -1, "tab": 1}
"""The number of answers by which each key moves the mark."""
KEY_NAMES = {"escape": "esc"}


class ListedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with its key; `short` is its label when all answers are in one paragraph."""

    key: str
    text: str
    short: str
    note: str = ""

    @property
    def key_name(self) -> str:
        """The name of the key as displayed."""
        return KEY_NAMES.get(self.key, self.key)


class AnswerList:
    """A list of answers with one marked answer; arrow keys move the mark, and Enter chooses it."""

    def __init__(self, answers: Sequence[ListedAnswer]) -> None:
        self.answers = tuple(answers)
        self._at = 0

    @property
    def marked(self) -> ListedAnswer:
        """The marked answer, which Enter chooses."""
        return self.answers[self._at]

    def move(self, step: int) -> None:
        """Move the mark by `step` answers, cyclically."""
        self._at = (self._at + step) % len(self.answers)

    def mark(self, key: str) -> None:
        """Mark the answer with this key."""
        self._at = next(n for n, answer in enumerate(self.answers) if answer.key == key)

    def rows(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return every answer in at most `room` rows, as a list or else as one flowing paragraph.

        If even the paragraph does not fit, only its rows around the marked answer are returned.
        """
        listed = [self._row(number, width) for number in range(len(self.answers))]
        every = [row for rows in listed for row in rows]
        if len(every) <= room:
            return every
        firsts = [rows[0] for rows in listed]
        if len(firsts) <= room:
            return firsts
        flowing = self._flowing(width)
        return flowing if len(flowing) <= room else self._around(flowing, room)

    def least(self, width: int) -> int:
        """Return the number of rows that all answers take as one paragraph, the shortest form."""
        return len(self._flowing(width))

    def _row(self, number: int, width: int) -> Sequence[SpanLine]:
        answer, is_marked = self.answers[number], number == self._at
        keys = max(len(each.key_name) for each in self.answers)
        head = (
            Span(MARK if is_marked else "  ", "active"),
            Span(f"{answer.key_name:<{keys}}  ", "bold"),
        )
        indent = len(MARK) + keys + len("  ")
        text = Span(answer.text, "bold" if is_marked else "plain")
        note = (Span(f"  {answer.note}", "dim"),) if answer.note else ()
        rows = list(wrapped(shown_line((text, *note)), max(1, width - indent), at_words=True))
        rest = [(Span(" " * indent), *row) for row in rows[1:MOST_ROWS_EACH]]
        return [(*head, *rows[0]), *rest]

    def _flowing(self, width: int) -> list[SpanLine]:
        rows: list[SpanLine] = [()]
        for number, answer in enumerate(self.answers):
            mark = (Span(MARK, "active"),) if number == self._at else ()
            piece = shown_line((*mark, Span(f"{answer.key_name} {answer.short}", "bold")))
            longer = (*rows[-1], Span(BETWEEN, "dim"), *piece) if rows[-1] else piece
            if cell_len(plain_line(longer)) > width and rows[-1]:
                rows.append(piece)
            else:
                rows[-1] = longer
        return rows

    def _around(self, rows: Sequence[SpanLine], room: int) -> Sequence[SpanLine]:
        marked = next(n for n, row in enumerate(rows) if any(each.text == MARK for each in row))
        first = max(0, min(marked, len(rows) - room))
        return rows[first : first + room]
