"""An expression as ripgrep writes it, piece by piece as `regex` does."""

import re
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from pegboard.expressions.classes import Class, escaped_class, read_class
from pegboard.expressions.source import Flags, Letter, Source, changed

_DIRECTIVE = re.compile(r"\(\?([a-zA-Z-]+)\)")
_GROUP = re.compile(
    r"\?(?:(?P<look><?[=!]|>)|P?<(?P<name>[^\W\d][\w.\[\]]*)>|P=(?P<again>\w+)(?=\))"
    r"|(?P<flags>[a-zA-Z-]*):)"
)
_COUNT = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")
_PLACE = re.compile(r"b\{(start|end|start-half|end-half)\}|[bB<>]")
_PLACES = {"<": "start", ">": "end"}
_EARLIER = re.compile(r"([1-9]\d*)|k<(\w+)>")
_RETURN = re.compile(r"\r|\\r|\\[xuU]\{?0*[dD]\b")


class Pieces(Protocol):
    """How letters, classes and words are written."""

    def letter(self, letter: Letter, flags: Flags) -> tuple[bool, str]:
        """A piece, and whether it is to be taken in any case."""
        ...

    def any(self, flags: Flags) -> str:
        """Any letter of a line."""
        ...

    def one_of(self, kind: Class, flags: Flags) -> str:
        """A letter of a class."""
        ...

    def boundary(self, name: str, flags: Flags) -> str:
        """A place beside a word."""
        ...


def read(pattern: str, pieces: Pieces) -> str:
    """The expression for `regex` with the flags V0 and MULTILINE.

    It fits within one line only. Beside what ripgrep knows there may be look-around, atomic
    groups and back-references.

    :raises InvalidInputError: for what neither knows.
    """
    reader = _Reader(pattern, pieces)
    text = reader.alternation(Flags())
    if reader.source.at < len(pattern):
        raise reader.source.fail("a ) without its (")
    return text


class _Reader:
    def __init__(self, pattern: str, pieces: Pieces) -> None:
        self.source = Source(pattern)
        self._pieces = pieces
        self._groups: list[str] = [""]
        # Who names a carriage return means that of a line's end, too.
        self._returns = bool(_RETURN.search(pattern))

    def alternation(self, flags: Flags) -> str:
        branches: list[str] = []
        while True:
            branch, flags = self._branch(flags)
            branches.append(branch)
            if not self.source.skip("|"):
                return "|".join(branches)

    def _branch(self, flags: Flags) -> tuple[str, Flags]:
        pieces: list[tuple[bool, str]] = []
        while self.source.peek(flags) not in ("", "|", ")"):
            if said := self.source.match(_DIRECTIVE):
                flags = self._changed(flags, said[1])
                if self.source.peek(flags) in ("*", "+", "?", "{"):
                    raise self.source.fail("nothing to repeat")
                continue
            folded, piece = self._piece(flags)
            pieces.append((folded, self._repeated(piece, flags)))
        runs = (
            (folded, "".join(map(itemgetter(1), run)))
            for folded, run in groupby(pieces, key=itemgetter(0))
        )
        return "".join(f"(?i:{run})" if folded else run for folded, run in runs), flags

    def _changed(self, flags: Flags, said: str) -> Flags:
        after = changed(flags, said)
        if after is None:
            raise self.source.fail("unknown flags")
        return after

    def _repeated(self, piece: str, flags: Flags) -> str:
        while True:
            sign = self.source.peek(flags)
            if sign == "{":
                count = self._count(flags)
            elif sign in ("*", "+", "?"):
                self.source.at += 1
                count = sign
            else:
                return piece
            lazy = self.source.skip("?") != flags.U
            piece = f"(?:{piece}{count}{'?' * lazy})"

    def _count(self, flags: Flags) -> str:
        count = self.source.match(_COUNT)
        if not count:
            raise self.source.fail("a { has to be followed by a number, or to be written \\{")
        if count[3] and int(count[1]) > int(count[3]):
            raise self.source.fail("a count has to go from a number to a greater one")
        self.source.peek(flags)
        return f"{{{count[1]}{count[2] or ''}{count[3] or ''}}}"

    def _piece(self, flags: Flags) -> tuple[bool, str]:
        sign = self.source.text[self.source.at]
        self.source.at += 1
        folded, piece = False, ""
        match sign:
            case "(":
                piece = self._group(flags)
            case "[":
                kind, alone = read_class(self.source, flags)
                folded, piece = self._letter(alone, flags) if alone else self._class(kind, flags)
            case ".":
                piece = self._pieces.any(flags)
            case "^":
                piece = _start(flags)
            case "$":
                piece = _end(flags, returns=self._returns)
            case "\\":
                folded, piece = self._escape(flags)
            case "*" | "+" | "?" | "{":
                raise self.source.fail("nothing to repeat")
            case _:
                folded, piece = self._letter(Letter(sign), flags)
        return folded, piece

    def _letter(self, letter: Letter, flags: Flags) -> tuple[bool, str]:
        if letter.text == "\n":
            raise self.source.fail("lines are searched one by one, none has a \\n")
        return self._pieces.letter(letter, flags)

    def _class(self, kind: Class, flags: Flags) -> tuple[bool, str]:
        return False, self._pieces.one_of(kind, flags)

    def _group(self, flags: Flags) -> str:
        opening = "("
        if self.source.peek(flags) != "?":
            self._groups.append("")
        elif not (found := self.source.match(_GROUP)):
            raise self.source.fail("an unknown kind of group")
        elif found["again"]:
            self.source.at += 1
            return self._again(found["again"])
        elif found["look"]:
            opening = f"(?{found['look']}"
        elif found["name"]:
            if found["name"] in self._groups:
                raise self.source.fail("two groups of one name")
            self._groups.append(found["name"])
        else:
            opening = "(?:"
            flags = self._changed(flags, found["flags"])
        inner = self.alternation(flags)
        if not self.source.skip(")"):
            raise self.source.fail("a ( without its )")
        return f"{opening}{inner})"

    def _again(self, name: str) -> str:
        if name.isdigit():
            return f"\\g<{int(name)}>"
        if name not in self._groups:
            raise self.source.fail("no earlier group of that name")
        return f"\\g<{self._groups.index(name)}>"

    def _escape(self, flags: Flags) -> tuple[bool, str]:
        if letter := self.source.escaped(flags):
            return self._letter(letter, flags)
        if kind := escaped_class(self.source, flags):
            return self._class(kind, flags)
        if place := self.source.match(_PLACE):
            name = place[1] or _PLACES.get(place[0], place[0])
            return False, self._pieces.boundary(name, flags)
        if self.source.skip("A"):
            return False, "(?:^)"
        if self.source.skip("z"):
            return False, _LINE_END
        if earlier := self.source.match(_EARLIER):
            return flags.i, self._again(earlier[1] or earlier[2])
        raise self.source.fail("an unknown escape")


_LINE_END = r"(?:(?=\r\n)|(?<!\r)(?=\n)|\Z)"


def _start(flags: Flags) -> str:
    return r"(?:^|(?<=\r)(?!\n))" if flags.m and flags.R else "(?:^)"


def _end(flags: Flags, *, returns: bool) -> str:
    if not flags.m:
        return _LINE_END
    if not flags.R:
        return "(?:$)"
    return r"(?:(?=[\r\n])|\Z)" if returns else r"(?:(?=\r)|(?<!\r)(?=\n)|\Z)"
