"""Variables with which a program can be made to run another one, and values with which not."""

import re

from pegboard_plugins.bash.syntax import Word
from pegboard_plugins.bash.tables import patterns

_HIJACKS = re.compile(patterns("variables", "hijack")["names"])
_TAME = tuple(
    (re.compile(names), re.compile(values))
    for names, values in patterns("variables", "tame").items()
)
_TAME_FOLDER = re.compile(
    r"\$PATH|(~|\$HOME|\$PWD|\$\w+_ROOT|\$NVM_DIR|\$VIRTUAL_ENV)/[\w./-]+|/(usr|opt|bin|sbin)[\w./-]*"
    r"|(\./)?node_modules/\.bin|\.?venv/bin"
)


def hijacks(name: str, word: Word | None, how: str = "=") -> bool:
    """Whether the variable can make a program run another one with what it is given here."""
    if not _HIJACKS.fullmatch(name):
        return False
    if word is None or how == "for":
        return True
    if name == "PATH":
        return how != "=" or not _is_tame_path(word)
    values = next((values for names, values in _TAME if names.fullmatch(name)), None)
    return values is None or word.literal is None or values.fullmatch(word.literal) is None


def _is_tame_path(word: Word) -> bool:
    """Folders that are written out, of the system, the home or the project, besides `$PATH`."""
    shown = "".join(
        f"${piece.text}" if piece.kind == "variable" and not piece.how else piece.shown
        for piece in word.pieces
    )
    folders = shown.split(":")
    return all(_TAME_FOLDER.fullmatch(each) and ".." not in each for each in folders)
