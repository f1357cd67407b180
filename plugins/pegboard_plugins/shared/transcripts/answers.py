"""The conversion of a model's Markdown answers to safe HTML or Markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pegboard.display import escape_controls

if TYPE_CHECKING:
    from markdown_it.token import Token

    from pegboard_plugins.shared.transcripts.markdownparser import Parser

LONGEST_LETTERS = 200_000
"""The maximum length of an answer that is parsed, because the time can be quadratic."""
DEEPEST = 16
"""The maximum nesting of Markdown; the parser drops content from the twentieth level on."""
_SCHEMES = ("http://", "https://", "mailto:")
_CODE = re.compile(r"\\[\s\S]|(?P<run>`+)(?P<code>(?!`)[\s\S]*?(?<!`))(?P=run)(?!`)|`+|[<&\[]")
_LANGUAGE = re.compile(r"[\w+#.-]*")
_ALIGNED = re.compile(r"text-align:(left|center|right)")


@cache
def _parser() -> "Parser":
    from pegboard_plugins.shared.transcripts.markdownparser import Parser  # for the first answer

    parser = Parser(schemes=_SCHEMES)
    parser.disable("image")
    return parser


def answer_html(text: str) -> str | None:
    """Return an answer as HTML; None if the answer is too long or too deeply nested."""
    if len(text) > LONGEST_LETTERS:
        return None
    parser = _parser()
    tokens = parser.parse(escape_controls(text))
    if max((token.level for token in tokens), default=0) >= DEEPEST:
        return None
    for token in _each(tokens):
        _tame(token)
    return str(parser.renderer.render(tokens, parser.options, {}))


def _each(tokens: "Iterable[Token]") -> "Iterator[Token]":
    for token in tokens:
        yield token
        yield from token.children or ()


def _tame(token: "Token") -> None:
    """Escape controls in a token, and replace its alignment style by a class."""
    token.content = escape_controls(token.content)
    token.info = _LANGUAGE.match(token.info)[0]  # type: ignore[index] # it fits any string
    if found := _ALIGNED.fullmatch(str(token.attrs.pop("style", ""))):
        token.attrs["class"] = found[1]
    if title := token.attrs.get("title"):
        token.attrs["title"] = escape_controls(str(title))
    if token.type == "link_open":
        if not token.attrs.get("href"):
            del token.attrs["href"]
        token.attrs["rel"] = "noreferrer noopener"


def answer_markdown(text: str) -> str:
    """Return an answer as Markdown in which HTML, images and unsafe links are text."""
    text = escape_controls(text)
    if len(text) > LONGEST_LETTERS:
        return fenced(text)
    from pegboard_plugins.shared.transcripts.markdownparser import Parser  # as above

    parser, facts = Parser(schemes=("",)), dict[str, Any]()
    tokens = parser.parse(text, facts)
    lines, done = text.split("\n"), set[int]()
    table = range(0)
    for token in tokens:
        start, end = token.map or (0, 0)
        if token.type == "table_open":
            table = range(start, end)
        elif token.type in ("fence", "code_block"):
            done |= set(range(start + (token.type == "fence"), end))
        elif token.type == "inline" and start not in table:
            safe = _escaped("\n".join(lines[start:end]), links=_is_safe(token))
            lines[start:end] = safe.split("\n")
            done |= set(range(start, end))
    others = [line for n, line in enumerate(lines) if n not in done]
    targets = [str(each["href"]) for each in facts.get("references", {}).values()]
    is_deep = max((token.level for token in tokens), default=0) >= DEEPEST
    if is_deep or (targets and not _may_stay(targets, others)):
        return fenced(text)
    pattern = re.compile("[<&]" if targets else r"[<&\[]")
    safe = "\n".join(
        line if n in done else pattern.sub(_entity, line) for n, line in enumerate(lines)
    )
    last = parser.parse(f"{safe}\n\nend")[-1]
    # An open fence would take in what follows the answer, up to a fence that it would open.
    return f"{safe}\n{last.markup}" if last.type == "fence" else safe


def _may_stay(targets: Iterable[str], lines: Iterable[str]) -> bool:
    """Return whether the link definitions of an answer may stay in its exported Markdown.

    They stay only if all targets are safe and no other line needs escaping. An escaped character in
    a definition could make it a paragraph that includes the next lines.
    """
    is_safe = all(each.lower().startswith(_SCHEMES) for each in targets)
    return is_safe and not any(re.search("[<&]", line) for line in lines)


def _is_safe(inline: "Token") -> bool:
    children: Sequence[Token] = inline.children or ()
    hrefs = [str(each.attrs["href"]) for each in children if each.type == "link_open"]
    images = any(each.type == "image" for each in children)
    return not images and all(href.lower().startswith(_SCHEMES) for href in hrefs)


def _escaped(text: str, *, links: bool) -> str:
    """Escape HTML and unsafe links in a paragraph; code in backticks stays unchanged."""

    def spell(found: re.Match[str]) -> str:
        letter = found[0]
        if "\n" in letter:  # HTML at the beginning of a line would end the paragraph
            return re.sub("[<&]", _entity, letter)
        return _entity(found) if letter in "<&" or (letter == "[" and not links) else letter

    return _CODE.sub(spell, text)


def _entity(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;", "[": "\\["}[found[0]]


def fenced(text: str) -> str:
    """Return the text as a code block with a fence that the text cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
