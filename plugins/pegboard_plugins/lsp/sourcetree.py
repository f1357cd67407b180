"""The source files below a folder, and how they change from check to check."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

MOST_FILES = 20_000
"""So many are watched, the outer ones first: a look at them takes 0.1 to 0.2 s."""
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})
_INSTALLED = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""A folder with one of them holds what programs have put there."""

Change = Literal["Created", "Changed", "Deleted"]


class SourceTree:
    """The files of a folder as the last check found them; its methods block.

    `installed` tells whether Python packages were installed or removed since the first check, in
    the folder's own environments or in those on the `search` path.
    """

    def __init__(self, root: Path, search: str = "") -> None:
        self._root = root
        self._search = search
        self._packages = _packages(root, search)
        self.installed = False
        self._stamps = _stamps(root, ())

    def changes(self, also: Iterable[Path]) -> Mapping[str, Change]:
        """Return what changed since the last call: the folder's files, and the paths in `also`."""
        before, self._stamps = self._stamps, _stamps(self._root, also)
        self.installed |= _packages(self._root, self._search) != self._packages
        found: dict[str, Change] = {}
        for path, stamp in self._stamps.items():
            if path not in before:
                found[path] = "Created"
            elif before[path] != stamp:
                found[path] = "Changed"
        for path in before.keys() - self._stamps.keys():
            if not os.path.lexists(path):  # it may only have moved behind the last that is watched
                found[path] = "Deleted"
        return found


def source_files(root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder, outer files first; do not follow links to folders.

    Hidden folders, and those of installed packages or build results, are left out.
    """
    folders = [str(root)]
    for folder in folders:  # it grows meanwhile
        entries = _entries(folder)
        if folder != folders[0] and any(entry.name in _INSTALLED for entry in entries):
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif not entry.name.startswith(".") and entry.name not in _LEFT_OUT:
                folders.append(entry.path)


def _packages(root: Path, search: str) -> dict[Path, int]:
    """Return the modification times of the folders with Python packages."""
    programs = (Path(each) for each in search.split(os.pathsep) if each)
    found: dict[Path, int] = {}
    for environment in (root / ".venv", root / "venv", *(each.parent for each in programs)):
        if (environment / "pyvenv.cfg").exists():
            for folder in environment.glob("lib/python*/site-packages"):
                with suppress(OSError):
                    found[folder] = folder.stat().st_mtime_ns
    return found


def _stamps(root: Path, also: Iterable[Path]) -> dict[str, int]:
    """Return a number by path for each file, a hash of its size and times, to detect changes."""
    found: dict[str, int] = {}
    for entry in source_files(root):
        with suppress(OSError):
            if entry.is_file():
                found[entry.path] = _stamp(entry.stat())
        if len(found) >= MOST_FILES:
            break
    for path in also:
        with suppress(OSError):
            found[str(path)] = _stamp(path.stat())
    return found


def _stamp(facts: os.stat_result) -> int:
    return hash((facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
