"""The operands that a program changes, for programs that change only some operands."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pegboard.unstable import shell_escape
from pegboard_plugins.bash.destroying import deletes, found_from
from pegboard_plugins.bash.programs import git_words, kinds, last, option_values, without_options
from pegboard_plugins.bash.syntax import Operand
from pegboard_plugins.bash.tables import words

_IN_PLACE = re.compile(r"-[anlpsw0-7]*i")
"""With these perl and ruby write into their files."""
_CODE = re.compile(r"-\w*e")
_MAKES_FOLDERS = re.compile(r"-[a-zA-Z]*d|--d")
_ARCHIVES = re.compile(r"-[a-zA-Z]*[cruA].*|[a-zA-Z]*[cruA][a-zA-Z]*|--(cr|app|up|del|cat|conc).*")
_GIT_MAKES = {"clone": 2, "init": 1, "worktree": 2}
"""The commands with which git makes a repository, and where in their words the folder stands."""
_GIT_CHANGES = words("git", "words", "changes")
_GIT_KEEPS = frozenset({"--cached", "--staged", "-S", "-n", "--dry-run"})
"""With these git leaves the files alone, and changes its index at most."""
_LOOKS = re.compile(
    r"(?i)\s*(select|explain|pragma\s+\w+\s*(\(\w+\)\s*)?$|\.(schema|tables|dump)\b)"
)
"""Orders of sqlite that change nothing."""
TARGETS = ("-t", "--target-directory")
PREFIXES = {"split": "x", "csplit": "xx"}
"""How the pieces of a file are called, where nothing else is said."""

Words = Sequence[Operand]


def changed(base: str, operands: Words) -> Iterator[Operand]:
    """Yield the operands that a program changes, by the rules for the program."""
    for which in (*sorted(kinds(base)), base):
        if which in _RULES:
            yield from map(as_operand, _RULES[which](base, operands))


def as_operand(word: Operand) -> Operand:
    """Return a word as an operand, even if the text of the word looks like an option."""
    is_name = word.text.startswith("-") and word.text not in ("-", "--")
    return word._replace(text=f"./{word.text}") if is_name else word


def _named(operands: Words) -> list[Operand]:
    return [word for word in operands if not re.match(r"-.", word.text)]


def _behind_first(operands: Words) -> Words:
    """Return the operands after the first; all operands if the first may become several words."""
    named = _named(operands)
    first = named[0].word if named else None
    if named and named[0].dynamic and first and first.splits:
        return named
    return [word for word in named[1:] if word.word is None or word.word is not first]


def _installed(base: str, operands: Words) -> Words:
    """Return the last operand, or all folders that `install -d` creates."""
    makes = base == "install" and any(_MAKES_FOLDERS.match(word.text) for word in operands)
    named = without_options(base, operands)
    return named if makes else last(named)


def _linked(_base: str, operands: Words) -> Words:
    """Return the new link's name in the current folder if `ln` gets only a target."""
    named = _named(operands)
    return [Operand(named[0].text.rstrip("/").rpartition("/")[2])] if len(named) == 1 else ()


def _searched(_base: str, operands: Words) -> Words:
    """Return the start folders of a `find` that deletes; () for a `find` that does not delete."""
    return found_from(operands) if deletes([word.text for word in operands]) else ()


def _edited(_base: str, operands: Words) -> Words:
    """Return the files that `perl -i` or `ruby -i` changes in place."""
    if not any(_IN_PLACE.match(word.text) for word in operands):
        return ()
    behind = pairwise([Operand(""), *operands])
    return [w for before, w in behind if w.text[:1] != "-" and not _CODE.match(before.text)]


def _zipped(_base: str, operands: Words) -> Words:
    """Return the archive that `zip` writes, and with `-m` the files that are moved into it."""
    moves = any(re.match(r"-[a-zA-Z]*m|--mo", word.text) for word in operands)
    return _named(operands)[: None if moves else 1]


def _database(_base: str, operands: Words) -> Words:
    """Return the database that `sqlite3` changes; () if all statements only read."""
    named = _named(operands)
    orders = [order for word in named[1:] for order in word.text.split(";") if order.strip()]
    is_read = "-readonly" in [word.text for word in operands]
    looks = bool(orders) and all(map(_LOOKS.match, orders))
    return () if is_read or looks else named[:1]


def _temporary(_base: str, operands: Words) -> Words:
    """Return globs for the files that `mktemp` creates, from the given template or folder."""
    folders = option_values(operands, ("-p", "--tmpdir"))
    named = [word for word in operands if "XXX" in word.text]
    named += [word._replace(text=f"{word.text.rstrip('/')}/XXX") for word in folders]
    texts = [word.text if word.wild else shell_escape(word.text) for word in named]
    pairs = zip(named, texts, strict=True)
    return [Operand(re.sub("X+", "*", text), bare=word.bare) for word, text in pairs]


def _split(base: str, operands: Words) -> Words:
    named = (
        _behind_first(operands)
        if base == "split"
        else [*option_values(operands, ("-f", "--prefix"))]
    )
    return named or [Operand(PREFIXES[base])]


def _unpacked(operands: Words) -> Iterator[Operand]:
    """Yield the folder into which `tar` extracts, if an option names this folder."""
    if any(re.match(r"-?[a-zA-Z]*x|--(ext|get)", word.text) for word in operands):
        yield from option_values(operands, ("-C", "--directory"))


def _archived(_base: str, operands: Words) -> Iterator[Operand]:
    """Yield the archive that `tar` writes, and the folder that an option names to extract into."""
    yield from _unpacked(operands)
    texts = [word.text for word in operands]
    bundles = {*texts[:1], *(text for text in texts if text.startswith("-"))}
    if any(map(_ARCHIVES.fullmatch, bundles)):
        yield from option_values(operands, ("-f", "--file"))
        if re.fullmatch(r"[a-zA-Z]*f[a-zA-Z]*", texts[0]):
            yield from operands[1:2]


def _pathspecs(_base: str, operands: Words) -> Iterable[Operand]:
    return map(_pathspec, _git_changed(operands))


def _pathspec(word: Operand) -> Operand:
    """Return a git pathspec as a path; a pathspec with a wildcard becomes `FOLDER/*`."""
    before = re.split(r"[*?\[:]", word.text)[0]
    if before == word.text and before.rstrip("/") != ".":
        return word
    folder = before.rpartition("/")[0] or "."
    return Operand(f"{folder.rstrip('/')}/*", bare=word.bare, wild=False)


def _git_changed(operands: Words) -> Words:
    """Return the files that git removes, moves or restores, or the folder of a new repository."""
    texts = [word.text for word in operands]
    name = next(iter(git_words(texts)), "")
    if name in _GIT_MAKES:
        return _named(operands[texts.index(name) :])[_GIT_MAKES[name] :]
    is_kept = not _GIT_KEEPS.isdisjoint(texts) and {"-W", "--worktree"}.isdisjoint(texts)
    if name == "stash" and "push" in texts:
        return _named(operands[texts.index("push") + 1 :])
    if is_kept or name not in _GIT_CHANGES or (name == "checkout" and "--" not in texts):
        return ()
    behind = operands[texts.index("--" if "--" in texts else name) + 1 :]
    named = [word for word in behind if not word.text.startswith("-")]
    return named or ([Operand(".")] if name == "clean" else [])


def checked_out(operands: Words) -> Words:
    """Return the words of `git checkout` that may name files or branches."""
    texts = [word.text for word in operands]
    if git_words(texts)[:1] != ["checkout"] or "--" in texts:
        return ()
    return [_pathspec(word) for word in _named(operands[texts.index("checkout") + 1 :])]


_RULES: Mapping[str, Callable[[str, Words], Iterable[Operand]]] = {
    "finds": _searched,
    "last-written": _installed,
    "first-written": lambda _, operands: _named(operands)[:1],
    "second-written": lambda _, operands: _behind_first(operands),
    "archives": _archived,
    "mktemp": _temporary,
    "zip": _zipped,
    **dict.fromkeys(("sqlite3", "sqlite"), _database),
    "places": lambda _, operands: option_values(operands, TARGETS),
    "git": _pathspecs,
    "ln": _linked,
    **dict.fromkeys(("perl", "ruby"), _edited),
    **dict.fromkeys(PREFIXES, _split),
}
"""By kind, and by name."""
