"""The command patterns that a permanent approval of a shell line covers."""

import re
from collections.abc import Sequence
from itertools import takewhile

from pegboard_plugins.bash.programs import RUNNERS, WRAPPERS, kinds, runs_code
from pegboard_plugins.bash.scan import Scan
from pegboard_plugins.bash.tables import words

_TWO, _THREE = words("prefixes", "words", "two"), words("prefixes", "words", "three")
_EVERYDAY = words("prefixes", "everyday", "acts")
_MODULES = words("prefixes", "everyday", "modules")
_LOOKS, _GIT_LOOKS = words("prefixes", "looks", "programs"), words("prefixes", "looks", "git")
_DELETES, _GIT_DELETES = {"deletes", "deletes-all"}, {"clean", "rm"}
_PLAIN = {"git": ("--no-pager", "--no-optional-locks")}
"""Options before the words that do not affect what the command does."""
_OPENS = {*WRAPPERS, *RUNNERS, "eval", "trap", "script", "watch", "source", "."}


def is_once(scanned: Scan) -> bool:
    """Return whether a shell line runs an interpreter through a wrapper such as `xargs`.

    The same line may then run other code the next time, so that an approval counts once.
    """
    names = {argv[0].rpartition("/")[2] for argv in scanned.commands}
    return any(map(_opens, names)) and any(map(_runs_code, names))


def covered(scanned: Scan) -> list[str]:
    """Return the patterns for a permanent approval; [] if a command deletes or runs any code."""
    is_open = any(re.search(r"[*?]", given) for given, *_ in scanned.settings)
    if scanned.unclear or is_open or not all(map(_is_plain, scanned.commands)):
        return []
    if any(map(_deletes, scanned.commands)):
        return []  # who allows one file to be deleted has not allowed all others
    behind = (f"{given} {prefix(argv)} *" for given, *argv in scanned.settings)
    return list(dict.fromkeys((*(f"{prefix(argv)} *" for argv in scanned.commands), *behind)))


def only_reads(scanned: Scan) -> bool:
    """Return whether all commands of the shell line are known and only read."""
    changes = (scanned.writes, scanned.destroys, scanned.overlays, scanned.lands, scanned.linked)
    runs = (scanned.unclear, scanned.settings, scanned.hazards, scanned.snippets)
    return (
        bool(scanned.commands) and not any((*changes, *runs)) and all(map(_looks, scanned.commands))
    )


def _looks(argv: Sequence[str]) -> bool:
    return argv[0] in _LOOKS or (argv[0] == "git" and prefix(argv).rpartition(" ")[2] in _GIT_LOOKS)


def _opens(name: str) -> bool:
    """Return whether a program with this name runs other programs or code."""
    return name in _OPENS or "finds" in kinds(name)


def _deletes(argv: Sequence[str]) -> bool:
    """Return whether a command deletes files, so that only the exact command can be approved."""
    name = argv[0].rpartition("/")[2]
    if name == "git":
        return prefix(argv).rpartition(" ")[2] in _GIT_DELETES
    is_deleter = name == "rmdir" or not _DELETES.isdisjoint(kinds(name))
    return is_deleter or (name == "find" and "-delete" in argv)


def _runs_code(name: str) -> bool:
    """Return whether a program is a shell or an interpreter; its name may end with a version."""
    return runs_code(name) or runs_code(name.rstrip("0123456789."))


def _is_plain(argv: Sequence[str]) -> bool:
    """Return whether the first words of a command determine what the command does."""
    is_program = not _opens(argv[0]) and not _runs_code(argv[0].rpartition("/")[2])
    return prefix(argv) != "" and (is_program or _is_everyday(argv) or module(argv) != "")


def _is_everyday(argv: Sequence[str]) -> bool:
    """Return whether a command only runs programs that are judged or belong to the project.

    This is true of searches such as `find`, and of tools that run the project's own scripts.
    """
    name = argv[0].rpartition("/")[2]
    return "finds" in kinds(name) or (name in RUNNERS and not _EVERYDAY.isdisjoint(argv[1:2]))


def module(argv: Sequence[str]) -> str:
    """Return the module in a `python -m` command if it is a known development tool, else ""."""
    name = argv[0].rpartition("/")[2]
    is_python = name.rstrip("0123456789.") == "python" and argv[1:2] in (["-m"], ("-m",))
    return argv[2] if is_python and len(argv) > len("-m") and argv[2] in _MODULES else ""


def prefix(argv: Sequence[str]) -> str:
    """Return the words that identify the command: the program, for known programs more words.

    The result is empty if an option is among the words, as in `git -C src push`, or a wildcard, as
    in `npm run '*'`, because a rule with these words would match other commands.
    """
    if name := module(argv):
        return f"{argv[0]} -m {name}"
    plain = sum(1 for _ in takewhile(_PLAIN.get(argv[0], ()).__contains__, argv[1:]))
    named = [argv[0], *argv[1 + plain :]]
    count = 3 if {"-".join(named[:2]), argv[0]} & _THREE else 2 if argv[0] in _TWO else 1
    is_act = not any(re.search(r"^-|[*?]", word) for word in named[:count])
    return " ".join(argv[: plain + count]) if is_act else ""
