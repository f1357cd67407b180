"""The effects of a shell line on files, recorded while the line's commands are visited in order."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import NamedTuple

from pegboard.files import resolved_path
from pegboard.unstable import shell_escape, shell_fits, shell_paths
from pegboard_plugins.bash.findexpression import start_texts
from pegboard_plugins.bash.marks import as_name, is_wild, marked
from pegboard_plugins.bash.reach import Reach, reach
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    LISTED,
    NUMBER,
    CommandFeed,
    Operand,
    ShellCommand,
    StatementBlock,
    Unclear,
    Word,
    is_any,
)
from pegboard_plugins.bash.values import MADE_UP, Values

MOST_FOLDERS = 16
MOST_CALLS = 64
DEEPEST_CALLS = 8
"""So many calls of functions that the line defines are followed, and so many in each other."""
MOST_MATCHES = 2000
"""So many paths that a wildcard fits are looked at."""
ANYWHERE = "\0"
"""A placeholder among the folders of a line for an unknown one."""
ANY_NUMBER = "[0-9]*"
"""Stands in the name of a file for a number."""
PROCESS = "/proc/environ"
"""Stands for what any process was given, whichever it is."""
_GLOB = re.compile(r"[*?\[]")
_EXTENSION = re.compile(r"[^/]\.\w{1,4}$")
_ORDERS = re.compile(r"/+proc/sysrq-trigger|/+sys/power/.*")
_DEVICE = re.compile(r"/dev/(null|zero|random|urandom|full|tty|stdin|stdout|stderr|fd/\d+)")


class Glob(NamedTuple):
    """A path with wildcards, as a pattern and with the folder before the wildcards.

    `pattern` is the absolute path with all literal characters escaped. `folder` is the part before
    the first wildcard. If `is_written`, the line changes the matching files. If `base` is not
    empty, the shell splits matching names at blanks, and each word is relative to `base`.
    """

    path: str
    pattern: str
    folder: str
    is_written: bool
    base: str = ""


class FolderListing(NamedTuple):
    """The files of a folder that a command lists; each name is printed with `start` before it.

    `texts` are the words of a `find`, or the names and folders for another command; empty means all
    files. If `hides`, names with a leading dot are left out. If `is_tracked`, only files in git are
    listed.
    """

    start: str
    folder: str
    texts: tuple[str, ...] = ()
    is_find: bool = False
    hides: bool = False
    is_tracked: bool = False


class Lost(NamedTuple):
    """File names that commands print and that the line then destroys, from a pattern or a listing.

    `place` would be lost if all names are, `shown` is the beginning of the printed names. `sieves`
    are the commands that leave names out. If `is_part`, the contents of files decide which names.
    """

    place: str
    shown: str
    listing: FolderListing | None = None
    sieves: tuple[tuple[str, ...], ...] = ()
    is_part: bool = False


@dataclass(slots=True)
class WalkState:
    """The state of the walk through a shell line, with the effects recorded so far.

    `cwd` are the folders in which the line may be, `strays` those after a failed `cd`, unless it is
    `strict` (`set -e`). `made` are the folders that the line creates.

    `reads` are the paths that a command reads without writing them. `reading` and `writing` are the
    paths that the current command reads and writes. `lands` are the paths at which files, folders
    or links may be created, `handed` the paths given to programs that may write them. `linked` are
    files that get a second name, `links` maps each new link to its target. `globs` are the paths
    with wildcards. `hazards` are commands that destroy files which they do not name, each with the
    reason. `overlays` are folders that would be overwritten completely. `renamed` maps the files
    that a wildcard or a listing renames to the folders in which they may end up.

    `fed` is the input of the current statement. `branches` counts the parts around it that the
    shell may skip. `functions` are the functions that the line defines, `assigned` the variables
    that certainly have a value. `makes_repository` is set by `git init`, `nullglob` by the option
    of bash that drops a wildcard without matches. `filled` is a placeholder in words that a caller
    replaces.

    `reach` tells how far listed names may lead. `listed` are the listed folders outside of the
    working directory, `listings` the listings. `writes_listed` is set when a listed file is
    written. `lost` are listed names that are destroyed, `places_of` the folders in which each
    command ran. `depth` and `followed` limit the search for the origin of names. `saved` maps each
    written file to the commands that print its content. `unclear` is the first unclear part.
    """

    home: str
    cwd: tuple[str, ...]
    values: Values
    paths: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)
    reading: dict[str, None] = field(default_factory=dict)
    destroys: dict[str, None] = field(default_factory=dict)
    lands: dict[str, None] = field(default_factory=dict)
    handed: dict[str, None] = field(default_factory=dict)
    linked: dict[str, None] = field(default_factory=dict)
    globs: dict[Glob, None] = field(default_factory=dict)
    hazards: dict[str, str] = field(default_factory=dict)
    overlays: dict[str, None] = field(default_factory=dict)
    made: dict[str, None] = field(default_factory=dict)
    functions: dict[str, StatementBlock] = field(default_factory=dict)
    active: list[tuple[str, ...]] = field(default_factory=list)
    calls: int = 0
    assigned: frozenset[str] = frozenset()
    fed: CommandFeed | None = None
    branches: int = 0
    strays: tuple[str, ...] = ()
    strict: bool = False
    placeholder: str = ""
    filled: str = ""
    makes_repository: bool = False
    nullglob: bool = False
    reads_listed: bool = False
    reach: Reach = Reach.WORDS
    listed: dict[str, None] = field(default_factory=dict)
    listings: dict[FolderListing, None] = field(default_factory=dict)
    writes_listed: bool = False
    lost: dict[Lost, None] = field(default_factory=dict)
    places_of: dict[ShellCommand, tuple[str, ...]] = field(default_factory=dict)
    depth: int = 0
    followed: int = 0
    saved: dict[str, tuple[CommandFeed, ...]] = field(default_factory=dict)
    writing: dict[str, None] = field(default_factory=dict)
    renamed: dict[str | Lost, tuple[str, ...]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    unclear: Unclear | None = None

    def doubt(self, code: str, word: Operand | Word | None = None) -> None:
        """Mark the shell line as unclear, because of `word`, unless the line is marked already."""
        if self.unclear is None:
            read = word.word if isinstance(word, Operand) else word
            self.unclear = Unclear(code, read.at, read.end) if read else Unclear(code)

    def operands(self, words: Iterable[Word]) -> list[Operand]:
        """Return all texts that the words may become as names of files, in order."""
        found = []
        for word in words:
            if word.literal is not None:
                own = word.own_pieces  # of a plain word there are none yet
                found.append(Operand(word.literal, not (own and own[0].quoted), word, wild=False))
                continue
            bare = not word.is_quoted or word.pieces[0].kind == "variable"
            names = self.values.names([word], number=NUMBER)
            names += [marked(each) for each in names if NUMBER in each and is_wild(each)]
            names = [each.replace(NUMBER, ANY_NUMBER) for each in names]
            found += [Operand(as_name(each), bare, word, is_wild(each)) for each in names]
        return found

    def is_none(self, word: Operand) -> bool:
        """Return whether the word is an empty unquoted variable, which the shell drops."""
        if word.text or word.word is None or not word.word.splits:
            return False
        return any(self.values.given(name) is not None for name in self.values.used([word.word]))

    def move(self, folders: Iterable[str]) -> None:
        """Record that a `cd` leads to one of the `folders`."""
        former, reached = self.cwd, tuple(folders)
        if not self.branches and not self.strict and not all(map(self._is_there, reached)):
            self.strays += former
        self.be_in([*(former if self.branches else ()), *reached])

    def settle(self) -> None:
        """End a statement; the next statement may also run in the folder before a failed `cd`."""
        if self.strays:
            self.be_in([*self.cwd, *self.strays])
            self.strays = ()

    def be_in(self, folders: Iterable[str]) -> None:
        """Set the folders that may be the current folder from now on."""
        self.cwd = tuple(dict.fromkeys(folders))
        if len(self.cwd) > MOST_FOLDERS:
            self.doubt("dynamic-cwd")
            self.cwd = (*self.cwd[:MOST_FOLDERS], ANYWHERE)

    def _is_there(self, folder: str) -> bool:
        """Return whether a `cd` to the folder will certainly succeed."""
        path = os.path.normpath(folder)
        is_made = self.makes(path) or any(_is_within(landed, path) for landed in self.lands)
        return is_made or (os.path.isdir(path) and folder not in self.destroys)  # noqa: PTH112

    def makes(self, path: str) -> bool:
        """Return whether the shell line itself creates the folder `path`, or a folder in it."""
        return any(_is_within(made, path) for made in (*self.made, MADE_UP))

    def folders(self, word: Operand) -> list[str]:
        """Return the path of a word in each possible current folder; `..` is not resolved."""
        text = self.without_tilde(word) if word.text[:1] == "~" else word.text
        if text[:1] == "/":
            paths = [text]
        else:
            folders = (each for each in self.cwd if each != ANYWHERE)
            paths = [
                f"{each}{text}" if each.endswith("/") else f"{each}/{text}" for each in folders
            ]
        return [*paths, *self._linked(paths)] if self.links else paths

    def _linked(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the paths that go through a link that the line creates, via the link's target."""
        for path in paths:
            end = "/" * path.endswith("/")
            plain = os.path.normpath(path)
            for link, target in self.links.items():
                if plain == link or plain.startswith(f"{link}/"):
                    yield target + plain.removeprefix(link) + end

    def places(self, word: Operand) -> list[str]:
        """Return the paths of a word, except devices such as `/dev/null` that store nothing."""
        paths = self.folders(word)
        return [path for path in paths if path[:5] != "/dev/" or not _DEVICE.fullmatch(path)]

    def _patterns(self, word: Operand, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield each path of a word, its pattern, and the folder before the path's first wildcard.

        Wildcard characters in the name of the working directory are literal. Without a wildcard,
        the folder is the path itself.
        """
        tail = word.text.partition("/")[2] if word.text[:1] == "~" else word.text
        for path in paths:
            start = len(path) - len(tail) if word.wild else len(path)
            found = _GLOB.search(path, start)
            fixed = path if found is None else path[: found.start()].rpartition("/")[0] or "/"
            yield path, shell_escape(path[:start]) + path[start:], fixed

    def entered(self, word: Operand) -> Iterator[str]:
        """Yield the folders to which a `cd` to the word may lead."""
        for path, pattern, fixed in self._patterns(word, self.folders(word)):
            if fixed != path:
                yield from (made for made in self.made if shell_fits(pattern, made))
                yield from islice(shell_paths(f"{pattern}/"), MOST_FOLDERS)
            yield path
            if "/.." in path and resolved_path(path) != resolved_path(os.path.normpath(path)):
                yield os.path.normpath(path)  # as the shell reads it, which knows of no links

    def touch(self, word: Operand, *, write: bool = False) -> None:
        """Record that a path is read or written; for a pattern, the folder before its wildcards."""
        for path, pattern, fixed in self._patterns(word, self.places(word)):
            if fixed != path:
                base = path.removesuffix(word.text) if word.parts else ""
                self.globs[Glob(path, pattern, fixed, write, base)] = None
            # A new temporary file, or one in a new folder, needs no question.
            is_new = "mktemp" in path and _is_within(path, MADE_UP) and ".." not in path
            if not is_new:
                self.paths[fixed] = None
            if write:
                self.writes[fixed] = self.writing[fixed] = None
                self.writes |= dict.fromkeys(hidden_matches(pattern))
                self.reading.pop(fixed, None)
                if path.startswith("/dev/"):
                    self.destroys[path] = None
                if _ORDERS.fullmatch(os.path.normpath(path)):
                    self.hazards[f"> {path}"] = "the kernel would obey it at once"
            else:
                self.reading[fixed] = None

    def note_listing(self, base: str, words: Sequence[Word]) -> None:
        """Record which files a command may list."""
        names = reach(base, [word.shown for word in words])
        if names is not None:
            self.reach = max(self.reach, names)
        if base in ("find", "gfind"):
            texts = product(*(self.values.texts(word) or ("",) for word in words))
            word_lists = list(islice(texts, MOST_FOLDERS))
            self.listings |= {
                FolderListing(start, path, each, is_find=True): None
                for each in word_lists
                for start in start_texts(each)
                for path in self.places(Operand(start))
            }

    def distrust(self, word: Operand) -> None:
        """Mark the shell line as unclear if the path of a write or a deletion is unknown.

        File names that a command prints count as files of the project, and the line may then write
        any file in its folders. They are unclear if they may lead to files that run by themselves,
        or if a path follows them.
        """
        text = word.text.replace(self.filled, LISTED) if self.filled else word.text
        if ANYTHING not in text:
            return
        goes_on = "/" in text.rpartition(ANYTHING)[2]
        is_open = is_any(text) and _EXTENSION.search(text) is None
        if is_open or self.reach == Reach.ANY or (goes_on and self.reach > Reach.WORDS):
            self.doubt("dynamic-path", word)
        self.writes |= {f"{folder}/*": None for folder in self.cwd if folder != ANYWHERE}
        folder, slash, _ = text.partition(ANYTHING)[0].rpartition("/")
        placed = word._replace(text=f"{folder}/*", wild=False) if slash else None
        self.writes |= dict.fromkeys(self.places(placed) if placed else ())
        self.writes_listed = True

    def end(self) -> None:
        """End a command or redirection; paths that it named and did not write count as read."""
        if self.reading:
            self.reads.update(self.reading)
            self.reading.clear()

    def tell_of_process(self) -> None:
        """Record that the shell line may read the environment of a process."""
        self.paths[PROCESS] = None

    def patterns(self, word: Operand) -> list[str]:
        """Return the word's paths as patterns; a path without wildcards matches only itself."""
        return [pattern for _, pattern, _ in self._patterns(word, self.places(word))]

    def destroy(self, word: Operand) -> None:
        """Record that a path or glob would be deleted with everything in it."""
        patterns = self.patterns(word)
        self.destroys.update(dict.fromkeys(patterns))
        self.lose_renamed(patterns)
        if self.is_lost(word):
            self.destroys[""] = None

    def lose_renamed(self, patterns: Iterable[str]) -> None:
        """Record the loss of renamed files whose new folder a pattern in `patterns` matches."""
        paths = [os.path.normpath(each) for each in patterns]
        is_chosen = any(map(_GLOB.search, paths))
        for each, places in self.renamed.items():
            if is_chosen or any(_is_within(place, path) for place in places for path in paths):
                (self.lost if isinstance(each, Lost) else self.destroys)[each] = None  # type: ignore[index]

    def is_lost(self, word: Operand) -> bool:
        """Return whether the path of a word is relative to an unknown folder."""
        return ANYWHERE in self.cwd and not self.without_tilde(word).startswith("/")

    def without_tilde(self, word: Operand) -> str:
        """Return the text of a word, with a `~` at its start replaced by the home directory."""
        if word.text[:1] != "~" or not word.bare:
            return word.text
        user, slash, rest = word.text[1:].partition("/")
        home = os.path.expanduser(f"~{user}") if user else self.home  # noqa: PTH111 - as a shell
        return home + slash + rest


def _is_within(path: str, folder: str) -> bool:
    """Return whether a path is the folder itself or lies in the folder."""
    return f"{os.path.normpath(path)}/".startswith(f"{folder}/")


def within(word: Operand) -> Operand:
    """Replace the unknown parts of a word that contains `..` by `.`."""
    leads_out = word.dynamic and ".." in word.text.split("/")
    return (
        word._replace(text=word.text.replace(LISTED, ANYTHING).replace(ANYTHING, "."))
        if leads_out
        else word
    )


def hidden_matches(path: str) -> Iterator[str]:
    """Yield the hidden paths that a pattern matches; the last name of a path need not exist."""
    folder, _, name = path.rpartition("/")
    found = shell_paths(path) if _GLOB.search(name) else ()
    placed = shell_paths(folder) if _GLOB.search(folder) else ()
    for each in islice((*found, *(f"{each}/{name}" for each in placed)), MOST_MATCHES):
        if "/." in f"/{each.removeprefix(before_glob(path))}":
            yield each


def before_glob(path: str) -> str:
    """Return the folder before the first wildcard of a path, or the path if it has no wildcard."""
    found = _GLOB.search(path)
    return path if found is None else path[: found.start()].rpartition("/")[0] or "/"
