"""The rendering of Markdown as rows of styled text, by rich."""

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from pegboard.display import escape_controls
from pegboard_plugins.shared.terminal.codetokens import CODE_ROLES

DEEPEST = 16
"""The maximum nesting of Markdown; the parser drops content from the twentieth level on."""
Row = list[tuple[str, Style]]
_ROLES = {
    **dict.fromkeys(("code", "code_block"), "code"),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "h7"), "heading"),
    **dict.fromkeys(("link", "link_url"), "link"),
    **dict.fromkeys(("list", "item.bullet", "item.number"), "accent"),
    **dict.fromkeys(("hr", "table.border"), "rule"),
    "table.header": "bold",
    "block_quote": "quote",
}
"""The roles of rich's Markdown styles that have a colour."""
_CODE_ROLES = {
    **CODE_ROLES,
    ("Generic", "Inserted"): "added",
    ("Generic", "Deleted"): "removed",
    ("Generic", "Heading"): "heading",
    ("Generic", "Subheading"): "hunk",
}


class _LeftHeading(Heading):
    """A heading without a frame, since a frame breaks when the terminal shrinks."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _ShortRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * 8, style="markdown.hr")


class _WholeTable(TableElement):
    """A table that wraps long words, so that no text is lost."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
            yield table


class _BareCode(CodeBlock):
    """A code block that starts in the first column, so that the user can copy the code."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True)


class _Answer(Markdown):
    """Markdown that renders HTML as plain text, so that all of a model's answer is visible."""

    elements = {  # noqa: RUF012 - rich's own
        **Markdown.elements,
        "fence": _BareCode,
        "code_block": _BareCode,
        "heading_open": _LeftHeading,
        "hr": _ShortRule,
        "table_open": _WholeTable,
    }

    def __init__(self, text: str, roles: Mapping[str, Style]) -> None:
        super().__init__("", hyperlinks=False)
        found = {kind: roles.get(role, Style.null()) for kind, role in _CODE_ROLES.items()}
        self.code_theme = ANSISyntaxTheme(found)  # type: ignore[assignment] # `Syntax` takes both
        self.parsed = _parser().parse(text)
        for token in self.parsed:
            if token.children:
                token.children = _without_repeated_addresses(_with_links(token.children))


def _with_links(tokens: Sequence[Token]) -> list[Token]:
    """Replace each image in a line's tokens by a link with the image's text."""
    found: list[Token] = []
    for token in tokens:
        if token.type != "image":
            found.append(token)
            continue
        address = str(token.attrs.get("src", ""))
        opening, closing = Token("link_open", "a", 1), Token("link_close", "a", -1)
        opening.attrs["href"] = address
        words = Token("text", "", 0, content=token.content or address)
        found += [opening, words, closing]
    return found


def _without_repeated_addresses(tokens: Sequence[Token]) -> list[Token]:
    """Replace each link whose text is its address by this text alone."""
    kept = list(tokens)
    for place in range(len(kept) - 2):
        opening, text, closing = kept[place : place + 3]
        is_link = (opening.type, closing.type) == ("link_open", "link_close")
        if is_link and opening.attrs.get("href") in (text.content, f"mailto:{text.content}"):
            opening.type = closing.type = "dropped"
    return [token for token in kept if token.type != "dropped"]


@cache
def _parser() -> MarkdownIt:
    """Return the parser, which is created once because that takes as long as a paragraph."""
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def markdown_rows(text: str, width: int, roles: Mapping[str, Style]) -> list[Row]:
    """Render Markdown as rows of at most `width` columns, without trailing blanks.

    `roles` are the styles of a theme; without them, the rows have no colours. The result is empty
    if the text is nested too deeply to be rendered.
    """
    answer = _Answer(escape_controls(text), roles)
    if max((token.level for token in answer.parsed), default=0) >= DEEPEST:
        return []
    styles = {f"markdown.{name}": roles.get(role, Style.null()) for name, role in _ROLES.items()}
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if roles else None,
        force_terminal=bool(roles),
        theme=Theme(styles if roles else {}),
        legacy_windows=False,
    )
    rows = [_row(row) for row in console.render_lines(answer, pad=False)]
    return _without_empty_ends(rows)


def _row(segments: Iterable[Segment]) -> Row:
    spans = [segment for segment in segments if segment.text and not segment.control]
    while spans and not spans[-1].text.strip():
        spans.pop()
    if spans:
        spans[-1] = Segment(spans[-1].text.rstrip(), spans[-1].style)
    return [(each.text, each.style or Style.null()) for each in spans]


def _without_empty_ends(rows: list[Row]) -> list[Row]:
    while rows and not rows[-1]:
        rows.pop()
    while rows and not rows[0]:
        rows.pop(0)
    return rows
