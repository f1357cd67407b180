"""The conversion of a unified diff to lines with numbers, signs and marked words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Literal

import msgspec

from pegboard.contract.results import Span, SpanLine, SpanStyle

COMPARED_LETTERS = 400
"""Of longer lines the changed words are not looked for: it takes quadratic time."""
ALIKE = 0.35
"""Lines with less in common than this are two lines, not one that was changed."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_FORMAT = ("--- ", "+++ ", "diff ", "index ", "Index: ", "====", "new file", "deleted file", "\\ ")
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_SIGNS: dict[str, SpanStyle] = {"+": "added", "-": "removed"}


class _Row(msgspec.Struct, frozen=True):
    """One line of a hunk: its sign, its number in the old or new file, and its text."""

    sign: str
    number: int
    text: str


def diff_rows(diff: str) -> Iterator[SpanLine]:
    """Yield the lines of a diff; file names appear only if there are several files."""
    if not diff.strip():
        return
    lines = diff.split("\n")
    several = sum(line.startswith("+++ ") for line in lines) > 1
    place, first = 0, True
    while place < len(lines):
        found = _HUNK.match(lines[place])
        if found is None:
            yield from _outside(lines[place], several=several)
            first = first or lines[place].startswith("+++ ")
            place += 1
            continue
        if not first:
            yield (Span("⋯", "hunk"),)
        first = False
        rows, place = _hunk(lines, place + 1, found)
        yield from _drawn(rows)


def _outside(line: str, *, several: bool) -> Iterator[SpanLine]:
    """Yield the styled form of a diff line outside of hunks, or nothing if it is not shown.

    Of the lines of the diff format, only the file name is shown, and only if there are several
    files.
    """
    if several and line.startswith("+++ "):
        yield (Span(line[4:].partition("\t")[0], "path"),)
    elif line and not line.startswith(_FORMAT):
        yield (Span(line),)


def _hunk(lines: Sequence[str], place: int, head: re.Match[str]) -> tuple[list[_Row], int]:
    """Return the rows of the hunk at line `place`, and the index of the line after the hunk."""
    old, new = int(head[1]), int(head[3])
    old_end = old + int(head[2] if head[2] is not None else 1)
    new_end = new + int(head[4] if head[4] is not None else 1)
    rows = []
    while place < len(lines) and (old < old_end or new < new_end):
        sign, text = lines[place][:1], lines[place][1:]
        place += 1
        if sign == "\\":
            continue
        if sign == "-":
            rows.append(_Row(sign, old, text))
        else:
            rows.append(_Row(sign or " ", new, text))
        old += sign != "+"
        new += sign != "-"
    return rows, place


def _drawn(rows: Iterable[_Row]) -> Iterator[SpanLine]:
    """Yield the rows as styled lines, with the changed words of replaced lines highlighted."""
    every = list(rows)
    width = len(str(max((row.number for row in every), default=0)))
    place = 0
    while place < len(every):
        if every[place].sign == " ":
            yield _line(every[place], width, (Span(every[place].text),))
            place += 1
            continue
        gone = _run(every, place, "-")
        come = _run(every, place + len(gone), "+")
        place += len(gone) + len(come) or 1
        yield from _changed(gone, come, width)


def _run(rows: Sequence[_Row], start: int, sign: str) -> list[_Row]:
    found = []
    for row in islice(rows, start, None):
        if row.sign != sign:
            break
        found.append(row)
    return found


def _changed(gone: Sequence[_Row], come: Sequence[_Row], width: int) -> Iterator[SpanLine]:
    pairs = [_marked(old, new) for old, new in zip_longest(gone, come)]
    for row, (old, _) in zip(gone, pairs, strict=False):
        yield _line(row, width, old)
    for row, (_, new) in zip(come, pairs, strict=False):
        yield _line(row, width, new)


def _marked(old: _Row | None, new: _Row | None) -> tuple[SpanLine, SpanLine]:
    """Return the old and the new version of a line, with the words that differ highlighted."""
    before, after = old.text if old else "", new.text if new else ""
    whole = (Span(before, "removed"),), (Span(after, "added"),)
    if old is None or new is None or max(len(before), len(after)) > COMPARED_LETTERS:
        return whole
    left, right = _WORD.findall(before), _WORD.findall(after)
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    common = [word for kind, start, end, *_ in codes if kind == "equal" for word in left[start:end]]
    if 2 * _seen(common) < ALIKE * _seen([*left, *right]):
        return whole
    return (
        tuple(_words(left, [(code[0], code[1], code[2]) for code in codes], "removed")),
        tuple(_words(right, [(code[0], code[3], code[4]) for code in codes], "added")),
    )


def _seen(words: Iterable[str]) -> int:
    """Return the number of words that are not white space."""
    return sum(not word.isspace() for word in words)


def _words(
    words: Sequence[str], codes: Iterable[tuple[str, int, int]], side: Literal["added", "removed"]
) -> Iterator[Span]:
    marked: SpanStyle = "added_word" if side == "added" else "removed_word"
    for kind, start, end in codes:
        if start < end:
            yield Span("".join(words[start:end]), side if kind == "equal" else marked)


def _line(row: _Row, width: int, text: SpanLine) -> SpanLine:
    style: SpanStyle = _SIGNS.get(row.sign, "plain")
    return Span(f"{row.number:>{width}} ", "number"), Span(f"{row.sign} ", style), *text
