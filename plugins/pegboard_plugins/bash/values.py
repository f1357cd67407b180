"""The possible values of words, from all texts that a shell line assigns to variables."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from pegboard_plugins.bash.listings import lists, pipes
from pegboard_plugins.bash.marks import (
    BACKSLASH,
    BLANK,
    as_string,
    closed,
    marked,
    opened,
    plain,
    unquoted,
)
from pegboard_plugins.bash.parameters import changed
from pegboard_plugins.bash.places import put_out
from pegboard_plugins.bash.programs import is_single
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    LISTED,
    NUMBER,
    CommandFeed,
    Piece,
    Simple,
    Statement,
    StatementBlock,
    Word,
    is_any,
    lone,
)
from pegboard_plugins.bash.tables import pattern, words

MOST_TEXTS = 64
LONGEST_TEXT = 1000
"""So many texts of a word are followed, of so many letters: some lines double them."""
MADE_UP = "/tmp/mktemp-new"  # noqa: S108 - a name, nothing is made there
"""The placeholder for a new temporary file, which no other program has written."""
ARGUMENTS = "@"
"""The name under which the values of `$1`, `$@` and the like are kept."""
NUMBERS = words("variables", "numbers", "names")
MAY_BE_OPTION = re.compile(rf"[-*?\[{ANYTHING}]")
"""How a word begins that may come to an option."""
_MAKES_TEMPORARY = re.compile(r"\$\(mktemp(\s+-[dqu]+)*\)")
_DEFAULT = re.compile(r":?([-=+?])(.*)", re.DOTALL)
_INSTEAD = re.compile(r":?[-=?]")
"""What is done with a variable that has no value, so that it has one."""
_SPLITS = re.compile(r"[\s,:;|]+")
_NAME = re.compile(r"\$(\w+)")
_LIST = re.compile(r"^\$\{?[@*]|\[[@*]\]")
_INDEX = re.compile(r"^\$\{\w+\[-?\d")
_SETS_ITSELF = re.compile(r"(BASH_\w+)|BASH|DIRSTACK|(HOST|MACH|OS)TYPE|HOSTNAME|PS4|SHELL|TERM")
"""Variables to which the shell gives text: any, or a name. TERM and SHELL only without a value."""
_COUNT = re.compile(r"[-+]?\d*")
_COUNTERS = pattern("programs", "counters")
_DEEPEST = 6
_STANDS = {"sum": NUMBER, "process": "/dev/fd/63", "braces": ANYTHING}
"""What stands for what a piece comes to."""
_MOST_ROUNDS = 3
"""So often values that hang on each other are looked up once more."""

Value = Word | CommandFeed | None
"""What a variable is given: a word, what is read, or what nobody knows."""


@dataclass(slots=True)
class Values:
    """The values that variables may have; variables that the line never sets are the shell's."""

    environment: Mapping[str, str]
    held: dict[str, list[Value]] = field(default_factory=dict)
    known: dict[Word | str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of words and of variables, as long as no variable is given another value."""
    active: dict[str, dict[str, None]] = field(default_factory=dict)
    """Those that are looked up, with the texts that one which is given its own value may have."""
    depth: int = 0
    circles: int = 0
    here: tuple[str, ...] = ()
    """The folders that the line may be in, as far as one has walked through it."""
    been: dict[str, None] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    """Those that a sum may set."""
    unsure: set[str] = field(default_factory=set)
    """Those that may have no value where they are used, although the line gives them one."""

    def add(self, name: str, value: Value, *, splits: bool = False) -> None:
        """Add a possible value of a variable; after too many, the value is unknown.

        If it `splits`, the shell splits the value into words, and the variable gets each of them.
        """
        self.known.clear()
        held = self.held.setdefault(name, [])
        if isinstance(value, Word) and not splits:
            value = as_string(value)
        elif isinstance(value, Word) and not is_single(value):
            value = CommandFeed("words", value)
        if len(held) <= MOST_TEXTS:
            held.append(value if len(held) < MOST_TEXTS else None)

    def doubt(self, names: Iterable[str]) -> None:
        """Record that the variables `names` may be unset where the line uses them."""
        more = {name for name in names if self.given(name) is not None} - self.unsure
        if more:
            self.unsure |= more
            self.known.clear()

    def feeds_any(self, feed: CommandFeed | None) -> bool:
        """Return whether a command's input may contain the name of any file."""
        return any(map(is_any, self.read(feed)))

    def given(self, name: str) -> list[Value] | None:
        """Return the values that the line assigns to the variable `name`; None if it has none."""
        return self.held.get(ARGUMENTS if (name.isdigit() and name != "0") or name == "*" else name)

    def texts(self, word: Word, *, number: str = "1") -> tuple[str, ...]:
        """Return the possible texts of a word; unknown parts of a text are `ANYTHING`.

        Unknown numbers are replaced by `number`.
        """
        if word.literal is not None:
            return (word.literal,)
        return tuple(dict.fromkeys(map(plain, self._numbered(word, number))))

    def _numbered(self, word: Word, number: str) -> tuple[str, ...]:
        texts = self._texts(word)
        if self.depth or self.active or not any(NUMBER in text for text in texts):
            return texts
        return tuple(text.replace(NUMBER, number) for text in texts)

    def _texts(self, word: Word) -> tuple[str, ...]:
        """Return the possible texts of a word as marked texts."""
        if word.literal is not None:
            return (marked(word.literal),)
        if self.depth > _DEEPEST:
            return (ANYTHING,)
        if self.depth or self.active:
            return self._put_together(word)
        if word not in self.known:
            self.known[word] = self._put_together(word)
        return self.known[word]

    def _put_together(self, word: Word) -> tuple[str, ...]:
        self.depth += 1
        parts = [self._of_piece(piece) for piece in word.pieces]
        self.depth -= 1
        joined = list(islice(product(*parts), MOST_TEXTS + 1))
        more = [ANYTHING] * (len(joined) > MOST_TEXTS)
        for piece, texts in zip(word.pieces, parts, strict=True):
            if len(parts) > 1 and _LIST.search(piece.raw):  # only the ends of a list are glued
                more += texts
        return tuple(dict.fromkeys(["".join(texts) for texts in joined[:MOST_TEXTS]] + [*more]))

    def words(self, words: Iterable[Word], *, number: str = "1") -> list[str]:
        """Return the possible texts of these words, split where bash splits words."""
        return list(map(plain, self.names(words, number=number)))

    def names(self, words: Iterable[Word], *, number: str = "1") -> list[str]:
        """Return the possible texts of these words as marked texts, split where bash splits."""
        found = []
        for word in words:
            for text in self._numbered(word, number):
                found += self.split(text) or [""] if word.splits else [text]
        return found

    def split(self, text: str) -> list[str]:
        """Split a marked text into words: at blanks, and at any character that `IFS` may have."""
        if "IFS" not in self.held:
            return text.split()
        return list(dict.fromkeys(each for each in (*_SPLITS.split(text), text) if each))

    def _of_piece(self, piece: Piece) -> tuple[str, ...]:
        if piece.kind not in ("variable", "output"):
            text = _STANDS.get(piece.kind, piece.text)
            return (marked(text) if piece.quoted else text,)
        is_variable = piece.kind == "variable"
        texts = self._of_variable(piece) if is_variable else self._of_output(piece)
        if piece.quoted:
            return texts
        return tuple(dict.fromkeys(each for text in texts for each in unquoted(text)))

    def _of_output(self, piece: Piece) -> tuple[str, ...]:
        """Return the possible outputs of a command substitution, as marked texts."""
        if _MAKES_TEMPORARY.fullmatch(piece.raw):
            return (MADE_UP,)
        if found := put_out(piece.body, self._folders(), self._spread):
            return found
        word = piped_text(piece.body)
        if word is not None and word.literal is not None:
            return (marked(plain(self._spread(word)[0]).rstrip("\n")), ANYTHING)
        if is_count(piece.body):
            return (NUMBER,)
        return (LISTED if lists(piece.body, self.texts) else ANYTHING,)

    def _folders(self) -> tuple[str, ...]:
        """Return the folders that may be, or may have been, current when a variable was set."""
        found = (*self.been,) if self.active else self.here
        return tuple(ANYTHING if each == "\0" else marked(os.path.normpath(each)) for each in found)

    def be_in(self, folders: tuple[str, ...]) -> None:
        """Set the folders that may be the current folder from now on."""
        if folders != self.here:
            self.here = folders
            self.been |= dict.fromkeys(folders)
            self.known.clear()

    def _of_variable(self, piece: Piece) -> tuple[str, ...]:
        how = piece.how
        if how in ("#n", "!") or (piece.text in NUMBERS and piece.text not in self.held):
            return (LISTED if how == "!" else NUMBER if piece.text != "!" else "",)
        texts = self._of_name(piece.text)
        if "IFS" in self.held and (piece.text == "*" or "[*]" in piece.raw):
            texts = (ANYTHING,)  # several values with a sign between them that the line sets
        if _INDEX.search(piece.raw):
            texts = (*texts, "")
        if not how or (how[0] == ":" and how[1:2] not in tuple("-=+?") and _LIST.search(piece.raw)):
            return texts  # of a list some, each as it is
        if found := _DEFAULT.fullmatch(how):
            other = self._filled(found[2])
            if found[1] == "+":
                return (*other, "")
            return texts if found[1] == "?" else (*filter(None, texts), *other)
        return tuple(dict.fromkeys(each for text in texts for each in changed(text, how)))

    def _of_name(self, name: str) -> tuple[str, ...]:
        if name in self.known:
            return self.known[name]
        given = self.given(name)
        if name in self.active:
            self.circles += 1
            return tuple(self.active[name]) or (marked(self.environment.get(name, "")),)
        if given is None:
            return self._of_shell(name)
        found = self.active[name] = dict.fromkeys(filter(None, self._of_shell(name)))
        for _ in range(_MOST_ROUNDS):
            circles, number = self.circles, len(found)
            for value in given[: MOST_TEXTS + 1]:
                for text in self._of_value(value):
                    found[text if len(text) <= LONGEST_TEXT else ANYTHING] = None
            if circles == self.circles or number == len(found):
                break
        del self.active[name]
        texts = tuple(found if name not in self.unsure else {**found, "": None}) or ("",)
        if len(texts) > MOST_TEXTS:
            texts = (*texts[:MOST_TEXTS], ANYTHING)
        if self.depth == 1 and not self.active:  # what is looked up for another may be cut short
            self.known[name] = texts
        return texts

    def _of_shell(self, name: str) -> tuple[str, ...]:
        """Return the possible texts of a variable that the shell or the environment sets."""
        if name in ("PWD", "OLDPWD"):
            return self._folders() if name == "PWD" else tuple(map(marked, self.been))
        own, given = _SETS_ITSELF.fullmatch(name), marked(self.environment.get(name, ""))
        if own is not None and not (given and name in ("SHELL", "TERM")):
            return (ANYTHING if own[1] else LISTED,)
        return (given, NUMBER) if name in self.counted else (given,)

    def _of_value(self, value: Value) -> Sequence[str]:
        if not isinstance(value, Word):
            return self.read(value)
        texts = self._spread(value)
        joined = BLANK.join(filter(None, texts))  # a list as one text, glued to others or not
        is_list = any(_LIST.search(piece.raw) for piece in value.pieces)
        return (*texts, joined, f"{BLANK}{joined}{BLANK}") if is_list else texts

    def _spread(self, word: Word) -> Sequence[str]:
        """Return the possible texts of an assigned word, in which `~` means a home directory."""
        if "~" in word.raw:
            word = Word([self._at_home(piece) for piece in word.pieces], "", word.at)
        return self._texts(word)

    def _at_home(self, piece: Piece) -> Piece:
        if piece.kind != "tilde":
            return piece
        home = self.environment.get("HOME", "~") if piece.text == "~" else ""
        home = home or os.path.expanduser(piece.text)  # noqa: PTH111 - as a shell
        return Piece("text", home, quoted=True)

    def read(self, feed: CommandFeed | None) -> list[str]:
        """Return the texts that a command may read from its input, as marked texts."""
        if feed is None or (feed.word is None and feed.kind != "pipe"):
            return [ANYTHING]
        if feed.kind == "pipe" or feed.word is None:
            return [LISTED if pipes(feed.parts, self.texts) else ANYTHING]
        if feed.kind == "file":
            body = feed.word.pieces[0].body if feed.word.pieces else ()
            return [LISTED if lists(body, self.texts) else ANYTHING]
        if feed.kind == "words":
            texts = self._spread(feed.word)
            parts = [part for text in texts for part in self.split(text) or [""]]
            return parts if feed.word.splits else [*texts, *parts]
        texts = list(map(opened, self._spread(as_string(feed.word))))
        return [  # without `-r` a backslash is gone, whatever stands behind it
            closed(part)
            for each in dict.fromkeys([*texts, *(text.replace(BACKSLASH, "") for text in texts)])
            for part in (*each.splitlines(), *each.split(), *self.split(each))
        ]

    def filled(self, piece: Piece) -> list[str]:
        """Return the variables in the default value of an expansion such as `${x:-$y}`."""
        found = _DEFAULT.fullmatch(piece.how)
        return _NAME.findall(found[2]) if found else []

    def used(self, words: Iterable[Word]) -> set[str]:
        """Return the names of the variables that the words use."""
        found = [piece for word in words for piece in word.pieces if piece.kind == "variable"]
        names = {piece.text for piece in found if _INSTEAD.match(piece.how) is None}
        return names.union(*map(self.filled, found))

    def _filled(self, text: str) -> tuple[str, ...]:
        """Return the possible texts of the default in `${x:-text}`."""
        parts = []
        for at, part in enumerate(_NAME.split(text)):
            parts.append(self._of_name(part) if at % 2 else (marked(part),))
        return tuple("".join(each) for each in islice(product(*parts), MOST_TEXTS))


def piped_text(parts: Sequence[Statement]) -> Word | None:
    """Return the text that a lone `echo TEXT`, or `cat` of a here-document, prints; else None."""
    one = lone(parts)
    if one is None:
        return None
    texts = [word.literal for word in one.words]
    if texts[0] == "echo" and not one.redirections and len(texts) == len(("echo", "x")):
        text = texts[1]
        is_plain = text is not None and "\\" not in text and not text.startswith("-")
        return one.words[1] if is_plain else None
    if texts == ["cat"] and [each.sign for each in one.redirections] == ["<<"]:
        return one.redirections[0].word
    return None


def counts(name: str, values: Values) -> bool:
    """Return whether all possible values of the variable `name` are numbers."""
    texts = values.texts(Word((Piece("variable", name),)))
    return all(map(_COUNT.fullmatch, (*texts, values.environment.get(name, ""))))


def is_count(body: Sequence[Statement]) -> bool:
    """Return whether a substitution prints only a number, as `$(ls | wc -l)` does."""
    last: Statement | None = body[0] if body else None
    while isinstance(last, StatementBlock) and (last.kind == "pipe" or len(last.parts) == 1):
        last = last.parts[-1]
    if not isinstance(last, Simple):
        return False
    text = "\n".join(word.shown for word in last.words)
    is_certain = text.startswith("stat") or all(word.literal is not None for word in last.words)
    is_one_each = all(map(is_single, last.words))
    return is_certain and is_one_each and _COUNTERS.fullmatch(text) is not None
