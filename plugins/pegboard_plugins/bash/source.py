"""The text that the shell parser reads, with a position, and checks for misleading characters."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from pegboard_plugins.bash.syntax import Simple, StatementBlock, Unclear, Word

DEEPEST = 12
"""So many levels of substitutions, here-documents and code in each other are read."""
LONGEST = 128 << 10
"""Letters: no shell can be given more in one argument."""
RESERVED = frozenset(
    {
        *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case"),
        *("esac", "in", "{", "}", "!", "[[", "]]", "time", "coproc", "function", "select"),
    }
)
DEVICE = re.compile(r"/[./]*(dev(?!/null$)|proc)/|.*\.\./(.*/)?(dev|proc)/|(.*/)?(stdin|\d+)$")
"""How a file is named that may be what is typed or fed, or a program of another process."""
_KEYWORD = re.compile(r"[a-z]+|\{|\}|!|\[\[|\]\]")
SKIPPED = frozenset(" \t\n#\\")
"""What begins what may stand between words."""
_OPENS_COMMENT = " \t\n;&|()"
_READ_OTHERWISE = re.compile(r"[()'\"`\\]")
"""Of a comment in a substitution a bash before 5.2 reads these."""

_SUM = re.compile(
    r"(?:[A-Za-z0-9_ \t+*/%<>=!&|^~?:,-]|\$[A-Za-z_]\w*|\$\{#?[A-Za-z_]\w*(?:\[@\])?\}|\$[#?1-9])*",
    re.ASCII,
)
_COUNTED = re.compile(r"\$\{#\w+(\[@\])?\}")
_IN_SUM = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_DIGITS = re.compile(r"-?\d*")
_KEEPS_NUMBER = re.compile(r"|:?[-=+]\d*|:\s?-?\d+(:-?\d+)?|(##?|%%?|//?)[#%]?[\d.*?/]*")
"""What is done with a number that leaves one."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ue000\ue001]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DRAWN = r"[\u2190-\u2bff\U0001f000-\U0001faff]"
_INVISIBLE = re.compile(
    rf"(?:(?<={_DRAWN})[\ufe0e\ufe0f]\u200d?|(?<={_DRAWN})\u200d(?={_DRAWN})|(?<=[0-9#*])\ufe0f\u20e3)"
    r"|([\u00a0\u00ad\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200d\u2028\u2029"
    r"\u202f\u205f-\u2064\u206a-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff])"
)
"""Odd blanks and invisible characters, except those that belong to an emoji before them."""
QUOTABLE = "\u00a0\u200d\u3000"
"""Of these what texts are written with: outside of quotes no word takes it."""
_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKES = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")

ReadList = Callable[["ShellSource", tuple[str, ...], str], StatementBlock]


class ShellSource:
    """A text to parse, with the parser's position and what was parsed so far.

    `simples` are the commands, `functions` the defined functions, `sums` the names in arithmetic.
    `inner` counts the substitutions around the text. `pending` are the here-documents with a body
    that begins at the next line.
    """

    def __init__(self, text: str, read_list: ReadList, *, depth: int = 0, inner: int = 0) -> None:
        if depth + inner > DEEPEST or len(text) > LONGEST:
            raise Unclear("nested-too-deep" if len(text) <= LONGEST else "too-long")
        if found := suspicion(text):
            raise Unclear(*found)
        self.text = text
        self.at = 0
        self.end = len(text)
        self.read_list = read_list
        self.depth = depth
        self.inner = inner
        self.simples: list[Simple] = []
        self.functions: dict[str, list[Simple]] = {}
        self.sums: dict[str, int] = {}
        self.pending: list[Callable[[], None]] = []

    def no(self, code: str, start: int | None = None) -> NoReturn:
        """Raise `Unclear` with the code, for the text from `start` to the next character."""
        raise Unclear(code, self.at if start is None else start, self.at + 1)

    @property
    def letter(self) -> str:
        """The next character of the text; "" at the end of the text."""
        return self.text[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        """Return whether `text` comes next in the source."""
        return self.text.startswith(text, self.at)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip a match of `pattern` at this position; return the match, or None without one."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def skip(self, *, lines: bool = False) -> None:
        """Skip blanks, comments and line continuations; with `lines`, also newlines."""
        text, at = self.text, self.at
        while at < self.end:
            letter = text[at]
            if letter not in SKIPPED:
                break
            self.at = at
            if letter == "\n" and lines:
                self._end_line()
            elif letter == "#" and (at == 0 or text[at - 1] in _OPENS_COMMENT):
                self._comment()
            elif letter == "\\" and text.startswith("\\\n", at):
                self._join()
            elif letter not in " \t":
                break
            else:
                self.at += 1
            at = self.at
        self.at = at

    def keyword(self) -> str:
        """Return the word at this position if the word may be a reserved word, else ""."""
        found = _KEYWORD.match(self.text, self.at)
        if found is None:
            return ""
        end = found.end()
        return found[0] if end >= self.end or self.text[end] in " \t\n;&|<>()" else ""

    def expect(self, word: str) -> None:
        """Skip blanks and the reserved word `word`; reject the text if another word follows."""
        self.skip(lines=True)
        if self.keyword() != word:
            self.no("syntax")
        self.at += len(word)

    def refuse_lines(self, start: int) -> None:
        """Reject a newline after `start` if a here-document's body must begin there."""
        if self.pending and "\n" in self.text[start : self.at]:
            self.no("here-document", start)

    def _comment(self) -> None:
        end = self.text.find("\n", self.at)
        end = self.end if end < 0 else end
        if self.inner and _READ_OTHERWISE.search(self.text, self.at, end):
            self.no("comment-in-substitution")
        self.at = end

    def _join(self) -> None:
        if self.at and self.text[self.at - 1] not in " \t\n":
            self.no("line-continuation")
        self.at += len("\\\n")
        if self.letter and self.letter in "#\n()":
            self.no("line-continuation")

    def _end_line(self) -> None:
        self.at += 1
        pending, self.pending = self.pending, []
        for read_body in pending:
            read_body()

    def adopt(self, other: "ShellSource") -> None:
        """Add the commands, functions and names of the nested text `other` to this text's."""
        self.simples += other.simples
        self.functions |= other.functions
        self.sums |= dict.fromkeys(other.sums, self.at)


@contextmanager
def placed(start: int, end: int) -> Iterator[None]:
    """Report an error in a nested text at the span of that text in the outer text."""
    try:
        yield
    except Unclear as error:
        raise Unclear(error.code, start, end) from None


def read_sum(source: ShellSource, closer: str, separator: str = "") -> str:
    """Read an arithmetic expression with balanced parentheses up to `closer`; return the text."""
    start, level = source.at, 0
    while True:
        source.take(_SUM)
        if level == 0 and source.sees(closer):
            break
        if not source.letter or source.letter not in f"(){separator}":
            source.no("calculation")
        level += {"(": 1, ")": -1}.get(source.letter, 0)
        if level < 0:
            source.no("calculation")
        source.at += 1
    text = source.text[start : source.at]
    source.at += len(closer)
    note_names(source, text, start)
    return text


def note_names(source: ShellSource, text: str, start: int) -> None:
    """Record the variables in an arithmetic expression."""
    for name in _IN_SUM.findall(_COUNTED.sub("0", text)):
        source.sums.setdefault(name, start)
    for number in re.findall(r"\$([1-9])", text):
        source.sums.setdefault(number, start)


def calculates(source: ShellSource, word: Word) -> None:
    """Record variables in an operand of a numeric comparison; reject unknown expressions."""
    for piece in word.pieces:
        is_name = piece.kind == "text" and len(word.pieces) == 1 and _IN_SUM.fullmatch(piece.text)
        if is_name or (piece.kind == "variable" and _KEEPS_NUMBER.fullmatch(piece.how)):
            source.sums.setdefault(piece.text, word.at)
            continue
        is_number = piece.kind == "sum" or piece.how == "#n"
        if not is_number and not (piece.kind == "text" and _DIGITS.fullmatch(piece.text)):
            source.no("calculation", word.at)


def suspicion(text: str) -> tuple[str, int, int] | None:
    """Return the reason code and span of a control, invisible or look-alike character, or None."""
    if text.isascii() and text.isprintable():
        return None
    found = {"control-char": _CONTROL.search(text)}
    if not text.isascii():
        unseen = (each for each in _INVISIBLE.finditer(text) if each[1] and each[1] not in QUOTABLE)
        mixed = (each for each in _WORD.finditer(text) if _is_mixed(each[0]))
        found["unicode-bidi"] = _BIDI.search(text)
        found["unicode-invisible"] = next(unseen, None)
        found["unicode-confusable"] = next(mixed, None)
    return next(((code, *place.span()) for code, place in found.items() if place), None)


def _is_mixed(word: str) -> bool:
    """Return whether a word mixes Latin letters with look-alikes of another alphabet."""
    if word.isascii() or not any(letter.isascii() for letter in word):
        return False
    return any(unicodedata.name(letter, "").startswith(_LOOKALIKES) for letter in word)
