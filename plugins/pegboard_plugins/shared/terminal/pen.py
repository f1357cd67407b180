"""The rendering of styled lines and Markdown as text for a terminal, in a theme's colours."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.style import Style

from pegboard.display import Span, SpanLine, escape_controls
from pegboard_plugins.shared.terminal.diffcolours import row_sign
from pegboard_plugins.shared.terminal.palette import PALETTE

Colours = Literal["none", "standard", "many", "full"]
"""None, the sixteen of the terminal's own palette, 256, or all."""
_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "many": ColorSystem.EIGHT_BIT,
    "full": ColorSystem.TRUECOLOR,
}
_GUTTER = re.compile(r" *\d+ ")
"""The line number at the beginning of a diff's line."""
_TO_THE_EDGE = "\x1b[K"
_NARROWEST = 10
_PIECE_LETTERS = 4000


class Pen:
    """A renderer of text in one theme; `palette` maps roles to styles in rich's notation."""

    def __init__(self, palette: Mapping[str, str] = PALETTE, *, colours: Colours) -> None:
        self._system = _SYSTEMS.get(colours)
        self._styles = {role: Style.parse(style) for role, style in palette.items()}

    def lines(
        self,
        lines: Iterable[SpanLine],
        width: int,
        *,
        mark: SpanLine = (),
        at_words: bool = False,
    ) -> list[str]:
        """Return the lines wrapped at `width` columns, with `mark` before each row."""
        room = max(_NARROWEST, width - sum(cell_len(span.text) for span in mark))
        rows = (row for line in lines for row in wrapped(line, room, at_words=at_words))
        return [self.text((*mark, *row)) for row in rows]

    def text(self, line: SpanLine) -> str:
        """Return one line as terminal text, without trailing blanks.

        A changed row of a diff gets the theme's background up to the right edge by an erasure (EL).
        Blanks instead would be copied with the text, and would wrap when the terminal shrinks.
        """
        place, sign = row_sign(line)
        ground = self._style(f"{sign}_row")
        if not (sign and ground.bgcolor):
            found = "".join(self._drawn(span.text, self._style(span.style)) for span in line)
            return found if line and line[-1].text.endswith("\x1b") else found.rstrip(" ")
        drawn = [self._drawn(span.text, self._style(span.style)) for span in line[:place]]
        for number, span in enumerate(line[place:]):
            is_plain = number > 1 and span.style == sign
            style = ground if is_plain else ground + self._style(span.style)
            drawn.append(self._drawn(span.text, style))
        return "".join((*drawn, self._drawn(_TO_THE_EDGE, ground)))

    @property
    def is_tinted(self) -> bool:
        """Whether changed rows of a diff have a coloured background and syntax colours."""
        return self._style("added_row").bgcolor is not None

    def markdown(self, text: str, width: int) -> list[str]:
        """Render Markdown as lines of at most `width` columns, without padding.

        Text that is nested too deeply to be rendered is returned as written.
        """
        from pegboard_plugins.shared.terminal.answermarkdown import (
            markdown_rows,  # 60 ms that an empty chat saves
        )

        rows = markdown_rows(text, max(_NARROWEST, width), self._styles if self._system else {})
        if not rows:
            written = escape_controls(text.strip("\n")).expandtabs(4).split("\n")
            return self.lines(((Span(line),) for line in written), width)
        return [self._row(row) for row in rows]

    def _row(self, spans: Iterable[tuple[str, Style]]) -> str:
        return "".join(self._drawn(text, style) for text, style in spans)

    def _drawn(self, text: str, style: Style) -> str:
        return style.render(text, color_system=self._system) if self._system else text

    def _style(self, role: str) -> Style:
        return self._styles.get(role, Style.null())


def wrapped(line: SpanLine, width: int, *, at_words: bool = False) -> Iterator[SpanLine]:
    """Wrap a line in rows of at most `width` cells; later rows of a diff's line are indented.

    The indent is as wide as the line number and the sign. No character is lost, except the blank
    where a row ends with `at_words`. A line of a diff is also wrapped at words if possible.
    """
    row: list[Span] = []
    room = width
    indent = _gutter(line, width)
    for span in _short(line):
        rest: str = span.text
        while rest:
            fitting = _fitting(rest, room)
            if fitting < len(rest) and rest[fitting] != " ":
                if at_words and row:
                    fitting = rest.rfind(" ", 0, fitting) + 1
                elif at_words or indent:
                    fitting = _after_a_word(rest, fitting)
            if fitting:
                row.append(Span(rest[:fitting], span.style))
                room -= cell_len(rest[:fitting])
                rest = rest[fitting:]
            if rest:
                yield tuple(row)
                row, room = [*indent], width - sum(len(each.text) for each in indent)
                rest = rest.removeprefix(" ") if at_words else rest
    yield tuple(row)


def _after_a_word(text: str, fitting: int) -> int:
    """Return where to break a text: after the last blank in its first `fitting` letters, if any."""
    end = text.rfind(" ", 0, fitting) + 1
    return end if text[:end].strip() else fitting


def _short(line: SpanLine) -> Iterator[Span]:
    """Split long spans, so that wrapping a row copies only a small part of the text."""
    for span in line:
        for start in range(0, len(span.text), _PIECE_LETTERS):
            yield Span(span.text[start : start + _PIECE_LETTERS], span.style)


def _gutter(line: SpanLine, width: int) -> SpanLine:
    """Return blanks as wide as a diff line's number and sign; () if `width` is too small."""
    if len(line) < 3 or not _GUTTER.fullmatch(line[0].text):  # noqa: PLR2004 - and a text
        return ()
    blank = tuple(Span(" " * len(each.text), each.style) for each in line[:2])
    return blank if sum(len(each.text) for each in blank) < width // 2 else ()


def _fitting(text: str, room: int) -> int:
    """Return the number of characters that fit into `room` cells; may be 0."""
    if text.isascii():
        return min(len(text), room)
    cells = 0
    for count, letter in enumerate(text):
        cells += get_character_cell_size(letter)
        if cells > room:
            return count
    return len(text)


def colours_of(env: Mapping[str, Any]) -> Colours:
    """Return the colours that the environment permits; a non-empty `NO_COLOR` permits none."""
    if env.get("NO_COLOR"):
        return "none"
    if env.get("COLORTERM") in ("truecolor", "24bit"):
        return "full"
    return "many" if "256color" in env.get("TERM", "") else "standard"
