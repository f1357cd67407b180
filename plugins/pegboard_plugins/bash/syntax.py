"""The syntax tree of a line: pieces, words, commands, and their structure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["text", "tilde", "glob", "variable", "sum", "output", "process", "braces"]

ANYTHING = "\ue000"
"""The placeholder in a text for an unknown part."""
LISTED = f"{ANYTHING}\ue001"
"""The placeholder in a text for the unknown name of an existing file, or an unknown number."""
NUMBER = "\ue002"
"""The placeholder in a text for a number, until it is known."""
_NOTHING = dict.fromkeys(map(ord, LISTED))
_PLAIN = ("text", "tilde")


class Unclear(Exception):  # noqa: N818 - a state of a line, not a failure
    """The line is unclear: a code for the reason, and the part of the line."""

    def __init__(self, code: str, start: int = 0, end: int = 0) -> None:
        super().__init__(code)
        self.code = code
        self.start = start
        self.end = max(end, start + 1)


class Piece(NamedTuple):
    """A part of a word.

    `text` is what a text comes to, and the name of a variable; `how` is what is done with its
    value. `body` are the statements of a substitution, `choices` the words of braces. `raw` is
    what stands in the line, for all but texts.
    """

    kind: Kind
    text: str
    quoted: bool = False
    raw: str = ""
    how: str = ""
    body: "tuple[Statement, ...]" = ()
    choices: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The text for people."""
        return self.raw or self.text


class Word:
    """A word: `literal` is its text, None where only the shell knows it; `shown` is for people."""

    __slots__ = ("at", "literal", "own_pieces", "raw", "shown")

    def __init__(self, pieces: Sequence[Piece], raw: str = "", at: int = 0) -> None:
        self.own_pieces = tuple(pieces)
        self.raw = raw
        self.at = at
        if len(pieces) == 1:
            kind, text, _, shown, *_ = pieces[0]
            self.shown = shown or text
            self.literal = self.shown if kind in _PLAIN else None
            return
        self.shown = "".join([piece[3] or piece[1] for piece in pieces])
        is_plain = all(piece[0] in _PLAIN for piece in pieces)
        self.literal = self.shown if is_plain else None

    @classmethod
    def plain(cls, text: str, at: int) -> "Word":
        """Return a word of plain letters; its piece is made at first access."""
        word = cls.__new__(cls)
        word.raw = word.shown = word.literal = text
        word.at, word.own_pieces = at, ()
        return word

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the word."""
        if not self.own_pieces and self.raw and self.literal:
            self.own_pieces = (Piece("text", self.raw),)
        return self.own_pieces

    @property
    def end(self) -> int:
        """The end of the word in its text."""
        return self.at + len(self.raw)

    @property
    def is_quoted(self) -> bool:
        """Whether the word begins in quotes, and so stays one word with any value."""
        return bool(self.pieces) and self.pieces[0].quoted

    @property
    def splits(self) -> bool:
        """Whether the value is split into words."""
        pieces = self.own_pieces
        return any(each[0] in ("variable", "output") and not each.quoted for each in pieces)

    def behind(self, count: int) -> "Word":
        """Return the word without its first `count` letters."""
        pieces = []
        for piece in self.pieces:
            cut = min(count, len(piece.text)) if piece.kind == "text" else 0
            count -= cut
            pieces.append(piece._replace(text=piece.text[cut:]) if cut else piece)
        return Word(pieces, self.raw, self.at)


def text_word(text: str, near: Word | None = None) -> Word:
    """Return a word with this text, at the place of `near`."""
    raw, at = ("", 0) if near is None else (near.raw, near.at)
    return Word((Piece("text", text, quoted=True),), raw, at)


class Assignment(NamedTuple):
    """The value given to a variable; `how` is `=`, `+=`, `[=`, `[+=`, `array` or `for`."""

    name: str
    how: str
    word: Word


class Redirection(NamedTuple):
    """The file that a command reads or writes; of a here-document the word is the body."""

    sign: str
    number: str
    word: Word


class CommandFeed(NamedTuple):
    """The input of a command: the `word` of a file or a text, or the earlier parts of a pipe.

    A text that is not read yet has no word. Of `words` it gets one after the other what the word
    comes to when it is split.
    """

    kind: Literal["pipe", "text", "file", "words"]
    word: Word | None = None
    parts: "tuple[Statement, ...]" = ()


@dataclass(slots=True, eq=False)
class ShellCommand:
    """A command that would be started, with the commands that it starts in turn.

    `placeholder` stands in the words for what it is given, `code` is what a shell is told.
    Words of which a caller knows no end are `fed`: its input gives it more of them. `writes` are
    the files that the code in its words writes.
    """

    words: list[Word]
    base: str
    inner: "tuple[ShellCommand, ...]" = ()
    code: "tuple[Statement, ...]" = ()
    folder: Word | None = None
    placeholder: str = ""
    is_fed: bool = False
    stays: bool = False
    writes: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Simple:
    """One command with its assignments and redirections.

    `kind` is told of what is no program: the words of a `test`, `sum` or `case`, a `for` with what
    its variable gets. `outer` is what stands before a pipe around it, `runs` what it comes to.
    """

    at: int
    kind: str = ""
    assignments: tuple[Assignment, ...] = ()
    words: list[Word] = field(default_factory=list)
    redirections: tuple[Redirection, ...] = ()
    fed: CommandFeed | None = None
    outer: CommandFeed | None = None
    runs: ShellCommand | None = None
    found: Sequence[Word] | None = None

    @property
    def expanded(self) -> Sequence[Word]:
        """The command's words with expansions, those in assignments and redirections included."""
        if self.found is None:
            given = [each.word for each in self.assignments]
            every = given + self.words + [each.word for each in self.redirections]
            self.found = [word for word in every if word.literal is None]
        return self.found


@dataclass(slots=True, eq=False)
class StatementBlock:
    """Statements that hang together.

    `list` one after the other, `and` and `or` of two, `pipe` of several, `shell` in a shell of its
    own, `group` in this one, `branch` of which some may not run, `loop` which run again.
    """

    kind: Literal["list", "and", "or", "pipe", "shell", "group", "branch", "loop", "function"]
    parts: "list[Statement]"
    name: str = ""


Statement = Simple | StatementBlock


def joined(first: Word, second: Word) -> Word:
    """Join two words."""
    return Word([*first.pieces, *second.pieces], second.raw, second.at)


def has_caret_set(one: Simple) -> bool:
    """Return whether a wildcard of the command has a `[^`, which some shells read differently."""
    pieces = (piece for word in one.expanded for piece in word.pieces)
    return any(piece.kind == "glob" and piece.shown.startswith("[^") for piece in pieces)


def lone(parts: Sequence[Statement]) -> Simple | None:
    """Return the only command of these statements, unless it sets a variable."""
    while len(parts) == 1 and isinstance(parts[0], StatementBlock) and parts[0].kind == "list":
        parts = parts[0].parts
    one = parts[0] if len(parts) == 1 else None
    return one if isinstance(one, Simple) and one.words and not one.assignments else None


@dataclass(slots=True)
class Reading:
    """A parsed text: its commands in order, those in substitutions included.

    `functions` are the commands in each that it defines. `sums` are the names that are calculated
    with, each with its place.
    """

    body: StatementBlock
    simples: list[Simple]
    functions: dict[str, list[Simple]]
    sums: dict[str, int]


class Operand(NamedTuple):
    """One possible text of a command's word, with `ANYTHING` for unknown parts.

    `bare`: it begins outside of quotes, so that a `~` there means a home. `word` is what was read.
    Signs of wildcards in a text that is not `wild` stand for themselves.
    """

    text: str
    bare: bool = True
    word: Word | None = None
    wild: bool = True

    @property
    def dynamic(self) -> bool:
        """Whether only the shell knows the final text."""
        return ANYTHING in self.text

    @property
    def open(self) -> bool:
        """Whether the text may become anything, without even a known beginning."""
        if self.word is None or self.text.startswith(ANYTHING):
            return self.text.startswith(ANYTHING)
        begins = self.word.pieces[0].kind if self.word.pieces else ""
        return self.dynamic and (self.word.splits or begins in ("variable", "output"))

    @property
    def parts(self) -> bool:
        """Whether blanks split the names that the text matches."""
        word = self.word
        return word is not None and word.splits and all(p.kind != "glob" for p in word.pieces)

    @property
    def plain(self) -> str:
        """The text, if no part of it is unknown."""
        return self.text.translate(_NOTHING)


def is_any(text: str) -> bool:
    """Return whether a file with this name may be any file, even a secret one."""
    return ANYTHING in text and ANYTHING in text.replace(LISTED, "")
