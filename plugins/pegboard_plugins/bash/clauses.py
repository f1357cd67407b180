"""Reading of redirections, here-documents and `[[ ... ]]` tests."""

import re

from pegboard_plugins.bash.source import DEVICE, ShellSource, calculates, placed
from pegboard_plugins.bash.syntax import CommandFeed, Piece, Redirection, Simple, Unclear, Word
from pegboard_plugins.bash.words import read_quoted, read_word, unbraced

_NAME = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)(?=[ \t\n;&|<>)]|$)"
    r"|(?:'([A-Za-z0-9_ .-]+)'|\"([A-Za-z0-9_ .-]+)\"|\\([A-Za-z_][A-Za-z0-9_]*))"
    r"(?=[ \t\n;&|<>)]|$)"
)
_JOINS_SIGNS = re.compile(r"[$`]\\\n|\\\n[ \t]*[({]|\$\w*\\\n")
"""A joined line in the middle of what may be an expansion."""
REDIRECTS = frozenset("0123456789&<>")
"""The letters with which a redirection may begin."""
_REDIRECTS = re.compile(r"([0-9]*)(&>>|&>|>>|>\||>&|<&|<<<|<<-|<<|>|<)")
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_BY_NAME = frozenset({"-v", "-R"})
_PATTERN = re.compile(
    r"(?:[A-Za-z0-9_.*+?^|:/,=@%-]|\\[.*+?/|$()\[\]{}-]|\$(?![A-Za-z0-9_({'\"`\[@*#?!$-])"
    r"|\[\^?[A-Za-z0-9_.:,/ @%+-]*\]|\{[0-9]+,?[0-9]*\}|[()])+(?=[ \t\n])"
)
_DESCRIPTOR = re.compile(r"([0-9]+|-)(?=[ \t\n;&|)]|$)")


def read_redirection(source: ShellSource, one: Simple) -> bool:
    """Read a redirection into the command `one`; return False if no redirection begins here."""
    start, found = source.at, _REDIRECTS.match(source.text, source.at)
    if found is None:
        return False
    number, sign = found.groups()
    after = source.text[found.end() : found.end() + 1]
    if sign in "<>" and after == "(" and not number:
        return False  # a process substitution, which is a word
    if (sign in "<>" and after == "(") or (sign == "<" and after == ">"):
        source.no("redirection")
    if number and sign.startswith("&"):
        source.no("redirection")
    is_input = sign[0] == "<" and number in ("", "0")
    is_odd = number.startswith("0") and not is_input
    if is_odd or (number and sign in ("<<", "<<-")) or (is_input and one.fed):
        source.no("redirection")  # of several inputs the last one counts
    source.at = found.end()
    source.skip()
    if sign in ("<<", "<<-"):
        _note_document(source, one, strips=sign == "<<-")
    elif sign in (">&", "<&"):
        if not source.take(_DESCRIPTOR):
            source.no("redirection", start)
        if sign == "<&" and is_input:
            one.fed = CommandFeed("pipe")  # what another descriptor reads is not followed
    else:
        _target(source, one, sign, number)
    return True


def _target(source: ShellSource, one: Simple, sign: str, number: str) -> None:
    start = source.at
    if source.letter in ("", *"\n;&|)") or source.letter == "#":
        source.no("redirection")
    words = unbraced(source, read_word(source))
    if len(words) != 1:
        source.no("redirection", start)
    one.redirections += (Redirection(sign, number, words[0]),)
    if sign == "<<<" and number in ("", "0"):
        one.fed = CommandFeed("text", words[0])
    elif sign == "<" and number in ("", "0"):
        is_device = DEVICE.match(words[0].literal or "")
        one.fed = CommandFeed("pipe") if is_device else CommandFeed("file", words[0])


def _note_document(source: ShellSource, one: Simple, *, strips: bool) -> None:
    """Register a here-document; the document's body is read when the next line begins."""
    start, found = source.at, source.take(_NAME)
    if found is None:
        source.no("here-document-name")
    name = found[1] or found[2] or found[3] or found[4]
    is_plain = found[1] is not None
    end = source.at
    one.fed = CommandFeed("text")

    def read_body() -> None:
        body, lines_end = _lines(source, name, strips=strips, joins=is_plain)
        if source.inner and lines_end >= source.end:
            source.no("here-document", start)
        with placed(start, end):
            word = _expanded(source, one, body, start) if is_plain else _plain(body, start)
        one.redirections += (Redirection("<<", "", word),)
        one.fed = CommandFeed("text", word)

    source.pending.append(read_body)


def _lines(source: ShellSource, name: str, *, strips: bool, joins: bool) -> tuple[str, int]:
    """Return a here-document's body up to the delimiter `name`, and the offset of the end."""
    lines: list[str] = []
    start = source.at
    while source.at < source.end:
        line, end = _line(source, source.at)
        while joins and (len(line) - len(line.rstrip("\\"))) % 2 and end < source.end:
            more, end = _line(source, end + 1)
            line = line[:-1] + more
        if joins and _JOINS_SIGNS.search(source.text, source.at, end):
            source.no("line-continuation")
        source.at = min(end + 1, source.end)
        line = line.lstrip("\t") if strips else line
        if line == name:
            return "".join(f"{each}\n" for each in lines), end
        lines.append(line)
    raise Unclear("here-document", start, source.end)


def _line(source: ShellSource, start: int) -> tuple[str, int]:
    end = source.text.find("\n", start)
    end = source.end if end < 0 else end
    return source.text[start:end], end


def _plain(body: str, start: int) -> Word:
    return Word([Piece("text", body, quoted=True)], body, start)


def _expanded(source: ShellSource, one: Simple, body: str, start: int) -> Word:
    """Return the body of an unquoted here-document as a word, with the expansions in it."""
    inside = ShellSource(body, source.read_list, depth=source.depth, inner=source.inner + 1)
    word = Word(read_quoted(inside, ""), body, start)
    for each in inside.simples:
        each.fed = each.fed or one.outer
    source.adopt(inside)
    return word


def read_test(source: ShellSource) -> Simple:
    """Read a whole `[[ ... ]]` test."""
    one = Simple(source.at, "test")
    source.at += len("[[")
    level, last = 0, ""
    source.skip(lines=True)
    while source.keyword() != "]]":
        if source.at >= source.end:
            source.no("unfinished")
        if source.sees("&&") or source.sees("||"):
            source.at += len("&&")
            last = ""
        elif source.letter in "()<>" and last != "=~":
            level += {"(": 1, ")": -1}.get(source.letter, 0)
            if source.letter in "<>" and source.text[source.at + 1 : source.at + 2] not in " \t":
                source.no("syntax")
            source.at += 1
        elif last == "=~" and source.letter not in "'\"$":
            last = ""
            one.words.append(_pattern(source))
        else:
            last = _operand(source, one, last)
        source.skip(lines=True)
    if level:
        source.no("syntax")
    source.at += len("]]")
    source.simples.append(one)
    return one


def _operand(source: ShellSource, one: Simple, last: str) -> str:
    word = read_word(source)
    if last in _BY_NAME or word.raw in _BY_NAME:
        source.no("test-v", word.at)
    if last in _COMPARES:
        calculates(source, word)
    if word.raw in _COMPARES and one.words:
        calculates(source, one.words[-1])
    one.words.append(word)
    return word.raw


def _pattern(source: ShellSource) -> Word:
    start, found = source.at, source.take(_PATTERN)
    if found is None or _level(found[0]):
        source.no("regex", start)
    return Word([Piece("text", found[0], quoted=True)], found[0], start)


def _level(pattern: str) -> int:
    """Return the number of parentheses that are left open in a pattern."""
    plain = re.sub(r"\\.", "", pattern)
    return plain.count("(") - plain.count(")")
