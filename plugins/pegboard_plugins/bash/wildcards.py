"""The files that the wildcards of a shell line match on disk before the line runs."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pegboard.files import resolved_path, secret_path
from pegboard.unstable import protected_path, shell_escape, shell_paths, shell_unescape
from pegboard_plugins.bash.destroying import deletes
from pegboard_plugins.bash.findings import Glob
from pegboard_plugins.bash.listed import gone, listed_files
from pegboard_plugins.bash.scan import Scan

MOST_MATCHES = 2000
"""So many files that a wildcard fits are looked at by name."""


def looked_up(found: Scan, command: str) -> Scan:
    """Return the scan with the files that wildcards and listings of the line match.

    Written wildcards add all matches, except `folder/*` if it is deleted. Read wildcards add
    secrets, and files that a link leads to.
    """
    paths, writes = dict.fromkeys(found.paths), dict.fromkeys(found.writes)
    reads = dict.fromkeys(found.reads)
    for each in found.globs:
        folder = resolved_path(each.folder)
        is_emptied = each.path == f"{each.folder}/*" and each.pattern in found.destroys
        for text in _words(each, command):
            path, real = Path(text), Path(_real(text))
            is_secret = secret_path(path) or secret_path(real)
            if is_secret or not real.is_relative_to(folder):
                paths[path] = None
            if each.is_written and not is_emptied:
                writes[path] = None
            if each.is_written and is_secret:  # it may get another name
                reads[path] = None
    if found.listings:
        _look_up_listed(found, paths, writes, reads)
    destroys = dict.fromkeys((*found.destroys, *gone(found.lost)))
    return found._replace(
        paths=tuple(paths), writes=tuple(writes), reads=tuple(reads), destroys=tuple(destroys)
    )


def _look_up_listed(
    found: Scan, paths: dict[Path, None], writes: dict[Path, None], reads: dict[Path, None]
) -> None:
    """Add the files of listings to the paths, writes and reads of the shell line.

    Secrets are added as read. As written, all files of a `find` are added, and otherwise protected
    files.
    """
    tracked = _index(found) if found.reads_listed else b""
    for listing in found.listings:
        is_written = found.writes_listed or deletes(listing.texts)
        for path in map(Path, listed_files(listing)):
            if listing.is_find and secret_path(path):
                paths[path] = None
                reads |= {path: None} if is_written else {}
            is_shown = listing.is_tracked and os.fsencode(path.name) in tracked
            if is_shown and secret_path(path):
                paths[path] = None
            if is_written and (listing.is_find or _runs(path, found)):
                writes[path] = None


def _index(found: Scan) -> bytes:
    """Return the bytes of the project's git index, which has the names of tracked files."""
    place = found.place
    root = None if place is None else place.worktree
    try:
        return b"" if root is None else (root / ".git" / "index").read_bytes()
    except OSError:
        return b""


def _runs(path: Path, found: Scan) -> bool:
    """Return whether a file is protected, for example because programs run the file."""
    place = found.place
    return place is not None and bool(
        protected_path(path, worktree=place.worktree or place.cwd, home=place.home)
    )


def _words(each: Glob, command: str) -> Iterator[str]:
    """Yield the files that a wildcard matches, and the words into which the shell splits names."""
    for text in _matches(each, command):
        yield text
        name = text.removeprefix(each.base)
        if each.base and len(parts := name.split()) > 1:
            yield from (part if part.startswith("/") else each.base + part for part in parts)


def _matches(each: Glob, command: str) -> Iterator[str]:
    """Yield the files that a wildcard matches.

    Without a match, yield the wildcard's own text, and the file that a write might create.
    """
    deep = "globstar" in command
    found = [*islice(shell_paths(each.pattern, deep=deep), MOST_MATCHES)]
    if found:
        yield from found
        return
    folder, _, name = each.pattern.rpartition("/")
    if each.is_written and shell_escape(name) == name:
        folders = shell_paths(folder.rstrip("/"), deep=deep)
        yield from (f"{placed}/{name}" for placed in islice(folders, MOST_MATCHES))
    yield from dict.fromkeys((each.path, shell_unescape(each.path)))


def _real(text: str) -> str:
    folder, _, name = text.rstrip("/").rpartition("/")
    is_link = os.path.islink(text)  # noqa: PTH114 - a text
    return resolved_path(text) if is_link else f"{resolved_path(folder or '/').rstrip('/')}/{name}"
