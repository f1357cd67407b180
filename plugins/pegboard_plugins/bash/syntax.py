"""The syntax tree of a shell line: pieces, words, commands and statement blocks."""

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
    """An error for a line with unknown effects: a reason code, and the span of the unclear part."""

    def __init__(self, code: str, start: int = 0, end: int = 0) -> None:
        super().__init__(code)
        self.code = code
        self.start = start
        self.end = max(end, start + 1)


class Piece(NamedTuple):
    """A part of a word: plain text, a wildcard, an expansion or braces.

    `text` is the literal text, or the name of a variable. `how` is the operator of an expansion
    such as `${name%x}`. `body` are the statements of a substitution, `choices` the alternatives of
    braces. `raw` is the piece as written; it is empty for plain text.
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
        """The piece of a word as it is written in the shell line."""
        return self.raw or self.text


class Word:
    """A word of a command.

    `literal` is its text, or None if the word has a wildcard or an expansion. `shown` is the word
    for messages, with expansions as they are written.
    """

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
        """Return an unquoted word without expansions; its only piece is created at first access."""
        word = cls.__new__(cls)
        word.raw = word.shown = word.literal = text
        word.at, word.own_pieces = at, ()
        return word

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the word, in order: literal texts and expansions."""
        if not self.own_pieces and self.raw and self.literal:
            self.own_pieces = (Piece("text", self.raw),)
        return self.own_pieces

    @property
    def end(self) -> int:
        """The offset directly after the word in the parsed text."""
        return self.at + len(self.raw)

    @property
    def is_quoted(self) -> bool:
        """Whether the first piece of this word is quoted."""
        return bool(self.pieces) and self.pieces[0].quoted

    @property
    def splits(self) -> bool:
        """Whether the word has an unquoted expansion, whose value the shell may split."""
        pieces = self.own_pieces
        return any(each[0] in ("variable", "output") and not each.quoted for each in pieces)

    def behind(self, count: int) -> "Word":
        """Return the word without its first `count` characters."""
        pieces = []
        for piece in self.pieces:
            cut = min(count, len(piece.text)) if piece.kind == "text" else 0
            count -= cut
            pieces.append(piece._replace(text=piece.text[cut:]) if cut else piece)
        return Word(pieces, self.raw, self.at)


def text_word(text: str, near: Word | None = None) -> Word:
    """Return a quoted word with this text, at the position of `near`."""
    raw, at = ("", 0) if near is None else (near.raw, near.at)
    return Word((Piece("text", text, quoted=True),), raw, at)


class Assignment(NamedTuple):
    """An assignment to a variable; `how` is `=`, `+=`, `[=`, `[+=`, `array` or `for`."""

    name: str
    how: str
    word: Word


class Redirection(NamedTuple):
    """A redirection: operator, descriptor and target; a here-document's body is its target."""

    sign: str
    number: str
    word: Word


class CommandFeed(NamedTuple):
    """The input of a command: a file, a text, or the commands before the command in a pipe.

    `word` is the name of the file, or the text; it is None for a text that is not read yet. For the
    kind `words`, the input is each of the words into which the shell splits `word`.
    """

    kind: Literal["pipe", "text", "file", "words"]
    word: Word | None = None
    parts: "tuple[Statement, ...]" = ()


@dataclass(slots=True, eq=False)
class ShellCommand:
    """A command that would be started, with the commands that this command starts in turn.

    `placeholder` is the string in the words that a caller such as `xargs` replaces. If `is_fed`,
    the caller also appends words. `code` are the statements that a shell runs; if it `stays`, the
    current shell runs them. `writes` are the files that code in the words writes.
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
    """One simple command with its assignments and redirections.

    `kind` is empty for a program; otherwise it is `test`, `sum`, `case`, `for` or `redirection`.
    `fed` is the input, `outer` the input of the pipe or block around the command. `runs` is the
    judged command.
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
        """The command's words with expansions, including words of assignments and redirections."""
        if self.found is None:
            given = [each.word for each in self.assignments]
            every = given + self.words + [each.word for each in self.redirections]
            self.found = [word for word in every if word.literal is None]
        return self.found


@dataclass(slots=True, eq=False)
class StatementBlock:
    """Statements that a control structure groups.

    `list` runs them in order, `and` and `or` combine two, `pipe` connects several. `shell` is a
    subshell, `group` runs in the current shell. The shell may skip a `branch` and repeat a `loop`.
    """

    kind: Literal["list", "and", "or", "pipe", "shell", "group", "branch", "loop", "function"]
    parts: "list[Statement]"
    name: str = ""


Statement = Simple | StatementBlock


def joined(first: Word, second: Word) -> Word:
    """Return a word with the pieces of both words."""
    return Word([*first.pieces, *second.pieces], second.raw, second.at)


def has_caret_set(one: Simple) -> bool:
    """Return whether a wildcard of the command has a `[^`, which some shells read differently."""
    pieces = (piece for word in one.expanded for piece in word.pieces)
    return any(piece.kind == "glob" and piece.shown.startswith("[^") for piece in pieces)


def lone(parts: Sequence[Statement]) -> Simple | None:
    """Return the only command of the statements; None if there are more or it sets variables."""
    while len(parts) == 1 and isinstance(parts[0], StatementBlock) and parts[0].kind == "list":
        parts = parts[0].parts
    one = parts[0] if len(parts) == 1 else None
    return one if isinstance(one, Simple) and one.words and not one.assignments else None


@dataclass(slots=True)
class Reading:
    """A parsed text, with all commands in order, including the commands in substitutions.

    `functions` maps each function that the text defines to its commands. `sums` maps each name in
    an arithmetic expression to its offset.
    """

    body: StatementBlock
    simples: list[Simple]
    functions: dict[str, list[Simple]]
    sums: dict[str, int]


class Operand(NamedTuple):
    """One possible text of a command's word, with `ANYTHING` for each unknown part.

    If `bare`, the text begins outside of quotes, and a `~` at its start means a home directory.
    `word` is the word itself. Unless `wild`, wildcard characters in the text are literal.
    """

    text: str
    bare: bool = True
    word: Word | None = None
    wild: bool = True

    @property
    def dynamic(self) -> bool:
        """Whether this operand's text has an unknown part."""
        return ANYTHING in self.text

    @property
    def open(self) -> bool:
        """Whether the operand may become any text, because even the beginning is unknown."""
        if self.word is None or self.text.startswith(ANYTHING):
            return self.text.startswith(ANYTHING)
        begins = self.word.pieces[0].kind if self.word.pieces else ""
        return self.dynamic and (self.word.splits or begins in ("variable", "output"))

    @property
    def parts(self) -> bool:
        """Whether the operand is part of an unquoted variable or output that the shell splits."""
        word = self.word
        return word is not None and word.splits and all(p.kind != "glob" for p in word.pieces)

    @property
    def plain(self) -> str:
        """The operand's text with the unknown parts removed."""
        return self.text.translate(_NOTHING)


def is_any(text: str) -> bool:
    """Return whether a text has a fully unknown part, so that the text may name any file."""
    return ANYTHING in text and ANYTHING in text.replace(LISTED, "")
