"""The files of a folder that git would not ignore."""

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from pegboard.files.ignores import IgnoreRules
from pegboard.processes.hostprograms import find_program

_FILES = (".rgignore", ".ignore", ".gitignore")
_EXCLUDE = ".git/info/exclude"
_SIMPLE = re.compile(r"(?!\*$)(?!.*\*\*)(?:[\w.*-]|\{[\w.*-]+(?:,[\w.*-]+)*\})+", re.ASCII)
"""What ripgrep understands as we do: its `?` is a byte, and `{,a}` has no empty choice."""
_EXCLUDES = re.compile(r'(?im)^\s*excludesfile\s*=\s*"?([^"\n]+?)"?\s*$')


_Level = tuple[tuple[int, IgnoreRules], ...]
"""The rules of files of one name, the nearest first, each with the length of its folder's path."""


class _Rules(msgspec.Struct, frozen=True):
    """The rules of ignore files for the entries of a folder, by kind of ignore file.

    The order of precedence is `.rgignore`, `.ignore`, `.gitignore`, git's `info/exclude`, and the
    user's global excludes. Within a kind, the file in the innermost folder comes first. A
    repository inside another one does not inherit the outer repository's git rules.
    """

    rg: _Level = ()
    ignore: _Level = ()
    git: _Level = ()
    exclude: _Level = ()
    mine: _Level = ()
    in_git: bool = True

    def leave_out(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the ignore files exclude this path.

        The first ignore file with a matching rule decides, in the order of precedence.
        """
        for level in (self.rg, self.ignore, self.git, self.exclude, self.mine):
            for length, rules in level:
                verdict = rules.verdict(path[length:], is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return False


def walk_files(
    folder: Path,
    *,
    skip: Container[str] = (),
    missed: Callable[[str], object] | None = None,
) -> Iterator[str]:
    """Yield the paths of all files below `folder`, outer ones first, then by name.

    Hidden files are included. It excludes `.git` and the files that `.rgignore`, `.ignore` and
    `.gitignore` exclude, also those of the repository above, its `info/exclude`, and the user's
    global excludes. An ignored folder is walked if `folder` names it. Folders with a name in `skip`
    are not entered. Symlinks, devices and pipes are excluded as in ripgrep, because they may lead
    anywhere. A folder that cannot be read counts as empty, and `missed` is called with its path.
    """
    root = os.path.abspath(folder).rstrip("/") + "/"  # noqa: PTH100 - texts are half the time of paths here
    above = _above(root)
    pending = deque([(root, above)])
    while pending:
        place, rules = pending.popleft()
        entries = _entries(place, missed)
        rules = _inside(rules, place, {entry.name for entry in entries})
        for entry in entries:
            is_folder = _is_folder(entry)
            path = place + entry.name
            if entry.name == ".git" or rules.leave_out(path, is_folder=is_folder):
                continue
            if not is_folder:
                if _is_file(entry):
                    yield path
            elif entry.name not in skip:
                pending.append((f"{path}/", rules))


def printable_name(name: str) -> str:
    """Return a file name or path on one line, with escapes for unprintable characters."""
    plain = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return plain if plain.isprintable() else plain.encode("unicode_escape").decode()


def ripgrep(folder: Path, *, root: Path) -> tuple[str, ...] | None:
    """Return the program `rg` with options to find the same files as `walk_files`, or None.

    It is searched on the PATH, and where the extra `ripgrep` installs it. Return None if it is
    missing, or only in the project `root`. The search only checks a few file names.
    """
    program = find_program("rg", os.environ, f"{sys.prefix}/bin", root=root)
    if program is None:
        return None
    alone = _repository(folder) is None
    return (
        *(program, "--no-config", "--color=never", "--hidden", "--no-messages", "--glob=!.git"),
        *(("--no-require-git", "--no-ignore-parent") if alone else ()),
    )


def ripgrep_names(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return options with which `rg` excludes most files that match none of the patterns.

    Only the patterns' last parts are used, and only if these are simple. The caller must exclude
    the remaining files.
    """
    names = [pattern.rpartition("/")[2] for pattern in patterns]
    if not names or not all(map(_SIMPLE.fullmatch, names)):
        return ()
    # A type, because a glob would bring back files that git ignores.
    return (*(f"--type-add=wanted:{name}" for name in names), "--type=wanted")


def _entries(folder: str, missed: Callable[[str], object] | None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=attrgetter("name"))
    except OSError:
        if missed is not None:
            missed(folder)
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _repository(folder: Path) -> Path | None:
    """Return the nearest folder with a `.git`, searched from this folder upwards, or None."""
    return next(
        (each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None
    )


def _above(folder: str) -> _Rules:
    """Read the user's rules and, in a repository, the rules of the folders above."""
    in_git = _repository(Path(folder)) is not None
    rules = _Rules(mine=_read(folder, _users_excludes()), in_git=in_git)
    if not in_git:
        return rules
    for above in reversed(Path(folder).parents):
        rules = _inside(rules, f"{str(above).rstrip('/')}/")
    return rules


def _inside(rules: _Rules, folder: str, names: Container[str] | None = None) -> _Rules:
    """Return the ignore rules for a folder: those of its parent and those of its own ignore files.

    `names` are the folder's entries if the caller knows them.
    """
    found = {name: _read(folder, name) for name in _FILES if names is None or name in names}
    has_git = ".git" in names if names is not None else os.path.lexists(f"{folder}.git")
    if not (has_git or any(found.values())):
        return rules
    ends = has_git and rules.in_git
    return _Rules(
        rg=found.get(".rgignore", ()) + rules.rg,
        ignore=found.get(".ignore", ()) + rules.ignore,
        git=found.get(".gitignore", ()) + (() if ends else rules.git),
        exclude=(_read(folder, _EXCLUDE) if has_git else ()) + (() if ends else rules.exclude),
        mine=rules.mine,
        in_git=rules.in_git,
    )


def _users_excludes() -> str:
    """Return the path of the user's global git excludes (git-config: core.excludesFile)."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "git")
    for file in (home / ".gitconfig", config / "config"):
        try:
            said = _EXCLUDES.search(file.read_text(errors="replace"))
        except OSError:
            continue
        if said:
            return os.path.expanduser(said[1])  # noqa: PTH111 - a text, as it is written there
    return str(config / "ignore")


def _read(folder: str, name: str) -> _Level:
    path = os.path.join(folder, name)  # noqa: PTH118 - as in `walk_files`
    try:
        # What is no file could keep who opens it waiting.
        if not os.path.isfile(path):  # noqa: PTH113
            return ()
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read()
    except OSError:
        return ()
    return ((len(folder), IgnoreRules(content)),)
