"""Environment variables that make a program run another program, or act differently."""

import re
from collections.abc import Iterator

from pegboard_plugins.bash.syntax import Simple, Word
from pegboard_plugins.bash.tables import pattern, patterns

_HIJACKS, _EVERYDAY = pattern("variables", "hijacks"), pattern("variables", "everyday")
_TAME = tuple(
    (re.compile(names), re.compile(values))
    for names, values in patterns("variables", "tame").items()
)
_TAME_FOLDER = pattern("variables", "tame-folder")


def settings(one: Simple) -> Iterator[tuple[str, ...]]:
    """Yield the variable assignments before a command as one text, then the command's words."""
    given = [each for each in one.assignments if not _EVERYDAY.fullmatch(each.name)]
    if given:
        names = (f"{name}={word.shown}" for name, _, word in given)
        yield " ".join(names), *(word.shown for word in one.words)


def hijacks(name: str, word: Word | None, how: str = "=") -> bool:
    """Return whether setting a variable to this value can make a program run another program."""
    if not _HIJACKS.fullmatch(name):
        return False
    if word is None or how == "for":
        return True
    if name == "PATH":
        return how != "=" or not _is_tame_path(word)
    values = next((values for names, values in _TAME if names.fullmatch(name)), None)
    return values is None or word.literal is None or values.fullmatch(word.literal) is None


def _is_tame_path(word: Word) -> bool:
    """Return whether a new `PATH` has only known folders of the system, home or project."""
    shown = "".join(
        f"${piece.text}" if piece.kind == "variable" and not piece.how else piece.shown
        for piece in word.pieces
    )
    folders = shown.split(":")
    return all(_TAME_FOLDER.fullmatch(each) and ".." not in each for each in folders)
