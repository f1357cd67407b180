"""The files of a folder that git would not ignore."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_Specs = tuple[tuple[str, "GitIgnoreSpec"], ...]
"""Folders that have a `.gitignore`, each with a slash at its end, the innermost first."""


def walk_files(folder: Path) -> Iterator[str]:
    """The paths of all files below `folder`, hidden ones too, in no promised order.

    Left out are `.git` and what `.gitignore` files say, from the repository's root down.
    Symlinks are left out, as ripgrep does: they may lead anywhere. A folder that cannot be read
    counts as empty.
    """
    root = os.path.abspath(folder)  # noqa: PTH100 - texts are half the time of paths here
    yield from _walk(root.rstrip("/") + "/", _specs_above(root))


def _walk(folder: str, specs: _Specs) -> Iterator[str]:
    pending = [(folder, specs)]
    while pending:
        folder, specs = pending.pop()
        specs = _spec(folder) + specs
        for entry in _entries(folder):
            path = folder + entry.name
            is_folder = _is_folder(entry)
            if specs and _ignored(f"{path}/" if is_folder else path, specs):
                continue
            if not is_folder:
                if not entry.is_symlink():
                    yield path
            elif entry.name != ".git":
                pending.append((f"{path}/", specs))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _specs_above(folder: str) -> _Specs:
    """What the folders above say, up to the one that has `.git`; nothing outside of git."""
    specs: _Specs = ()
    here = Path(folder)
    if (here / ".git").exists():
        return ()
    for above in here.parents:
        specs += _spec(f"{str(above).rstrip('/')}/")
        if (above / ".git").exists():
            return specs
    return ()


def _spec(folder: str) -> _Specs:
    # Opened as text: most folders have none, and asking that way is the cheapest.
    try:
        with open(f"{folder}.gitignore", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec  # 20 ms that folders without .gitignore do not pay

    return ((folder, GitIgnoreSpec.from_lines(lines)),)


def _ignored(path: str, specs: _Specs) -> bool:
    """What the innermost file with an opinion says."""
    for folder, spec in specs:
        verdict = spec.check_file(path[len(folder) :]).include
        if verdict is not None:
            return verdict
    return False
