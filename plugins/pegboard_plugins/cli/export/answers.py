"""Answers of a model in Markdown, in forms in which nothing of them is obeyed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pegboard.display import escape_controls

LONGEST_LETTERS = 200_000
"""A longer answer is plain text: the time to parse some texts is quadratic."""
DEEPEST = 16
"""Levels of Markdown that are drawn: the parser leaves out what is in the twentieth."""
_SCHEMES = ("http://", "https://", "mailto:")
_CODE = re.compile(r"\\[\s\S]|(?P<run>`+)(?P<code>(?!`)[\s\S]*?(?<!`))(?P=run)(?!`)|`+|[<&\[]")
_ALIGNED = re.compile(r"text-align:(left|center|right)")


class _Parser(MarkdownIt):
    """A parser for which HTML is text, and an image is a link."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "xhtmlOut": False})
        self.enable(["strikethrough", "table"])

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's
        """Whether the link is made; what is not allowed stays as it was written."""
        return url.lower().startswith(_SCHEMES)


class _AllLinks(_Parser):
    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the library's
        return True


@cache
def _parser() -> _Parser:
    parser = _Parser()
    parser.disable("image")
    return parser


def answer_html(text: str) -> str | None:
    """Return an answer as HTML; None for one that is shown as plain text."""
    if len(text) > LONGEST_LETTERS:
        return None
    parser = _parser()
    tokens = parser.parse(escape_controls(text))
    if max((token.level for token in tokens), default=0) >= DEEPEST:
        return None
    for token in _each(tokens):
        _tame(token)
    return str(parser.renderer.render(tokens, parser.options, {}))


def _each(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _tame(token: Token) -> None:
    """Escape what entities stand for, and put a class where the page allows no style."""
    token.content = escape_controls(token.content)
    token.info = escape_controls(token.info)
    if found := _ALIGNED.fullmatch(str(token.attrs.pop("style", ""))):
        token.attrs["class"] = found[1]
    if title := token.attrs.get("title"):
        token.attrs["title"] = escape_controls(str(title))
    if token.type == "link_open":
        token.attrs["rel"] = "noreferrer noopener"


def answer_markdown(text: str) -> str:
    """Return an answer as Markdown in which HTML, images and unsafe links are text."""
    text = escape_controls(text)
    if len(text) > LONGEST_LETTERS:
        return fenced(text)
    tokens = _AllLinks().parse(text)
    if max((token.level for token in tokens), default=0) >= DEEPEST:
        return fenced(text)
    lines = text.split("\n")
    done: set[int] = set()
    in_table = 0
    for token in tokens:
        in_table += {"table_open": 1, "table_close": -1}.get(token.type, 0)
        if token.map is None:
            continue
        start, end = token.map
        if token.type in ("fence", "code_block"):
            done |= set(range(start, end))
        elif token.type == "inline" and not in_table:
            safe = _escaped("\n".join(lines[start:end]), links=_is_safe(token))
            lines[start:end] = safe.split("\n")
            done |= set(range(start, end))
    return "\n".join(
        line if n in done else re.sub(r"[<&\[]", _entity, line) for n, line in enumerate(lines)
    )


def _is_safe(inline: Token) -> bool:
    children: Sequence[Token] = inline.children or ()
    hrefs = [str(each.attrs["href"]) for each in children if each.type == "link_open"]
    images = any(each.type == "image" for each in children)
    return not images and all(href.lower().startswith(_SCHEMES) for href in hrefs)


def _escaped(text: str, *, links: bool) -> str:
    """Return the text of a paragraph; what is in backticks is read as it stands."""

    def spell(found: re.Match[str]) -> str:
        letter = found[0]
        return _entity(found) if letter in "<&" or (letter == "[" and not links) else letter

    return _CODE.sub(spell, text)


def _entity(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;", "[": "\\["}[found[0]]


def fenced(text: str) -> str:
    """Return a block of code that the text cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
