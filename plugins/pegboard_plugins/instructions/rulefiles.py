"""The rule files in `.claude/rules` and `.cursor/rules`, and which files each rule is for."""

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
"""The settings with patterns of the files that a rule applies to: Claude Code's and Cursor's."""


def rule_files(folder: Path) -> Iterator[Path]:
    """Yield the rule files below a folder, sorted; symlinks are not followed."""
    found: list[Path] = []
    for count, (place, folders, names) in enumerate(os.walk(folder)):
        folders.sort()
        found += [Path(place, name) for name in sorted(names) if name.endswith(_SUFFIXES)]
        if count >= MOST_FOLDERS or len(found) >= MOST_FILES:
            break
    yield from found[:MOST_FILES]


def rule_patterns(text: str) -> tuple[str, ...] | None:
    """Return a rule's file patterns; () if it is for all files, None if it applies only on request.

    A rule of Cursor with `alwaysApply: false` and without patterns applies only on request, so its
    result is None.
    """
    settings, _ = front_matter(text)
    if settings is None:
        return ()
    patterns = tuple(pattern for name in _FITS for pattern in listed(settings.get(name)))
    if str(settings.get("alwaysApply", "true")).lower() == "true":
        return () if "alwaysApply" in settings else patterns
    return patterns or None


def fits(patterns: tuple[str, ...], path: Path) -> bool:
    """Return whether a path, relative to the project's root, matches one of the patterns."""
    for pattern in patterns:
        try:
            if glob_expression(pattern).fullmatch(path.as_posix()):
                return True
        except InvalidInputError:
            continue
    return False
