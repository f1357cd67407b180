"""The files of a folder that git would not ignore."""

import os
import re
import sys
from collections import deque
from collections.abc import Container, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.programs import find_program

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_Specs = tuple[tuple[str, "GitIgnoreSpec"], ...]
"""Folders that have a file of such rules, each with a slash at its end, the strongest first."""

_EXCLUDES = re.compile(r'(?im)^\s*excludesfile\s*=\s*"?([^"\n]+?)"?\s*$')


def walk_files(folder: Path, *, skip: Container[str] = ()) -> Iterator[str]:
    """The paths of all files below `folder`, hidden ones too, outer ones first, then by name.

    Left out are `.git` and what `.rgignore`, `.ignore` and `.gitignore` files say, from the
    repository's root down, and the user's own excludes. A folder that is itself ignored is walked
    if it is asked for. Folders with a name in `skip` are not entered. Symlinks are left out, as
    ripgrep does: they may lead anywhere. A folder that cannot be read counts as empty.
    """
    root = os.path.abspath(folder).rstrip("/") + "/"  # noqa: PTH100 - texts are half the time of paths here
    ignore, git = _specs_above(root)
    if _ignored(root, ignore + git):
        ignore = git = ()
    yield from _walk(root, ignore, git, skip)


def printable_name(name: str) -> str:
    """The name or path of a file on one line, with escapes for what is no printable letter."""
    plain = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return plain if plain.isprintable() else plain.encode("unicode_escape").decode()


def ripgrep(folder: Path) -> tuple[str, ...] | None:
    """The program `rg` with options by which it sees the files that `walk_files` gives.

    It is looked for on the PATH, and where the extra `ripgrep` puts it; None if it is not there.
    Reads a few names.
    """
    program = find_program("rg", os.environ, f"{sys.prefix}/bin")
    if program is None:
        return None
    alone = _repository(folder) is None
    return (
        *(program, "--no-config", "--color=never", "--hidden", "--no-messages", "--glob=!.git"),
        *(("--no-require-git", "--no-ignore-parent") if alone else ()),
    )


def _walk(folder: str, ignore: _Specs, git: _Specs, skip: Container[str]) -> Iterator[str]:
    pending = deque([(folder, ignore, git)])
    while pending:
        folder, ignore, git = pending.popleft()
        ignore = _own_specs(folder) + ignore
        git = _spec(folder, ".gitignore") + git
        specs = ignore + git
        for entry in _entries(folder):
            path = folder + entry.name
            is_folder = _is_folder(entry)
            if specs and _ignored(f"{path}/" if is_folder else path, specs):
                continue
            if not is_folder:
                if not entry.is_symlink():
                    yield path
            elif entry.name != ".git" and entry.name not in skip:
                pending.append((f"{path}/", ignore, git))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=attrgetter("name"))
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _repository(folder: Path) -> Path | None:
    """The nearest folder with `.git`, from this one up."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _specs_above(folder: str) -> tuple[_Specs, _Specs]:
    """What the folders above say, up to the one that has `.git`; nothing outside of git."""
    root = _repository(Path(folder))
    if root is None:
        return (), ()
    ignore: _Specs = ()
    git: _Specs = ()
    for above in Path(folder).parents:
        if not above.is_relative_to(root):
            break
        ignore += _own_specs(_with_slash(above))
        git += _spec(_with_slash(above), ".gitignore")
    excludes = _spec(_with_slash(root), ".git/info/exclude")
    return ignore, git + excludes + _spec(_with_slash(root), _users_excludes())


def _users_excludes() -> str:
    """The user's file of what git ignores everywhere (git-config: core.excludesFile)."""
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


def _with_slash(folder: Path) -> str:
    return f"{str(folder).rstrip('/')}/"


def _own_specs(folder: str) -> _Specs:
    """What is for searches alone."""
    return _spec(folder, ".rgignore") + _spec(folder, ".ignore")


def _spec(folder: str, name: str) -> _Specs:
    # Opened as text: most folders have none, and asking that way is the cheapest.
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123
            lines = file.read().splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec  # 20 ms that folders without such a file do not pay

    return ((folder, GitIgnoreSpec.from_lines(lines)),)


def _ignored(path: str, specs: _Specs) -> bool:
    """What the strongest file with an opinion says."""
    for folder, spec in specs:
        verdict = spec.check_file(path[len(folder) :]).include
        if verdict is not None:
            return verdict
    return False
