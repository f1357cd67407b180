"""A text that is read from left to right: each letter is taken by a rule, or nothing is known."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from pegboard_plugins.bash.letters import suspicion
from pegboard_plugins.bash.syntax import Block, Simple, Unclear

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
_KEYWORD = re.compile(r"[a-z]+|\{|\}|!|\[\[|\]\]")
_OPENS_COMMENT = " \t\n;&|()"
_READ_OTHERWISE = re.compile(r"[()'\"`\\]")
"""Of a comment in a substitution a bash before 5.2 reads these."""

ReadList = Callable[["Source", tuple[str, ...], str], Block]


class Source:
    """A text with the place of its reader; `simples`, `functions` and `sums` are what was found.

    `inner` counts the substitutions around what is read. `pending` are the here-documents whose
    bodies begin at the next line.
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
        """The end of the reading: no rule takes what stands here."""
        raise Unclear(code, self.at if start is None else start, self.at + 1)

    @property
    def letter(self) -> str:
        """The next letter, empty at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        """Whether this stands next."""
        return self.text.startswith(text, self.at)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go on behind what fits here, if anything does."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def skip(self, *, lines: bool = False) -> None:
        """Go on behind blanks, comments and joined lines; with `lines` behind their ends too."""
        text = self.text
        while self.at < self.end:
            letter = text[self.at]
            if letter in " \t":
                self.at += 1
            elif letter == "\n" and lines:
                self._end_line()
            elif letter == "#" and (self.at == 0 or text[self.at - 1] in _OPENS_COMMENT):
                self._comment()
            elif letter == "\\" and text.startswith("\\\n", self.at):
                self._join()
            else:
                return

    def keyword(self) -> str:
        """The unquoted word that begins here, if it is one that may be reserved."""
        found = _KEYWORD.match(self.text, self.at)
        if found is None:
            return ""
        end = found.end()
        return found[0] if end >= self.end or self.text[end] in " \t\n;&|<>()" else ""

    def expect(self, word: str) -> None:
        """Go on behind the reserved word, which must be next."""
        self.skip(lines=True)
        if self.keyword() != word:
            self.no("syntax")
        self.at += len(word)

    def refuse_lines(self, start: int) -> None:
        """No text with a line's end in it, where a here-document has not begun."""
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

    def adopt(self, other: "Source") -> None:
        """Take what was found in a text that stands in this one."""
        self.simples += other.simples
        self.functions |= other.functions
        self.sums |= dict.fromkeys(other.sums, self.at)


@contextmanager
def placed(start: int, end: int) -> Iterator[None]:
    """What is unclear in a text inside of another one is so at that place of the other."""
    try:
        yield
    except Unclear as error:
        raise Unclear(error.code, start, end) from None
