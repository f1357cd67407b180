"""Glob patterns for file names, as in ripgrep and git, compiled to regular expressions.

Patterns come from untrusted projects, so matching must be fast for every pattern. Therefore the
part between two stars matches at its first position only, and braces are expanded.
"""

import re
from collections.abc import Iterable, Sequence

from pegboard.errors import InvalidInputError

MOST_CHOICES = 256
"""The most patterns that one pattern with braces expands to."""
LONGEST = 4096
"""In letters: no path is longer."""
_TOKEN = re.compile(r"(?P<deep>(?<![^/])(?:\*\*/)+)|(?P<rest>(?<![^/])\*\*$)|(?P<many>\*+)"
                    r"|(?P<one>\?)|(?P<set>\[[!^]?\]?[^\]/]*\])|(?P<open>\{)|(?P<comma>,)"
                    r"|(?P<close>\})|(?P<escape>\\.)|(?P<letter>.)", re.DOTALL)  # fmt: skip
_PLAIN = {
    "deep": "(?:[^/]+/)*",
    "rest": ".+",
    "many": "[^/]*",
    "one": "[^/]",
}
_Token = tuple[str, str]
"""What a piece of a pattern is, and its text."""


def glob_expression(pattern: str) -> re.Pattern[str]:
    r"""Compile a glob pattern for full matches of paths below a folder.

    Supported are `*`, `?`, `**`, `[a-z]`, `[!a]`, `{a,b}` and `\`. A pattern without a slash
    matches at any depth.

    :raises InvalidInputError: for an invalid pattern, one longer than `LONGEST`, and one with more
      than `MOST_CHOICES` alternatives.
    """
    if len(pattern) > LONGEST:
        raise InvalidInputError(f"a pattern of {len(pattern):,} letters: {LONGEST} may be in one")
    pattern = pattern.removeprefix("./")
    deep = "" if "/" in pattern.rstrip("/") else _PLAIN["deep"]
    try:
        choices = _written_out(_tokens(pattern.removeprefix("/")))
        return re.compile(f"{deep}(?:{'|'.join(map(_translated, choices))})", re.DOTALL)
    except (ValueError, re.error) as error:
        raise InvalidInputError(f"{pattern!r} is not a pattern for file names: {error}") from error


def _tokens(pattern: str) -> list[_Token]:
    """Split a pattern into tokens; unbalanced braces and commas are literal."""
    found = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(pattern)]
    kinds = [kind for kind, _ in found]
    if kinds.count("open") == kinds.count("close") > 0:
        return found
    braces = ("open", "comma", "close")
    return [("letter" if kind in braces else kind, text) for kind, text in found]


def _written_out(tokens: Iterable[_Token]) -> list[list[_Token]]:
    """Expand a pattern with braces into patterns without braces."""
    choices: list[list[_Token]] = [[]]
    outer: list[tuple[list[list[_Token]], list[list[_Token]]]] = []
    for kind, text in tokens:
        if kind == "open":
            outer.append((choices, []))
            choices = [[]]
        elif kind == "comma" and outer:
            outer[-1][1].extend(choices)
            choices = [[]]
        elif kind == "close":
            if not outer:
                raise ValueError("a } without its {")
            before, others = outer.pop()
            choices = [first + last for first in before for last in (*others, *choices)]
            if len(choices) > MOST_CHOICES:
                raise ValueError(f"its braces stand for more than {MOST_CHOICES} patterns")
        else:
            for choice in choices:
                choice.append((kind, text))
    return choices


def _translated(tokens: Sequence[_Token]) -> str:
    pieces: list[str] = []
    places: dict[str, int] = {}
    for kind, text in tokens:
        if kind in ("deep", "many"):
            # The nearest place is as good as any, for this star takes what is left.
            if (at := places.get(kind)) is not None:
                pieces[at:] = [f"(?>{_PLAIN[kind]}?{''.join(pieces[at + 1 :])})"]
            places = {**(places if kind == "many" else {}), kind: len(pieces)}
        pieces.append(_piece(kind, text))
    return "".join(pieces)


def _piece(kind: str, text: str) -> str:
    if kind == "set":
        # What Python keeps for sets within sets is a letter here.
        body = re.sub(r"([\\\[&~|]|(?<=-)-)", r"\\\1", text[1:-1])
        if body in ("", "!", "^"):
            raise ValueError("a [ without its ]")
        return f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    if kind == "escape":
        return re.escape(text[1])
    return _PLAIN.get(kind) or re.escape(text)
