"""Lines and Markdown as text for a terminal, in the colours of a theme."""

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, HorizontalRule, Markdown
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme as RichTheme

from pegboard.cli.palette import PALETTE
from pegboard.cli.visibletext import visible
from pegboard.contract.blocks import Span, SpanLine

Colours = Literal["none", "standard", "full"]
"""None, the sixteen of the terminal's own palette, or all."""
_SYSTEMS = {"standard": ColorSystem.STANDARD, "full": ColorSystem.TRUECOLOR}
_NARROWEST = 10


class _LeftHeading(Heading):
    """A heading without a frame: a frame that is as wide as the terminal breaks when it shrinks."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _ShortRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * 8, style="markdown.hr")


class _Answer(Markdown):
    elements = {**Markdown.elements, "heading_open": _LeftHeading, "hr": _ShortRule}  # noqa: RUF012 - rich's own


class Pen:
    """Draws in one theme: `palette` maps roles to styles as rich spells them."""

    def __init__(self, palette: Mapping[str, str] = PALETTE, *, colours: Colours) -> None:
        self._system = _SYSTEMS.get(colours)
        self._styles = {role: Style.parse(style) for role, style in palette.items()}
        self._colours = colours
        self._markdown_styles = RichTheme(
            {
                "markdown.code": self._style("code"),
                "markdown.h1": self._style("heading"),
                "markdown.h2": self._style("heading"),
                "markdown.h3": self._style("heading"),
                "markdown.hr": self._style("rule"),
                "markdown.link": self._style("link"),
                "markdown.link_url": self._style("link"),
                "markdown.block_quote": self._style("quote"),
            }
        )

    def lines(self, lines: Iterable[SpanLine], width: int, *, mark: SpanLine = ()) -> list[str]:
        """The lines, each behind `mark`, wrapped at `width` columns."""
        room = max(_NARROWEST, width - sum(cell_len(span.text) for span in mark))
        return [self.text((*mark, *row)) for line in lines for row in wrapped(line, room)]

    def text(self, line: SpanLine) -> str:
        """One line, as it is, without blanks at its end."""
        found = "".join(self._drawn(span.text, self._style(span.style)) for span in line)
        return found if line and line[-1].text.endswith("\x1b") else found.rstrip(" ")

    def markdown(self, text: str, width: int) -> list[str]:
        """Markdown as lines of at most `width` columns, with nothing filled up to it."""
        console = Console(
            file=io.StringIO(),
            width=max(_NARROWEST, width),
            color_system="standard" if self._system else None,
            force_terminal=self._system is not None,
            theme=self._markdown_styles,
            legacy_windows=False,
        )
        answer = _Answer(visible(text), code_theme="ansi_dark", hyperlinks=False)
        rows = [self._row(row) for row in console.render_lines(answer, pad=False)]
        return _without_empty_ends(rows)

    def _row(self, segments: Iterable[Segment]) -> str:
        spans = [segment for segment in segments if segment.text and not segment.control]
        while spans and not spans[-1].text.strip():
            spans.pop()
        if spans:
            spans[-1] = Segment(spans[-1].text.rstrip(), spans[-1].style)
        return "".join(self._drawn(each.text, each.style or Style.null()) for each in spans)

    def _drawn(self, text: str, style: Style) -> str:
        return style.render(text, color_system=self._system) if self._system else text

    def _style(self, role: str) -> Style:
        return self._styles.get(role, Style.null())


def wrapped(line: SpanLine, width: int) -> Iterator[SpanLine]:
    """The line in rows of at most `width` cells; nothing is left out."""
    row: list[Span] = []
    room = width
    for span in line:
        rest: str = span.text
        while rest:
            fitting = _fitting(rest, room)
            if fitting:
                row.append(Span(rest[:fitting], span.style))
                room -= cell_len(rest[:fitting])
                rest = rest[fitting:]
            if rest:
                yield tuple(row)
                row, room = [], width
    yield tuple(row)


def _fitting(text: str, room: int) -> int:
    """How many letters fit into so many cells, at least one in an empty row."""
    if text.isascii():
        return min(len(text), room)
    cells = 0
    for count, letter in enumerate(text):
        cells += get_character_cell_size(letter)
        if cells > room:
            return count
    return len(text)


def _without_empty_ends(rows: list[str]) -> list[str]:
    while rows and not rows[-1]:
        rows.pop()
    while rows and not rows[0]:
        rows.pop(0)
    return rows


def colours_of(env: Mapping[str, Any]) -> Colours:
    """The colours that are welcome: `NO_COLOR`, when not empty, says none."""
    if env.get("NO_COLOR"):
        return "none"
    return "full" if env.get("COLORTERM") in ("truecolor", "24bit") else "standard"
