"""The rules of a folder `.claude/rules` or `.cursor/rules`, some of them for certain files."""

import os
from collections.abc import Iterator
from pathlib import Path

from pegboard.errors import InvalidInputError
from pegboard.files import glob_expression
from pegboard_plugins.shared.frontend import front_matter, listed

MOST_FILES = 100
MOST_FOLDERS = 100
_SUFFIXES = (".md", ".mdc")
_FITS = ("paths", "globs")
"""The settings that say which files a rule is for: Claude Code's and Cursor's."""


def rule_files(folder: Path) -> Iterator[Path]:
    """Yield the rule files in a folder and those in it, sorted; no link is followed."""
    found: list[Path] = []
    for count, (place, folders, names) in enumerate(os.walk(folder)):
        folders.sort()
        found += [Path(place, name) for name in sorted(names) if name.endswith(_SUFFIXES)]
        if count >= MOST_FOLDERS or len(found) >= MOST_FILES:
            break
    yield from found[:MOST_FILES]


def rule_patterns(text: str) -> tuple[str, ...] | None:
    """Return the patterns of the files that a rule is for, () for all; None if it never counts.

    A rule of Cursor with `alwaysApply: false` and without patterns waits to be asked for.
    """
    settings, _ = front_matter(text)
    if settings is None:
        return ()
    patterns = tuple(pattern for name in _FITS for pattern in listed(settings.get(name)))
    if str(settings.get("alwaysApply", "true")).lower() == "true":
        return () if "alwaysApply" in settings else patterns
    return patterns or None


def fits(patterns: tuple[str, ...], path: Path) -> bool:
    """Return whether a path below the project's root is one of those that patterns name."""
    for pattern in patterns:
        try:
            if glob_expression(pattern).fullmatch(path.as_posix()):
                return True
        except InvalidInputError:
            continue
    return False
