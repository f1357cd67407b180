"""Reading of words: plain text, quotes, wildcards, braces and expansions with `$`."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Literal

from pegboard_plugins.bash.source import DEEPEST, QUOTABLE, ShellSource, placed, read_sum
from pegboard_plugins.bash.syntax import CommandFeed, Piece, Word

_LETTERS = r"[A-Za-z0-9_./:,@%+^=!\]\-\x80-\x9f\xa1-\u200c\u200e-\u2fff\u3001-\U0010ffff]+"
"""Without the blanks and the joiner of Unicode, which are letters in quotes alone."""
_ENDS = r"(?=[ \t\n;|)]|\Z)[ \t]*"
_WHOLE = re.compile(
    rf"""(?:({_LETTERS})|('([^'\n]*)'|"([^"\\$`\n]*)"|("?)\$([A-Za-z][A-Za-z0-9_]*)\5)){_ENDS}"""
)
"""A word of plain letters, one text in quotes or a variable, as most are, with its blanks."""
_SET = r"\[[!^]?[A-Za-z0-9_.:,@%+-]*(?:\[:[a-z]+:\][A-Za-z0-9_.-]*)?\]"
_PART = re.compile(rf"""({_LETTERS})|'([^']*)'|"([^"\\$`]*)"|\\([^\n])|([*?]|{_SET})""")
"""Of another word a text: plain, quoted in one of three ways, or a wildcard."""
_WILDCARD = 5
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_IN_BODY = re.compile(r"[^\\$`]+")
_TILDE = re.compile(r"~([A-Za-z_][A-Za-z0-9_-]*)?(?=[/ \t\n;&|<>):]|$)")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[[0-9]+\])?\+?=")
_CHOICE = r"[^\s{}'\"`$\\;&|<>()*?\[~!#,]*"
_BRACES = re.compile(
    rf"\{{({_CHOICE}(?:,{_CHOICE})+)\}}|\{{(-?\d{{1,4}}|[A-Za-z])\.\.(-?\d{{1,4}}|[A-Za-z])\}}"
)
_NO_BRACES = re.compile(r"\{(?:[A-Za-z0-9_@%+:/-]|\.(?!\.))*\}")
_DESCRIPTOR = re.compile(r"\{\w+\}")
_MOST_CHOICES = 300
_MOST_WORDS = 400
"""So many words may braces come to: each pair of them can double their number."""
_JOINS_BEHIND = " \t,.;:"
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
_REFUSED = {"(": "parenthesis", "#": "syntax", "'": "unfinished", "\\": "line-continuation"}
_NO_SET = ("", *" \t\n;")
_REFUSED |= dict.fromkeys("<>", "process-substitution")
_REFUSED |= dict.fromkeys(QUOTABLE, "unicode-invisible")


def read_word(source: ShellSource, *, assigning: bool = False) -> Word:
    """Read the word that begins here; if `assigning`, a `~` after `=` or `:` means a home."""
    text, start = source.text, source.at
    if found := _WHOLE.match(text, start):
        source.at = found.end()
        if found.lastindex == 1:
            return Word.plain(found[1], start)
        _, raw, single, double, quote, name = found.groups()
        if name:
            piece = Piece("variable", name, bool(quote), f"${name}")
        else:
            piece = Piece("text", single or double or "", quoted=True)
        return Word((piece,), raw, start)
    pieces: list[Piece] = []
    while source.at < source.end:
        begin = source.at
        if found := _PART.match(text, begin):
            source.at, number = found.end(), found.lastindex or 0
            kind: Literal["glob", "text"] = "glob" if number == _WILDCARD else "text"
            pieces.append(Piece(kind, found[number], 1 < number < _WILDCARD))
        else:
            letter = text[begin]
            if letter in " \t\n;&|)" or (letter in "<>" and text[begin + 1 : begin + 2] != "("):
                break
            pieces += _read_part(source, letter, pieces, start, assigning=assigning)
        source.refuse_lines(begin)
    if source.at == start:
        source.no("syntax")
    raw = text[start : source.at]
    if source.letter and source.letter in "<>" and _DESCRIPTOR.fullmatch(raw):
        source.no("redirection", start)
    return Word(pieces, raw, start)


def _read_part(
    source: ShellSource, letter: str, pieces: list[Piece], start: int, *, assigning: bool
) -> Sequence[Piece]:
    """Read a part of a word, which begins with `letter`, such as `$`; return its pieces."""
    if letter == '"':
        source.at += 1
        quoted = read_quoted(source, letter)
        source.at += 1
        return quoted
    is_first = source.at == start
    match letter:
        case "$":
            found = read_dollar(source, quoted=False)
        case "`":
            found = read_backticks(source, quoted=False)
        case "{":
            found = _brace(source, pieces)
        case "~":
            found = _tilde(source, start, assigning=assigning)
        case "<" | ">" if is_first:
            found = read_output(source, "process", quoted=False)
        case "#" | "[" if not is_first or letter == "[":  # behind `>` a `#` would begin a comment
            found = Piece("text", letter)
            source.at += 1
            if letter == "[" and not (is_first and source.letter in _NO_SET):
                source.no("bracket", source.at - 1)  # a subscript may hold blanks: `a[ 1 ]=x`
        case _:
            source.no(_REFUSED.get(letter, "character"))
    return (found,)


def read_quoted(source: ShellSource, closer: str) -> list[Piece]:
    """Read the content of double quotes up to `closer`; without a closer, of a here-document."""
    pieces: list[Piece] = []
    plain = _IN_QUOTES if closer else _IN_BODY
    while source.at < source.end:
        if found := source.take(plain):
            pieces.append(Piece("text", found[0], quoted=True))
        elif source.letter == closer:
            return pieces
        elif source.letter == "\\":
            _escaped_in_quotes(source, pieces, closer)
        elif source.letter == "`":
            pieces.append(read_backticks(source, quoted=True))
        else:
            pieces.append(read_dollar(source, quoted=True))
    if closer:
        source.no("unfinished")
    return pieces


def _escaped_in_quotes(source: ShellSource, pieces: list[Piece], closer: str) -> None:
    after = source.text[source.at + 1 : source.at + 2]
    if not after and closer:
        source.no("unfinished")
    if after == "\n":
        if source.at == 0 or source.text[source.at - 1] not in _JOINS_BEHIND:
            source.no("line-continuation")
    elif after and (after in "$`\\" or after == closer):
        pieces.append(Piece("text", after, quoted=True))
    else:
        pieces.append(Piece("text", f"\\{after}", quoted=True))
    source.at += len(f"\\{after}")


def _tilde(source: ShellSource, start: int, *, assigning: bool) -> Piece:
    before = source.text[start : source.at]
    assigns = assigning or _ASSIGNS.match(before) is not None
    if before and not (before[-1] in "=:" and assigns):
        source.at += 1
        return Piece("text", "~")
    found = source.take(_TILDE)
    if found is None:
        source.no("tilde")
    return Piece("tilde", found[0])


def _brace(source: ShellSource, pieces: Sequence[Piece]) -> Piece:
    """Read `{a,b}` or `{1..3}` as a piece with choices, `{}` or `{name}` as plain text."""
    start = source.at
    if found := source.take(_BRACES):
        last = pieces[-1] if pieces else Piece("text", "")
        is_name = last.kind == "variable" and not last.raw.endswith("}")
        choices = found[1].split(",") if found[1] is not None else _between(found[2], found[3])
        if is_name or last.shown.endswith("$") or not choices:
            source.no("brace", start)  # braces come first: `$x{a,b}` is `$xa $xb`
        return Piece("braces", "", raw=found[0], choices=tuple(choices))
    if any(piece.kind == "braces" for piece in pieces) or not (found := source.take(_NO_BRACES)):
        source.no("brace", start)
    return Piece("text", found[0])


def _between(first: str, last: str) -> list[str]:
    """Return the numbers or letters of a brace range such as `1..3`; [] if it is unsupported."""
    if re.fullmatch(r"-?(0|[1-9]\d*)", first) and re.fullmatch(r"-?(0|[1-9]\d*)", last):
        step = 1 if int(first) <= int(last) else -1
        return [str(each) for each in range(int(first), int(last) + step, step)][:_MOST_CHOICES]
    if first.isalpha() and last.isalpha() and first.islower() == last.islower():
        low, high = sorted((ord(first), ord(last)))
        return list(map(chr, range(low, high + 1)))
    return []


def unbraced(source: ShellSource, word: Word) -> list[Word]:
    """Expand the braces of a word into several words."""
    if word.literal is not None or all(piece.kind != "braces" for piece in word.pieces):
        return [word]
    parts = [
        [Piece("text", text) for text in piece.choices] if piece.kind == "braces" else [piece]
        for piece in word.pieces
    ]
    number = 1
    for part in parts:
        number *= len(part)
        if number > _MOST_WORDS:
            source.no("brace", word.at)
    words = [Word(pieces, word.raw, word.at) for pieces in product(*parts)]
    return [
        word for word in words if any(p.kind != "text" or p.text or p.quoted for p in word.pieces)
    ]


def read_dollar(source: ShellSource, *, quoted: bool) -> Piece:
    """Read an expansion that begins with `$`; a lone `$` is plain text."""
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
        if found[1] == "_" or not found[1].isascii() or is_indexed or source.sees("\\\n"):
            source.no("expansion", start)
        return Piece("variable", found[1], quoted, found[0])
    if after and (after in "[`\\" or (after == '"' and not quoted)):
        source.no("expansion")
    source.at += 1
    return Piece("text", "$", quoted)


def read_output(source: ShellSource, kind: Literal["output", "process"], *, quoted: bool) -> Piece:
    """Read a command substitution (`output`) or a process substitution (`process`)."""
    start = source.at
    if source.depth + source.inner >= DEEPEST:
        source.no("nested-too-deep")
    pending, source.pending = source.pending, []
    first, takes_output = len(source.simples), source.letter == ">"
    source.at += len("$(")
    source.inner += 1
    body = source.read_list(source, (), ")")
    for each in source.simples[first:] if takes_output else ():
        each.fed = each.fed or CommandFeed("pipe")  # it reads what is written to it
    if source.letter != ")" or source.pending:
        source.no("unfinished", start)
    source.at += 1
    source.inner -= 1
    source.pending = pending
    source.refuse_lines(start)
    return Piece(kind, "", quoted, source.text[start : source.at], body=(body,))


def read_backticks(source: ShellSource, *, quoted: bool) -> Piece:
    """Read a substitution in backticks; only plain words are supported."""
    start = source.at
    found = source.take(_IN_BACKTICKS)
    if found is None:
        source.no("backticks")
    with placed(start, source.at):
        inside = ShellSource(found[1], source.read_list, depth=source.depth, inner=source.inner + 1)
        body = source.read_list(inside, (), "")
    source.adopt(inside)
    return Piece("output", "", quoted, found[0], body=(body,))


def _braced(source: ShellSource, *, quoted: bool) -> Piece:
    start = source.at
    found = source.take(_BRACED)
    if found is None:
        source.no("expansion")
    how = found["how"] or ""
    if (
        not found[0].isascii()
        or (found["index"] and how and not _OF_ELEMENTS.match(how))
        or found["name"] == "_"
    ):
        source.no("expansion", start)
    if found["counted"]:
        how = "#n"
    elif found["keys"]:
        how = "!"
    name = re.split(r"\[", found["counted"] or found["keys"] or found["name"])[0]
    return Piece("variable", name, quoted, found[0], how=how)


def _ansi(source: ShellSource) -> str:
    """Return the decoded text of `$'...'`; reject escapes for characters outside of ASCII."""
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
