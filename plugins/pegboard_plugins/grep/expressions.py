"""Regular expressions in ripgrep's syntax, for searches without ripgrep.

The library `regex` runs them. This module rewrites the constructs that `regex` reads differently,
and those that could match across line ends.
"""

import re
from collections.abc import Iterator
from typing import Any

from pegboard.errors import InvalidInputError

_LEFT_OUT = r"[\n\r\U0000d800-\U0000dfff]"
"""No class has line ends, nor bytes that are no UTF-8, which Python decodes as surrogates."""
_IN_BOTH = r"""
    (?P<code>\\[xuU]\{0*(?P<number>[0-9A-Fa-f]{1,8})\})
    |(?P<kind>\\(?:[DsSW]|[pP](?:\{[^}]*\}|[A-Za-z])))
    |(?P<newline>\n|\\n)
    |(?P<other>\\?.)
"""
_PIECE = rf"""
    (?P<open>\[\^?\]?)
    |(?P<dot>\.)
    |(?P<end>\$|\\[zZ])
    |(?P<place>\\(?:[A<>]|b\{{[a-z-]+\}}))
    |(?P<flags>\(\?(?P<on>[A-Za-z]*)(?:-(?P<off>[A-Za-z]+))?(?P<scope>[:)]))
    |(?P<again>\\k(?=<))
    |{_IN_BOTH}
"""
_MEMBER = rf"""
    (?P<posix>\[:(?P<negated>\^?)(?P<name>[a-z]+):\])
    |(?P<open>\[\^?\]?)
    |(?P<close>\])
    |(?P<bar>\|)
    |{_IN_BOTH}
"""
_ALWAYS = {
    "dot": f"[^{_LEFT_OUT[1:]}",
    "end": r"(?:(?=[\r\n]|\Z))",
    "again": r"\g",
    "bar": r"\|",
}
_PLACES = {
    r"\A": "^",
    r"\<": r"(?<!\w)(?=\w)",
    r"\>": r"(?<=\w)(?!\w)",
    r"\b{start}": r"(?<!\w)(?=\w)",
    r"\b{end}": r"(?<=\w)(?!\w)",
    r"\b{start-half}": r"(?<!\w)",
    r"\b{end-half}": r"(?!\w)",
}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t\x20",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t-\r\x20",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
"""Of ASCII only, as in ripgrep: those of `regex` are Unicode's."""
_NO_DIFFERENCE = re.compile("[msuUR]")
"""Flags that make none to which lines fit, one by one."""


class LineExpression:
    """A compiled regular expression that finds the matching lines of a file."""

    def __init__(self, expression: Any) -> None:  # noqa: ANN401 - of `regex`, which has no types
        self._expression = expression

    def lines(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield the number, from 0, and the byte offset of each matching line."""
        text = content.decode(errors="surrogateescape")
        width = len if content.isascii() else _bytes
        number = offset = start = 0
        while found := self._expression.search(text, start):
            first = text.rfind("\n", start, found.start()) + 1 or start
            if first == len(text):
                return
            number += text.count("\n", start, first)
            offset += width(text[start:first])
            yield number, offset
            end = text.find("\n", found.start()) + 1
            if not end:
                return
            number += 1
            offset += width(text[first:end])
            start = end


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))


def line_expression(pattern: str) -> LineExpression:
    r"""Compile a regular expression that matches within one line.

    The syntax is that of ripgrep with `--crlf`. Classes are Unicode's, `$` matches before `\n` and
    `\r\n`, and no class contains a byte that is not UTF-8. Constructs that ripgrep rejects, such
    as look-around and back-references, have their meaning in `regex`.

    :raises InvalidInputError: when the pattern is not a regular expression, or asks for bytes by
        `(?-u)`.
    """
    import regex  # type: ignore[import-untyped]  # 20 ms that few programs pay; it has no types

    # Without full case-folding, by which ß would be ss.
    text = f"(?-f){_written_anew(pattern)}"
    try:
        return LineExpression(regex.compile(text, regex.VERSION1 | regex.MULTILINE))
    except (regex.error, OverflowError, RecursionError) as error:
        reason = getattr(error, "msg", str(error))
        raise _wrong(pattern, reason) from error


def _wrong(pattern: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"{pattern!r} is not a regular expression: {reason}. To search for the text as it stands, "
        "write a backslash before each of . ^ $ * + ? ( ) [ ] { } | \\\\"
    )


def _written_anew(pattern: str, *, nested: bool = True) -> str:
    """Translate a ripgrep pattern for `regex`.

    Unless `nested`, a `[` within a character class is a literal character.
    """
    outside, inside = (re.compile(each, re.VERBOSE | re.DOTALL) for each in (_PIECE, _MEMBER))
    pieces: list[str] = []
    at = depth = 0
    while found := (inside if depth else outside).match(pattern, at):
        at = found.end()
        if found.lastgroup == "close":
            depth -= 1
            pieces.append("]" if depth else f"]--{_LEFT_OUT}]")
        elif found.lastgroup != "open":
            pieces.append(_piece(found, pattern, in_class=depth > 0))
        elif depth and not nested:
            pieces.append("\\[")
            at = found.start() + 1
        else:
            # What would close a class is a letter at its start.
            pieces.append("[" * (depth == 0) + found[0].replace("]", r"\]"))
            depth += 1
    return _written_anew(pattern, nested=False) if depth and nested else "".join(pieces)


def _piece(found: "re.Match[str]", pattern: str, *, in_class: bool) -> str:
    text = found[0]
    match found.lastgroup:
        case "newline":
            raise _wrong(pattern, "lines are searched one by one, none has a \\n")
        case "flags":
            text = _flags(found, pattern)
        case "place":
            text = f"(?:{_PLACES.get(text, text)})"
        case "code":
            text = f"\\U{found['number']:0>8}"
        case "kind" if not in_class:
            text = f"[{text}--{_LEFT_OUT}]"
        case "posix" if found["name"] in _POSIX:
            text = f"[{found['negated']}{_POSIX[found['name']]}]"
        case kind:
            text = _ALWAYS.get(kind or "", text)
    return text


def _flags(found: "re.Match[str]", pattern: str) -> str:
    if "u" in (found["off"] or ""):
        raise _wrong(pattern, "only letters can be searched for here, not bytes by (?-u)")
    on, off = (_NO_DIFFERENCE.sub("", found[name] or "") for name in ("on", "off"))
    said = f"{on}-{off}" if off else on
    return f"(?{said}{found['scope']}" if said or found["scope"] == ":" else ""
