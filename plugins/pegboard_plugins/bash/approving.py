"""What an approval of a line may cover, besides the very same line."""

from collections.abc import Sequence

from pegboard_plugins.bash.prefixes import module, prefix
from pegboard_plugins.bash.scan import Scan
from pegboard_plugins.bash.wrappers import INTERPRETERS, SHELLS, is_everyday, is_wrapper


def is_once(scanned: Scan) -> bool:
    """Whether the line wraps an interpreter: then even the very same line can mean anything."""
    names = {argv[0].rpartition("/")[2] for argv in scanned.commands}
    return any(map(is_wrapper, names)) and any(map(_runs_code, names))


def covered(scanned: Scan) -> list[str]:
    """What an approval for good covers; nothing when a part of the line could run anything."""
    if scanned.unclear or not all(map(_is_plain, scanned.commands)):
        return []
    return list(dict.fromkeys(f"{prefix(argv)} *" for argv in scanned.commands))


def _runs_code(name: str) -> bool:
    """Whether the program is a shell or an interpreter, of whatever version."""
    plain = name.rstrip("0123456789.")
    return not {name, plain}.isdisjoint(SHELLS | INTERPRETERS)


def _is_plain(argv: Sequence[str]) -> bool:
    """Whether the words that name the command say what it does, whatever comes after them."""
    is_program = not is_wrapper(argv[0]) and not _runs_code(argv[0].rpartition("/")[2])
    return prefix(argv) != "" and (is_program or is_everyday(argv) or module(argv) != "")
