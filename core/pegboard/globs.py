"""Patterns for the names of files, as ripgrep and git write them, as regular expressions."""

import re

from pegboard.errors import InvalidInputError

_TOKEN = re.compile(r"(?P<deep>(?<![^/])\*\*/)|(?P<rest>(?<![^/])\*\*$)|(?P<many>\*+)|(?P<one>\?)"
                    r"|(?P<set>\[[!^]?\]?[^\]/]*\])|(?P<open>\{)|(?P<comma>,)|(?P<close>\})"
                    r"|(?P<escape>\\.)|(?P<letter>.)", re.DOTALL)  # fmt: skip
_PLAIN = {
    "deep": "(?:[^/]+/)*",
    "rest": ".+",
    "many": "[^/]*",
    "one": "[^/]",
    "open": "(?:",
    "comma": "|",
    "close": ")",
}


def glob_expression(pattern: str) -> re.Pattern[str]:
    r"""The pattern for paths below a folder, to be matched in full.

    Known are `*`, `?`, `**`, `[a-z]`, `[!a]`, `{a,b}` and `\`; without a slash the pattern fits
    at any depth.

    :raises InvalidInputError: for what is no pattern.
    """
    pattern = pattern.removeprefix("./")
    balanced = pattern.count("{") == pattern.count("}")
    deep = "" if "/" in pattern.rstrip("/") else "(?:[^/]+/)*"
    pieces: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(pattern.removeprefix("/")):
        kind, text = match.lastgroup or "", match[0]
        depth += (kind == "open") - (kind == "close")
        literal = (kind == "comma" and depth == 0) or (kind in ("open", "close") and not balanced)
        pieces.append(re.escape(text) if literal else _translated(kind, text))
    try:
        return re.compile(deep + "".join(pieces), re.DOTALL)
    except re.error as error:
        raise InvalidInputError(f"{pattern!r} is not a pattern for file names: {error}") from error


def _translated(kind: str, text: str) -> str:
    if kind == "set":
        # What Python keeps for sets within sets is a letter here.
        body = re.sub(r"([\\\[&~|]|(?<=-)-)", r"\\\1", text[1:-1])
        return f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    if kind == "escape":
        return re.escape(text[1])
    return _PLAIN.get(kind) or re.escape(text)
