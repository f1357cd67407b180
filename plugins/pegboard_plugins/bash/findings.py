"""What a scan has found so far, and the words of its doubts."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice, product
from typing import NamedTuple

from pegboard_plugins.bash.origins import ARGUMENTS, Origin, Values, names_secret, origin_of
from pegboard_plugins.bash.words import Word

MOST_FOLDERS = 16
MOST_VALUES = 32
LONGEST_VALUE = 1000
"""So many values of a variable are followed, of so many letters: some lines double them."""
MOST_WORDS = 500
"""So many words may be meant by one with braces: each pair of them can double their number."""
MOST_CALLS = 64
DEEPEST_CALLS = 8
"""So many calls of functions that the line defines are followed, and so many in each other."""
ANYWHERE = "\0"
"""Stands among the folders of a line for one of which nobody knows which it is."""
MADE_UP = "/tmp/mktemp/new"  # noqa: S108 - a name, nothing is made there
"""Stands for a new temporary file, which nobody else has anything in."""
_VARIABLE = re.compile(r"\$(?:\{(\w++)(##?|%%?)?([^{}]*)\}|(\w+))")
_DEFAULT = re.compile(r"\$\{\w+(?::?[-=]([^{}$`]*)|:?\+[^{}$`]*)\}")
_BRACES = re.compile(r"\{(?:([^{},]*,[^{}]*)|([A-Za-z])\.\.([A-Za-z])(?:\.\.-?\d+)?)\}")
_GLOB = re.compile(r"[*?\[]")
_DEVICE = re.compile(r"/dev/(null|zero|random|urandom|full|tty|stdin|stdout|stderr|fd/\d+)")

_NEVER_KNOWN = frozenset(
    {
        *("control-char", "unicode-bidi", "unicode-invisible", "unicode-confusable"),
        *("too-long", "nested-too-deep", "parse-error"),
    }
)
"""Doubts about the whole line: it is not what it looks like, or nobody can read it."""


class Feed(NamedTuple):
    """What a command reads: what is sure about it, and whether the line tells where it is from.

    `text`: the part of the line that puts it out.
    """

    origin: Origin
    is_told: bool = False
    is_file: bool = False
    text: str = ""


@dataclass(slots=True)
class Findings:
    """The state of a walk through a command line; `cwd` are the folders that it may be in.

    `lands` are the paths where files, folders or links may come to be, `handed` those that are
    named to programs which may write them; `linked` get a second name. `globs` are the paths
    that have wildcards. `fed`: what is visited reads this from a pipe or from the line itself.
    `branches`: it may be skipped, so that a change of directory may happen or not. In `strays` it
    is if a change of directory in the statement has failed, where it is not `strict` (`set -e`).
    `hazards` are the commands that destroy what they do not name, each with the reason.
    `overlays` are folders whose whole content would be written over, `parents` variables that hold
    the number of the process that runs the line. `made` are the folders that the line itself makes,
    `functions` what those do that it defines, `arguments` what the one is given that is visited.
    `calls` and `nested` count what was judged of functions, and of commands inside of others.
    For the `placeholder` in the code of a shell its caller puts what it is fed. Of what is unclear,
    nobody can say at all what is `unknown`.
    """

    home: str
    cwd: tuple[str, ...]
    commands: dict[tuple[str, ...], None] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)
    destroys: dict[str, None] = field(default_factory=dict)
    lands: dict[str, None] = field(default_factory=dict)
    handed: dict[str, None] = field(default_factory=dict)
    linked: dict[str, None] = field(default_factory=dict)
    globs: dict[str, None] = field(default_factory=dict)
    hazards: dict[str, str] = field(default_factory=dict)
    overlays: dict[str, None] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    unknown: dict[str, None] = field(default_factory=dict)
    functions: dict[str, Callable[[], None]] = field(default_factory=dict)
    calls: int = 0
    nested: int = 0
    active: list[tuple[str, ...]] = field(default_factory=list)
    arguments: Sequence[Word] | None = None
    made: dict[str, None] = field(default_factory=dict)
    unclear: dict[str, None] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    descriptors: set[str] = field(default_factory=set)
    fed: Feed | None = None
    branches: int = 0
    strays: tuple[str, ...] = ()
    strict: bool = False
    placeholder: str = ""
    calculates: bool = False
    untold: Origin = Origin.KNOWN
    """How little is sure about what variables got, which is run where it is calculated with."""

    def doubt(self, reason: str, *, unknown: bool = False) -> None:
        """Keep every rule about a part of the line from allowing the whole.

        `unknown`: nobody can say what would run, be read or be written, not only what it does.
        """
        self.unclear[reason] = None
        if unknown or reason in _NEVER_KNOWN:
            self.unknown[reason] = None

    def run(self, argv: tuple[str, ...]) -> None:
        """A command that would run, with quotes taken away."""
        self.commands[argv] = None

    def assign(self, name: str, values: frozenset[str] | Origin) -> None:
        """What a variable holds from here on."""
        if isinstance(values, frozenset) and not _are_few(values):
            values = Origin.UNKNOWN
        if isinstance(values, Origin):
            self.untold = max(self.untold, values)
        elif any(re.search(r"[\[`$]", value) for value in values):
            is_code = any(re.search(r"[`$]", value) for value in values)
            self.untold = max(self.untold, Origin.UNKNOWN if is_code else Origin.LISTING)
        self.values[name] = values

    def join(self, before: Values) -> None:
        """Take into account that what was assigned since may not have been."""
        for name, values in self.values.items():
            held = before.get(name)
            if isinstance(values, frozenset) and isinstance(held, frozenset):
                self.values[name] = values | held
            elif isinstance(values, Origin) and not isinstance(held, frozenset):
                self.values[name] = max(values, held or values)
            else:
                self.values[name] = Origin.UNKNOWN

    def origin(self, word: Word) -> Origin:
        """What is sure about a word that only the shell will know."""
        return origin_of(word, self.values)

    def certainty(self, word: Word) -> Origin:
        """What is sure about a word as the name of a file."""
        return Origin.UNKNOWN if self.is_unknown(word) else self.origin(word)

    def is_unknown(self, word: Word) -> bool:
        """Whether a file that is named so may be any, one of secrets among them."""
        if not word.text or self.known(word) is not None:
            return False  # what stands for the words that a feeder adds is the feeder's
        if self.origin(word) is Origin.UNKNOWN:
            return True
        names = {first or second for first, _, _, second in _VARIABLE.findall(word.text)}
        held = [(name, self.values.get(name)) for name in names]
        texts = [
            _with(word.text, name, value)
            for name, values in held
            for value in (values if isinstance(values, frozenset) else ())
        ]
        texts.append(_DEFAULT.sub(lambda found: found[1] or "", word.text))
        return any(map(names_secret, [word.text, *texts]))

    def call(self, name: str, words: Sequence[Word]) -> None:
        """What a function of the line does with these words, in the state of then."""
        call = (name, *(word.text for word in words))
        if call in self.active:
            return  # one that calls itself does the same again
        self.calls += 1
        if self.calls > MOST_CALLS or len(self.active) > DEEPEST_CALLS:
            self.doubt("nested-too-deep")
            return
        held = self.values.get(ARGUMENTS, Origin.LISTING), self.arguments
        self.values[ARGUMENTS] = max(map(self.certainty, words), default=Origin.LISTING)
        self.arguments = words
        self.active.append(call)
        self.functions[name]()
        self.active.pop()
        self.values[ARGUMENTS], self.arguments = held

    def move(self, folders: Iterable[str]) -> None:
        """The line goes on in one of these folders."""
        former, reached = self.cwd, tuple(folders)
        if not self.branches and not self.strict and not all(map(self._is_there, reached)):
            self.strays += former
        self._be_in([*(former if self.branches else ()), *reached])

    def stray_anywhere(self) -> None:
        """The line goes on in a folder that nobody knows, or where it was."""
        self._be_in([*self.cwd, ANYWHERE])

    def settle(self) -> None:
        """The statement is over: the next one may run where a failed `cd` has left the line."""
        if self.strays:
            self._be_in([*self.cwd, *self.strays])
            self.strays = ()

    def _is_there(self, folder: str) -> bool:
        """Whether a `cd` to the folder will do, as far as one can know before."""
        path = os.path.normpath(folder)
        is_made = any(_is_within(made, path) for made in (*self.made, *self.lands, MADE_UP))
        return is_made or (os.path.isdir(path) and folder not in self.destroys)  # noqa: PTH112

    def _be_in(self, folders: Iterable[str]) -> None:
        self.cwd = tuple(dict.fromkeys(folders))
        if len(self.cwd) > MOST_FOLDERS:
            self.doubt("dynamic-cwd")
            self.cwd = self.cwd[:MOST_FOLDERS]
        self.values["PWD"] = Origin.UNKNOWN if ANYWHERE in self.cwd else frozenset(self.cwd)

    def known(self, word: Word) -> tuple[Word, ...] | None:
        """What a word may be at last, None when only the shell will know."""
        if not word.dynamic:
            words = tuple(islice(_braced(word), MOST_WORDS + 1))
            if len(words) > MOST_WORDS:
                self.doubt("nested-too-deep")
            return words
        if word.computed:
            return None
        names = [first or second for first, _, _, second in _VARIABLE.findall(word.text)]
        held = [self.values.get(name) for name in names]
        sets = [sorted(values) for values in held if isinstance(values, frozenset)]
        if not names or len(sets) < len(names):
            return None
        texts = (_filled(word.text, chosen) for chosen in islice(product(*sets), MOST_VALUES))
        if word.splits:
            return tuple(Word(piece, bare=word.bare) for text in texts for piece in text.split())
        return tuple(Word(text, bare=word.bare) for text in texts)

    def settled(self, word: Word) -> tuple[Word, ...]:
        """The words that a word becomes when its variables have one value each, else itself."""
        names = [first or second for first, _, _, second in _VARIABLE.findall(word.text)]
        held = [self.values.get(name) for name in names]
        single = all(isinstance(values, frozenset) and len(values) == 1 for values in held)
        known = self.known(word) if word.dynamic and single else None
        return (word,) if known is None else known

    def places(self, word: Word) -> Iterator[str]:
        """The word as a path from each folder; `..` stays behind what may be a symlink."""
        text = self.without_tilde(word)
        for folder in self.cwd:
            if folder == ANYWHERE and not text.startswith("/"):
                continue
            path = os.path.join(folder, text)  # noqa: PTH118 - `..` must stay behind a symlink
            if not _DEVICE.fullmatch(path):
                yield path

    def touch(self, word: Word, *, write: bool = False) -> None:
        """A path that would be read or written; of a glob the part before its first sign."""
        for path in self.places(word):
            fixed = before_glob(path)
            if fixed != path:
                self.globs[path] = None
            if not _is_made_up(path):
                self.paths[fixed] = None
            if write:
                self.writes[fixed] = None
                if path.startswith("/dev/"):
                    self.destroys[path] = None

    def destroy(self, word: Word) -> None:
        """A path, perhaps a glob, that would be gone with all that is in it."""
        self.destroys.update(dict.fromkeys(self.places(word)))
        if self.is_lost(word):
            self.destroys[""] = None

    def is_lost(self, word: Word) -> bool:
        """Whether a path is one from a folder that nobody knows."""
        return ANYWHERE in self.cwd and not self.without_tilde(word).startswith("/")

    def without_tilde(self, word: Word) -> str:
        """The word's text with the home that a `~` at its start stands for."""
        if not (word.bare and word.text.startswith("~")):
            return word.text
        user, slash, rest = word.text[1:].partition("/")
        if user == "+":
            return "." + slash + rest
        home = os.path.expanduser(f"~{user}") if user else self.home  # noqa: PTH111 - as a shell
        return home + slash + rest


def _are_few(values: frozenset[str]) -> bool:
    return len(values) <= MOST_VALUES and all(len(value) <= LONGEST_VALUE for value in values)


def _is_within(path: str, folder: str) -> bool:
    """Whether a path is the folder or in it."""
    return f"{os.path.normpath(path)}/".startswith(f"{folder}/")


def _is_made_up(path: str) -> bool:
    """Whether it is a new temporary file or in a new folder, which nobody has to be asked about."""
    return _is_within(path, MADE_UP) and ".." not in path


def before_glob(path: str) -> str:
    """The folder before the first wildcard, the path itself when it has none."""
    found = _GLOB.search(path)
    return path if found is None else path[: found.start()].rpartition("/")[0] or "/"


def _filled(text: str, chosen: Iterable[str]) -> str:
    values = iter(chosen)
    return _VARIABLE.sub(lambda found: _trimmed(next(values), found[2], found[3]), text)


def _with(text: str, name: str, value: str) -> str:
    """The text with the value in the place of the variable of this name alone."""

    def filled(found: re.Match[str]) -> str:
        is_it = name in (found[1], found[4])
        return _trimmed(value, found[2], found[3]) if is_it else found[0]

    return _VARIABLE.sub(filled, text)


def _trimmed(value: str, sign: str | None, pattern: str) -> str:
    """What `${name%pattern}` and the like leave of a value."""
    if not sign:
        return value
    cuts = range(len(value) + 1) if sign in ("#", "%%") else range(len(value), -1, -1)
    for cut in cuts:
        head, tail = value[:cut], value[cut:]
        if fnmatchcase(head if sign[0] == "#" else tail, pattern):
            return tail if sign[0] == "#" else head
    return value


def _braced(word: Word) -> Iterator[Word]:
    """`{a,b}` and `{a..c}` outside of quotes as the words that they stand for."""
    found = _BRACES.search(word.text) if word.bare or word.opens else None
    if found is None:
        yield word
        return
    for piece in found[1].split(",") if found[1] is not None else _between(found[2], found[3]):
        text = word.text[: found.start()] + piece + word.text[found.end() :]
        yield from _braced(replace(word, text=text))


def _between(first: str, last: str) -> Iterator[str]:
    """The letters from one to the other, whichever is the lower."""
    low, high = sorted((ord(first), ord(last)))
    return map(chr, range(low, high + 1))
