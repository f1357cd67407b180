"""The conversion of a block to lines of styled text for a terminal, a page or a file."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from pegboard.contract.results import Block, Span, SpanLine
from pegboard.display.defaultblocks import lines_of, one_line
from pegboard.display.difflines import diff_rows
from pegboard.display.visibletext import escape_controls

LINE_LETTERS = 2000
"""What is shown of a line: programs write lines of megabytes."""
BETWEEN_COLUMNS = "  "
_CELL_LETTERS = 60
_BEFORE = {"head": 1, "tail": 0, "both": 0.4}
"""The share of the displayed lines that come before the omitted ones."""

Folding = Literal["folded", "whole"]


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a block that stay visible when the block is folded.

    `hidden` is the number of omitted lines. They follow the first `before` visible lines.
    """

    lines: tuple[SpanLine, ...]
    hidden: int = 0
    before: int = 0


def block_lines(block: Block, folding: Folding = "folded") -> Folded:
    """Return the lines of a block without its title, with control characters escaped."""
    every = [*block.lines, *diff_rows(block.diff), *_rows(block.table)]
    every += lines_of(block.markdown) if block.markdown else ()
    hidden = max(0, len(every) - block.fold) if folding == "folded" else 0
    hidden = 0 if hidden == 1 and block.fold else hidden  # the note takes a row, too
    before = int(block.fold * _BEFORE[block.keep])
    kept = [*every[:before], *every[before + hidden :]]
    longest = LINE_LETTERS if folding == "folded" else None
    lines = tuple(shown_line(line, longest) for line in kept)
    return Folded(lines=lines, hidden=hidden, before=before)


def note_of(hidden: int, way: str = "") -> SpanLine:
    """Return a line with the number of hidden lines; `way` tells the user how to show these."""
    more = "line" if hidden == 1 else "lines"
    return (Span(f"… {hidden:,} more {more}{f' ({way})' if way else ''}", "dim"),)


def with_note(folded: Folded, way: str = "") -> tuple[SpanLine, ...]:
    """Return the visible lines with a note for the hidden lines; `way` tells how to show these."""
    if not folded.hidden:
        return folded.lines
    note = note_of(folded.hidden, way)
    return (*folded.lines[: folded.before], note, *folded.lines[folded.before :])


def shown_line(line: SpanLine, longest: int | None = LINE_LETTERS) -> SpanLine:
    """Escape control characters in a line, and cut a long line."""
    return tuple(_cut_spans(line, longest))


def plain_line(line: SpanLine) -> str:
    """Return the text of a styled line without its styles."""
    return "".join(span.text for span in line)


def _cut_spans(line: SpanLine, longest: int | None) -> Iterator[Span]:
    room = sum(len(span.text) for span in line) if longest is None else longest
    for span in line:
        text = escape_controls(span.text[: room + 1].replace("\n", "⏎").expandtabs(4))
        if len(span.text) > room:
            yield Span(text[:room] + "…", span.style)
            return
        room -= len(span.text)
        yield Span(text, span.style)


def _rows(table: Sequence[Sequence[str]]) -> Iterator[SpanLine]:
    """Yield the rows of a table as aligned columns; only the last column may be long."""
    if not table:
        return
    from rich.cells import cell_len  # few blocks have a table

    cells = [
        [*(_cell(cell, _CELL_LETTERS) for cell in row[:-1]), _cell(row[-1], LINE_LETTERS)]
        for row in table
        if row
    ]
    wide = max(map(len, cells), default=0)
    widths = [max(cell_len(row[n]) for row in cells if n < len(row)) for n in range(wide)]
    for number, row in enumerate(cells):
        padded = (cell + " " * (widths[n] - cell_len(cell)) for n, cell in enumerate(row))
        text = BETWEEN_COLUMNS.join(padded).rstrip()
        yield (Span(text, "plain" if number else "bold"),)


def _cell(text: str, longest: int) -> str:
    return escape_controls(one_line(" ".join(text[: LINE_LETTERS + 1].split()), longest))
