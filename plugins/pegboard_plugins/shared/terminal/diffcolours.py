"""The colours of a rendered diff: added and removed rows, and the tokens of their code."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal

from pegboard.display import Span, SpanLine

HIGHLIGHTED_ROWS = 400
"""The maximum number of rows with coloured tokens, which take 0.25 ms each."""


def row_sign(line: SpanLine) -> tuple[int, Literal["", "added", "removed"]]:
    """Return where a changed diff row has its line number, and whether it was added or removed.

    The result is (0, "") for a row that is not changed.
    """
    for place, (number, sign) in enumerate(pairwise(line)):
        if number.style == "number" and sign.style in ("added", "removed"):
            return place, sign.style
    return 0, ""


def coloured_diff(lines: Iterable[SpanLine], diff: str) -> Iterator[SpanLine]:
    """Yield the lines of a rendered diff, with syntax colours for the code.

    A line with a file's name determines the language of the rows below it. The first name is taken
    from `diff`, the unified diff.
    """
    heads = (each[4:].partition("\t")[0] for each in diff.split("\n") if each.startswith("+++ "))
    file, left = next(heads, ""), HIGHLIGHTED_ROWS
    for is_code, group in groupby(lines, lambda line: line[:1] and line[0].style == "number"):
        rows = list(group)
        if not is_code:
            file = next((row[0].text for row in rows if row and row[0].style == "path"), file)
        left -= len(rows) if is_code else 0
        yield from _coloured(rows, file) if is_code and left >= 0 else rows


def _coloured(rows: Sequence[SpanLine], file: str) -> Iterator[SpanLine]:
    """Yield a hunk's rows with syntax colours, which removed rows get from the old code."""
    from pegboard_plugins.shared.terminal.codetokens import coloured_code  # few rows have tokens

    signs = [row_sign(row)[1] for row in rows]
    texts = ["".join(span.text for span in row[2:]) for row in rows]
    every = list(zip(signs, texts, strict=True))
    old = coloured_code([text for sign, text in every if sign != "added"], file)
    new = coloured_code([text for sign, text in every if sign != "removed"], file)
    for sign, row in zip(signs, rows, strict=True):
        tokens = next(old) if sign == "removed" else next(new)
        if not sign:
            next(old)
        yield (*row[:2], *_overlaid(row[2:], tokens))


def _overlaid(marked: SpanLine, tokens: SpanLine) -> Iterator[Span]:
    """Return the line with the colours of `tokens`, except for words that are marked as changed."""
    marks, roles = list(reversed(marked)), list(reversed(tokens))
    while marks and roles:
        mark, role = marks.pop(), roles.pop()
        size = min(len(mark.text), len(role.text))
        is_word = mark.style in ("added_word", "removed_word")
        yield Span(mark.text[:size], mark.style if is_word or role.style == "plain" else role.style)
        if len(mark.text) > size:
            marks.append(Span(mark.text[size:], mark.style))
        if len(role.text) > size:
            roles.append(Span(role.text[size:], role.style))
