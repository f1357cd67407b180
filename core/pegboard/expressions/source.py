"""The text of an expression, read letter by letter, and what flags say how."""

import re
import sys

import msgspec

from pegboard.errors import InvalidInputError

_REST = re.compile(r"(?:\s+|#[^\n]*)*")
_CODE = re.compile(r"([xuU])(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]+))")
_DIGITS = {"x": 2, "u": 4, "U": 8}
_NAMED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_SURROGATES = range(0xD800, 0xE000)
_LETTERS = "ixmsuUR"


class Flags(msgspec.Struct, frozen=True):
    """What holds at a place: `(?i)` and the like. The names are those that expressions use."""

    i: bool = False
    m: bool = True
    s: bool = False
    u: bool = True
    x: bool = False
    U: bool = False
    R: bool = True


class Letter(msgspec.Struct, frozen=True):
    """A letter that stands for itself; `byte` says that it stands for a byte."""

    text: str
    byte: bool = False


class Source:
    """An expression and a place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, reason: str) -> InvalidInputError:
        """What is wrong at this place, to be raised."""
        return InvalidInputError(
            f"{self.text!r} is not a regular expression: {reason} (at {self.at})"
        )

    def peek(self, flags: Flags) -> str:
        """The next letter, empty at the end. With the flag `x`, blanks and comments are passed."""
        if flags.x:
            rest = _REST.match(self.text, self.at)
            assert rest is not None
            self.at = rest.end()
        return self.text[self.at : self.at + 1]

    def skip(self, text: str) -> bool:
        """Whether this comes next; then the place is behind it."""
        there = self.text.startswith(text, self.at)
        self.at += len(text) if there else 0
        return there

    def match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """What comes next, if it fits; then the place is behind it."""
        found = expression.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def escaped(self, flags: Flags) -> Letter | None:
        """The letter that an escape stands for, None for one of another meaning.

        The place is behind the backslash, and then behind the letter.
        """
        sign = self.text[self.at : self.at + 1]
        if sign in _DIGITS and sign:
            return self._code(flags)
        if sign in _NAMED:
            self.at += 1
            return Letter(_NAMED[sign])
        if sign.isascii() and sign and not sign.isalnum() and sign not in "<>":
            self.at += 1
            return Letter(sign)
        return None

    def _code(self, flags: Flags) -> Letter:
        found = _CODE.match(self.text, self.at)
        wanted = _DIGITS[self.text[self.at]]
        digits = (found[2] or found[3][:wanted]) if found else ""
        if not found or (found[3] and len(digits) < wanted) or len(digits) > max(_DIGITS.values()):
            raise self.fail("the number of a letter is missing")
        number = int(digits, 16)
        if number > sys.maxunicode or number in _SURROGATES:
            raise self.fail("there is no letter of that number")
        self.at = found.end() if found[2] else self.at + 1 + wanted
        byte = not flags.u and found[1] == "x" and bool(found[3]) and not chr(number).isascii()
        return Letter(chr(number), byte)


def changed(flags: Flags, said: str) -> Flags | None:
    """The flags after `i-u` or the like; None if there is none such, or if one is said twice."""
    on, minus, off = said.partition("-")
    letters = on + off
    if (minus and not off) or len({*letters}) < len(letters) or not {*letters} <= {*_LETTERS}:
        return None
    values = dict.fromkeys(on, True) | dict.fromkeys(off, False)
    return msgspec.structs.replace(flags, **values)
