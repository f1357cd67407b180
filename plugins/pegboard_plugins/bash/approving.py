"""What an approval of a line may cover, besides the very same line."""

from collections.abc import Sequence

from pegboard_plugins.bash.prefixes import module, prefix
from pegboard_plugins.bash.programs import INTERPRETERS, RUNNERS, SHELLS, WRAPPERS
from pegboard_plugins.bash.scan import Scan

_EVERYDAY = frozenset(
    {
        *("test", "t", "run", "run-script", "install", "ci", "i", "build", "start", "lint", "sync"),
        *("add", "list", "ls", "outdated", "audit", "check", "lock", "view", "show", "version"),
    }
)
_SEARCHES = frozenset({"find", "gfind", "fd", "fdfind"})
_OPENS = {*WRAPPERS, *RUNNERS, "eval", "trap", "script", "watch", "source", ".", *_SEARCHES}


def is_once(scanned: Scan) -> bool:
    """Whether the line wraps an interpreter: then even the very same line can mean anything."""
    names = {argv[0].rpartition("/")[2] for argv in scanned.commands}
    return not names.isdisjoint(_OPENS) and any(map(_runs_code, names))


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
    is_program = argv[0] not in _OPENS and not _runs_code(argv[0].rpartition("/")[2])
    return prefix(argv) != "" and (is_program or _is_everyday(argv) or module(argv) != "")


def _is_everyday(argv: Sequence[str]) -> bool:
    """Whether what such a command may run besides what it names is judged, or the project's own.

    Searches and the tools that run a project's scripts are, unless they run what they fetch.
    """
    name = argv[0].rpartition("/")[2]
    return name in _SEARCHES or (name in RUNNERS and not _EVERYDAY.isdisjoint(argv[1:2]))
