"""What stands behind a dollar or in backticks: variables, substitutions, sums, `$'..'`."""

import re
from typing import Literal

from pegboard_plugins.bash.source import DEEPEST, Source, placed
from pegboard_plugins.bash.sums import read_sum
from pegboard_plugins.bash.syntax import Feed, Piece

_NAME = r"[A-Za-z_]\w*"
_VARIABLE = re.compile(rf"\$({_NAME}|[0-9@*#?$!-])")
_TEXT = rf"(?:[A-Za-z0-9_./:=,@%+*? \[\]^-]|\${_NAME}(?![\w\[]))*"
_BRACED = re.compile(
    rf"\$\{{(?:\#(?P<counted>{_NAME}(?:\[[@*]\])?|[@*])|!(?P<keys>{_NAME})\[[@*]\]"
    rf"|(?P<name>{_NAME}|[0-9]+|[@*\#?$!-])(?P<index>\[(?:[@*]|-?[0-9]+)\])?"
    rf"(?P<how>:[ ]?-?[0-9]+(?::-?[0-9]+)?(?=\}})"
    rf"|(?::?[-+=?]|\#\#?|%%?|//?[\#%]?|\^\^?|,,?){_TEXT})?)\}}"
)
_OF_ELEMENTS = re.compile(r":[ ]?-?[0-9]|[#%/+-]|:[-+]")
"""What may be done with the elements of an array."""
_IN_BACKTICKS = re.compile(r"`([^`\\'\"$(){}<>#\n]+)`")
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})(?![0-9a-fA-F])|([0-7]{3})(?![0-7])|([ntrabfveE\\'\"?]))"
)
_ANSI_LETTERS = dict(zip("ntrabfveE\\'\"?", "\n\t\r\a\b\f\v\x1b\x1b\\'\"?", strict=True))
_NO_ASCII = 0x7F


def read_dollar(source: Source, *, quoted: bool) -> Piece:
    """What a dollar begins; a lone one is a letter."""
    start = source.at
    after = source.text[start + 1 : start + 2]
    if after == "(":
        if not source.sees("$(("):
            return read_output(source, "output", quoted=quoted)
        source.at += len("$((")
        read_sum(source, "))")
        return Piece("sum", "", quoted, source.text[start : source.at])
    if after == "{":
        return _braced(source, quoted=quoted)
    if after == "'" and not quoted:
        return Piece("text", _ansi(source), quoted=True)
    if found := source.take(_VARIABLE):
        is_indexed = source.letter == "[" and not quoted
        if found[1] == "_" or is_indexed or source.sees("\\\n"):
            source.no("expansion", start)
        return Piece("variable", found[1], quoted, found[0])
    if after and (after in "[`\\" or (after == '"' and not quoted)):
        source.no("expansion")
    source.at += 1
    return Piece("text", "$", quoted)


def read_output(source: Source, kind: Literal["output", "process"], *, quoted: bool) -> Piece:
    """A substitution in parentheses: of a command's output, or of a file that is one's."""
    start = source.at
    if source.depth + source.inner >= DEEPEST:
        source.no("nested-too-deep")
    pending, source.pending = source.pending, []
    first, takes_output = len(source.simples), source.letter == ">"
    source.at += len("$(")
    source.inner += 1
    body = source.read_list(source, (), ")")
    for each in source.simples[first:] if takes_output else ():
        each.fed = each.fed or Feed("pipe")  # it reads what is written to it
    if source.letter != ")" or source.pending:
        source.no("unfinished", start)
    source.at += 1
    source.inner -= 1
    source.pending = pending
    source.refuse_lines(start)
    return Piece(kind, "", quoted, source.text[start : source.at], body=(body,))


def read_backticks(source: Source, *, quoted: bool) -> Piece:
    """A substitution in backticks, of plain words alone."""
    start = source.at
    found = source.take(_IN_BACKTICKS)
    if found is None:
        source.no("backticks")
    with placed(start, source.at):
        inside = Source(found[1], source.read_list, depth=source.depth, inner=source.inner + 1)
        body = source.read_list(inside, (), "")
    source.adopt(inside)
    return Piece("output", "", quoted, found[0], body=(body,))


def _braced(source: Source, *, quoted: bool) -> Piece:
    start = source.at
    found = source.take(_BRACED)
    if found is None:
        source.no("expansion")
    how = found["how"] or ""
    if (found["index"] and how and not _OF_ELEMENTS.match(how)) or found["name"] == "_":
        source.no("expansion", start)
    if found["counted"]:
        how = "#n"
    elif found["keys"]:
        how = "!"
    name = re.split(r"\[", found["counted"] or found["keys"] or found["name"])[0]
    return Piece("variable", name, quoted, found[0], how=how)


def _ansi(source: Source) -> str:
    """The text of `$'..'`, of which only ASCII is read."""
    start, text = source.at, []
    source.at += len("$'")
    while source.letter != "'":
        if not source.letter:
            source.no("unfinished", start)
        elif source.letter != "\\":
            text.append(source.letter)
            source.at += 1
        elif found := source.take(_ANSI):
            code = int(found[1], 16) if found[1] else int(found[2] or "0", 8)
            if not found[3] and not 0 < code < _NO_ASCII:
                source.no("ansi-string", start)
            text.append(_ANSI_LETTERS[found[3]] if found[3] else chr(code))
        else:
            source.no("ansi-string")
    source.at += 1
    source.refuse_lines(start)
    return "".join(text)
