"""The files that the wildcards of a line fit when it is judged."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pegboard.kit import resolved_path
from pegboard_files import secret_path, shell_escape, shell_paths
from pegboard_plugins.bash.findings import Glob
from pegboard_plugins.bash.scan import Scan

MOST_MATCHES = 2000
"""So many files that a wildcard fits are looked at by name."""


def looked_up(found: Scan, command: str) -> Scan:
    """Return what a line does, with the files that its wildcards fit.

    A wildcard that is written names all of them, but for `folder/*` of which all is deleted. Of one
    that is read it names secrets, and what lies outside of its folder, behind a link.
    """
    paths, writes = dict.fromkeys(found.paths), dict.fromkeys(found.writes)
    reads = dict.fromkeys(found.reads)
    for each in found.globs:
        folder = resolved_path(each.folder)
        is_emptied = each.path == f"{each.folder}/*" and each.pattern in found.destroys
        for text in _matches(each, command):
            path, real = Path(text), Path(_real(text))
            is_secret = secret_path(path) or secret_path(real)
            if is_secret or not real.is_relative_to(folder):
                paths[path] = None
            if each.is_written and not is_emptied:
                writes[path] = None
            if each.is_written and is_secret:  # it may get another name
                reads[path] = None
    return found._replace(paths=tuple(paths), writes=tuple(writes), reads=tuple(reads))


def _matches(each: Glob, command: str) -> Iterator[str]:
    """The files that it fits, also in one that need not be there yet; else its own text."""
    deep = "globstar" in command
    found = [*islice(shell_paths(each.pattern, deep=deep), MOST_MATCHES)]
    folder, _, name = each.pattern.rpartition("/")
    if not found and each.is_written and shell_escape(name) == name:
        folders = shell_paths(folder.rstrip("/"), deep=deep)
        found = [f"{placed}/{name}" for placed in islice(folders, MOST_MATCHES)]
    yield from found or [each.path]


def _real(text: str) -> str:
    folder, _, name = text.rstrip("/").rpartition("/")
    is_link = os.path.islink(text)  # noqa: PTH114 - a text
    return resolved_path(text) if is_link else f"{resolved_path(folder or '/').rstrip('/')}/{name}"
