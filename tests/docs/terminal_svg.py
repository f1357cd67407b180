"""A terminal's screen as an SVG file: rows of text in colours, without scripts, fonts or times."""

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import NamedTuple

import pyte
from pyte.screens import Char
from wcwidth import wcwidth

CELL, ROW, SIZE, MARGIN = 8.4, 18, 14, 10
_SECONDS = re.compile(r"\b\d+\.\d+(?= ?s\b)|(?<=· )\d+(?= s ·)")
_BLANK = "\N{NO-BREAK SPACE}"
"""Programs that draw SVG join blanks to one."""
_LONG_COLOUR = (38, 48)
"""What begins a colour of several numbers (ISO 8613-6), of which none is an attribute."""
_FAINT, _NOT_BOLD, _BLINK, _NO_BLINK = 2, 22, 5, 25


class Look(NamedTuple):
    """The terminal's own colours."""

    text: str
    ground: str
    named: str

    def colour(self, name: str, default: str) -> str:
        """A colour as pyte names it; `brown` is its yellow."""
        if name == "default":
            return default
        names = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
        plain = name.removeprefix("bright")
        return f"#{self.named.split()[names.index(plain)]}" if plain in names else f"#{name}"


DARK = Look("#c9d1d9", "#0d1117", "6e7681 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf e6edf3")
LIGHT = Look("#24292f", "#ffffff", "57606a a40e26 116329 7d4e00 0550ae 6639ba 1b7c83 24292f")


class Screen(pyte.HistoryScreen):
    """A screen that keeps what is faint, for which pyte has no place, as what blinks."""

    def select_graphic_rendition(self, *attrs: int, **_: object) -> None:
        """Set attributes."""
        super().select_graphic_rendition(*_faint_as_blink(list(attrs)))


def _faint_as_blink(attrs: list[int]) -> Iterator[int]:
    while attrs:
        attr = attrs.pop(0)
        if attr in _LONG_COLOUR:
            length = 4 if attrs[:1] == [2] else 2
            yield from (attr, *attrs[:length])
            del attrs[:length]
        elif attr == _NOT_BOLD:
            yield from (attr, _NO_BLINK)
        else:
            yield _BLINK if attr == _FAINT else attr


def svg(screen: Screen, look: Look, title: str) -> str:
    """The screen down to its last row with text; seconds are those of no clock."""
    used = [number for number, row in enumerate(screen.display) if row.strip()]
    rows = max([*used, screen.cursor.y]) + 1
    width = round(screen.columns * CELL + 2 * MARGIN)
    height = rows * ROW + 2 * MARGIN
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" '
            f'font-size="{SIZE}" fill="{look.text}">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="{look.ground}"/>',
    ]
    for number in range(rows):
        lines += _row(screen, number, look)
    return "\n".join([*lines, "</svg>", ""])


def rows_of(picture: str) -> list[str]:
    """The rows of text in an SVG file, each in its pieces."""
    found: dict[str, list[str]] = {}
    for place, text in re.findall(r'<text x="[\d.]+" y="(\d+)"[^>]*>([^<]*)</text>', picture):
        found.setdefault(place, []).append(text)
    return [" ".join(pieces).replace(_BLANK, " ") for pieces in found.values()]


def _row(screen: Screen, number: int, look: Look) -> Iterator[str]:
    """The grounds and the texts of a row, one for each run of cells that look alike."""
    cells = [screen.buffer[number][column] for column in range(screen.columns)]
    if number == screen.cursor.y and not screen.cursor.hidden and screen.cursor.x < len(cells):
        cells[screen.cursor.x] = cells[screen.cursor.x]._replace(reverse=True)
    text = "".join(cell.data[:1] or "\0" for cell in cells)
    for found in reversed([*_SECONDS.finditer(text)]):
        for column in range(*found.span()):
            if cells[column].data.isdigit():
                cells[column] = cells[column]._replace(data="0")
        more = len(found[0].partition(".")[0]) - 1  # a slow machine needs more digits
        del cells[found.start() : found.start() + more]
        cells += [screen.default_char] * more
    column = 0
    for (style, _), run in groupby(cells, key=lambda cell: (_style(cell, look), _wide(cell))):
        cut = list(run)
        yield from _run(style, "".join(cell.data for cell in cut), (column, number), len(cut))
        column += len(cut)


def _wide(cell: Char) -> bool:
    return not cell.data or wcwidth(cell.data[0]) > 1


class _Style(NamedTuple):
    fill: str
    ground: str
    rest: str


def _style(cell: Char, look: Look) -> _Style:
    fill, ground = look.colour(cell.fg, look.text), look.colour(cell.bg, look.ground)
    if cell.reverse:
        fill, ground = ground, fill
    said = (
        (cell.bold, ' font-weight="bold"'),
        (cell.italics, ' font-style="italic"'),
        (cell.underscore, ' text-decoration="underline"'),
        (cell.strikethrough, ' text-decoration="line-through"'),
        (cell.blink, ' opacity=".65"'),
        (fill != look.text, f' fill="{fill}"'),
    )
    rest = "".join(text for holds, text in said if holds)
    return _Style(fill, "" if ground == look.ground else ground, rest)


def _run(style: _Style, text: str, place: tuple[int, int], cells: int) -> Iterator[str]:
    left, top = MARGIN + place[0] * CELL, MARGIN + place[1] * ROW
    if style.ground:
        yield (
            f'<rect x="{left:.1f}" y="{top}" width="{cells * CELL:.1f}" height="{ROW}" '
            f'fill="{style.ground}"/>'
        )
    shown = text.strip(" ")
    if shown:
        begin = left + (len(text) - len(text.lstrip(" "))) * CELL
        length = (cells - (len(text) - len(shown))) * CELL
        yield (
            f'<text x="{begin:.1f}" y="{top + SIZE}" textLength="{length:.1f}"{style.rest}>'
            f"{escape(shown, quote=False).replace(' ', _BLANK)}</text>"
        )
