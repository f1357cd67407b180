"""`[[ ... ]]`: words and plain operators; what would be calculated is noted."""

import re

from pegboard_plugins.bash.quoting import read_word
from pegboard_plugins.bash.source import Source
from pegboard_plugins.bash.sums import calculates
from pegboard_plugins.bash.syntax import Piece, Simple, Word

_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_BY_NAME = frozenset({"-v", "-R"})
_PATTERN = re.compile(
    r"(?:[A-Za-z0-9_.*+?^|:/,=@%-]|\\[.*+?/|$()\[\]{}-]|\$(?![A-Za-z0-9_({'\"`\[@*#?!$-])"
    r"|\[\^?[A-Za-z0-9_.:,/ @%+-]*\]|\{[0-9]+,?[0-9]*\}|[()])+(?=[ \t\n])"
)


def read_test(source: Source) -> Simple:
    """The whole of a test, from its brackets on."""
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
            if source.letter in "<>" and source.text[source.at + 1] not in " \t":
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


def _operand(source: Source, one: Simple, last: str) -> str:
    word = read_word(source)
    if last in _BY_NAME or word.raw in _BY_NAME:
        source.no("test-v", word.at)
    if last in _COMPARES:
        calculates(source, word)
    if word.raw in _COMPARES and one.words:
        calculates(source, one.words[-1])
    one.words.append(word)
    return word.raw


def _pattern(source: Source) -> Word:
    start, found = source.at, source.take(_PATTERN)
    if found is None or _level(found[0]):
        source.no("regex", start)
    return Word([Piece("text", found[0], quoted=True)], found[0], start)


def _level(pattern: str) -> int:
    """How many parentheses are left open."""
    plain = re.sub(r"\\.", "", pattern)
    return plain.count("(") - plain.count(")")
