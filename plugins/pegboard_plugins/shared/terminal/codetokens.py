"""The syntax colouring of code, by rich's lexers."""

from collections.abc import Iterator, Mapping, Sequence

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

from pegboard.display import Span, SpanLine, SpanStyle

CODE_ROLES: Mapping[tuple[str, ...], SpanStyle] = {
    ("Comment",): "dim",
    ("Keyword",): "accent",
    ("Operator", "Word"): "accent",
    ("Name", "Function"): "tool",
    ("Name", "Class"): "tool",
    ("Name", "Tag"): "tool",
    ("Name", "Decorator"): "accent",
    ("Name", "Builtin"): "hunk",
    ("Literal", "String"): "done",
    ("Literal", "Number"): "hunk",
}
"""The roles of Pygments' token types, which also apply to their subtypes."""


GUESSED_LETTERS = 2000
"""The length of the code from which the language is guessed, if the file name is ambiguous."""
_ROLE = "role"


def coloured_code(lines: Sequence[str], file: str) -> Iterator[SpanLine]:
    """Yield each line of code as coloured spans; plain spans for files of an unknown language."""
    code = "\n".join(lines)
    marked = {kind: Style(meta={_ROLE: role}) for kind, role in CODE_ROLES.items()}
    theme = ANSISyntaxTheme(marked)
    lexer = Syntax.guess_lexer(file, code[:GUESSED_LETTERS])
    found = Syntax("", lexer, theme=theme, tab_size=0).highlight(code)  # tabs stay as they are
    rows = list(found.split("\n", allow_blank=True))[: len(lines)]
    yield from map(_spans, rows)
    yield from ((Span(line),) for line in lines[len(rows) :])


def _spans(row: Text) -> SpanLine:
    roles: list[SpanStyle] = ["plain"] * len(row.plain)
    for span in row.spans:
        if isinstance(span.style, Style) and (role := span.style.meta.get(_ROLE)):
            roles[span.start : span.end] = [role] * (span.end - span.start)
    ends = [n for n in range(1, len(roles)) if roles[n] != roles[n - 1]]
    pieces = zip((0, *ends), (*ends, len(roles)), strict=True)
    return tuple(Span(row.plain[start:end], roles[start]) for start, end in pieces if end > start)
