"""Files that snapshots leave out: long or ignored files, nested repositories, modes, empty folders.

Changes of these files are detected, so that a revert can list them. Some long files that git does
not track are copied. A record on the disk saves a new process from reading them again.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.schema.part import Unkept
from pegboard.unstable import COPIED_LIMIT_BYTES
from pegboard_plugins.snapshots.objects import Objects, TreeEntry

MOST_BELOW = 2_000
"""Of a repository in the worktree so many entries are looked at."""

MOST_LOOKED_AT = 10_000
"""In a worktree with more files and folders the permissions are not looked at: it takes long."""
EMPTY = 1 << 16
"""Marks an empty folder among the permissions."""
_USUAL_FILE = frozenset({0o644, 0o755, 0o664, 0o775})
_USUAL_FOLDER = frozenset({0o755, 0o775})
_Facts = tuple[int, ...]


class Apart:
    """The paths below `root` that snapshots leave out, with file facts that reveal a change.

    A path stays recorded for good. Otherwise its file would look new, and a revert would remove it.
    """

    def __init__(self, root: bytes) -> None:
        self.reasons: dict[bytes, Unkept] = {}
        self.times: dict[bytes, int] = {}
        self._root = root
        self._facts: dict[bytes, _Facts] = {}

    def add(self, path: bytes, reason: Unkept) -> None:
        """Record that snapshots leave out the path from now on, with the reason."""
        self.reasons.setdefault(path, reason)

    def add_empty(self, folders: Collection[bytes]) -> None:
        """Record these folders as empty ones, so that their removal is noticed."""
        for path in folders:
            self.add(path, "empty")
        self.changed(folders)

    def forget_folder(self, path: bytes) -> None:
        """Allow a path in trees again: if it was an empty folder, it has become a file."""
        if self.reasons.get(path) == "empty":
            del self.reasons[path]

    def above(self, path: bytes) -> bytes | None:
        """Return the nested repository or submodule around the path, or None without one."""
        here = path
        while here:
            here = here.rpartition(b"/")[0]
            if self.reasons.get(here) in ("nested", "submodule"):
                return here
        return None

    def changed(self, paths: Iterable[bytes] | None = None) -> frozenset[bytes]:
        """Return which of the paths, or of all left-out ones, changed since the last check."""
        found: set[bytes] = set()
        for path in self.reasons if paths is None else paths:
            facts = self._look(path)
            if self._facts.get(path) != facts:
                found.add(path)
                self._facts[path] = facts
        return frozenset(found)

    def _look(self, path: bytes) -> _Facts:
        facts = facts_of(self._root + path)
        if self.reasons[path] == "empty":
            return (bool(facts),)  # what is in it has paths of its own
        if self.reasons[path] in ("nested", "submodule"):
            newest, total = _below(self._root + path)
            self.times[path] = newest
            if not facts:
                del self.times[path]  # it is gone: its folder tells when
            return (newest, total)
        return facts


def facts_of(name: bytes) -> _Facts:
    """Return numbers that change whenever the file changes; () for a missing file."""
    try:
        found = os.lstat(name)
    except (OSError, ValueError):
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


def _below(folder: bytes) -> tuple[int, int]:
    """Return the time of the last change below a folder, and the number of entries below it.

    The content of `.git` folders is not counted, because reading a repository writes there.
    """
    newest, count = 0, 0
    waiting = [folder]
    while waiting and count < MOST_BELOW:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name == b".git":
                        continue
                    facts = entry.stat(follow_symlinks=False)
                    newest, count = max(newest, facts.st_ctime_ns), count + 1
                    if stat.S_ISDIR(facts.st_mode):
                        waiting.append(bytes(entry.path))
                    if count >= MOST_BELOW:
                        break
        except OSError:
            continue
    return newest, count


class Traits:
    """The permissions of files and folders in a worktree, and its empty folders.

    The file `place` stores them for the process that reverts. Default permissions are left out.
    """

    def __init__(self, root: bytes, place: Path) -> None:
        self._root = root
        self._place = place
        self._known: tuple[int, dict[bytes, int]] = (0, {})

    def look(self, folders: Collection[bytes], files: int) -> None:
        """Record the permissions of folders and their content, and which folders are empty.

        Nothing is recorded for more than `MOST_LOOKED_AT` files and folders.
        """
        if files + len(folders) > MOST_LOOKED_AT:
            return
        known = self._read()
        found = {path: mode for folder in folders for path, mode in self._seen(folder, folders)}
        found |= {
            path: mode
            for path, mode in known.items()
            if mode & EMPTY or not os.path.lexists(self._root + path)
        }
        if found != known:
            content = {os.fsdecode(path): mode for path, mode in found.items()}
            with suppress(OSError, UnicodeError):  # then they come back with usual ones
                replaced = self._place.with_name(f"{self._place.name}.{os.urandom(6).hex()}")
                replaced.write_bytes(msgspec.json.encode(content))
                replaced.replace(self._place)

    def mode_of(self, path: bytes) -> int | None:
        """Return the recorded permissions of a file or folder, or None for the default ones."""
        return self._read().get(path, 0) & 0o777 or None

    def empty_folders(self, below: bytes = b"") -> tuple[bytes, ...]:
        """Return the recorded empty folders; with `below`, only the folders below this folder."""
        found = (path for path, mode in self._read().items() if mode & EMPTY)
        return tuple(path for path in found if path.startswith(below + b"/" if below else b""))

    def _seen(self, folder: bytes, folders: Collection[bytes]) -> Iterator[tuple[bytes, int]]:
        try:
            with os.scandir(self._root + folder) as entries:
                found = [(entry, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError:
            return
        for entry, facts in found:
            path = folder + b"/" + entry.name if folder else entry.name
            mode, is_folder = facts.st_mode & 0o777, stat.S_ISDIR(facts.st_mode)
            is_empty = is_folder and path not in folders and _is_empty(entry.path)
            usual = _USUAL_FOLDER if is_folder else _USUAL_FILE
            if is_empty:
                yield path, mode | EMPTY
                yield from self._seen(path, folders)
            elif not stat.S_ISLNK(facts.st_mode) and mode not in usual:
                yield path, mode

    def _read(self) -> dict[bytes, int]:
        """Return the recorded permissions; read them again if another process changed the file."""
        try:
            written_ns = self._place.stat().st_mtime_ns
            if written_ns != self._known[0]:
                known = msgspec.json.decode(self._place.read_bytes(), type=dict[str, int])
                modes = {os.fsencode(path): mode for path, mode in known.items()}
                self._known = (written_ns, modes)
        except (OSError, msgspec.MsgspecError):
            return {}
        return self._known[1]


def _is_empty(folder: bytes) -> bool:
    """Return whether a folder contains no files at any depth."""
    try:
        with os.scandir(folder) as entries:
            return all(
                entry.is_dir(follow_symlinks=False) and _is_empty(entry.path) for entry in entries
            )
    except (OSError, RecursionError):
        return False


FREE_BYTES = 2 << 20
"""Files up to this are not counted."""
LIMIT_BYTES = 500 << 20
"""Of all long files together."""


class _Known(msgspec.Struct, frozen=True):
    facts: tuple[int, ...]
    mode: bytes
    oid: bytes


class LargeFiles:
    """The long files of which snapshots store a copy; the file `place` lists them."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._sizes: dict[bytes, int] = {}
        self._known: dict[str, _Known] = {}

    def fits(self, path: bytes, size: int) -> bool:
        """Return whether a file of this size may be copied; if so, reserve the space for it."""
        if size <= FREE_BYTES:
            return True
        taken = sum(self._sizes.values()) - self._sizes.get(path, 0)
        if size > COPIED_LIMIT_BYTES or taken + size > LIMIT_BYTES:
            return False
        self._sizes[path] = size
        return True

    def remembered(self, objects: Objects) -> Iterator[tuple[bytes, tuple[int, ...], TreeEntry]]:
        """Yield the listed files that still have a copy, each with file facts and a tree entry."""
        try:
            known = msgspec.json.decode(self._place.read_bytes(), type=dict[str, _Known])
        except (OSError, msgspec.MsgspecError):
            return
        gone = objects.freshen([each.oid for each in known.values()])
        for name, each in known.items():
            if each.oid not in gone:
                self._known[name] = each
                path = name.encode()
                yield path, each.facts, TreeEntry(each.mode, each.oid)

    def remember(self, found: Mapping[bytes, tuple[tuple[int, ...], TreeEntry]]) -> None:
        """Record which long files were copied, unless the record is the same as before."""
        known = {
            path.decode(): _Known(found[path][0], *found[path][1])
            for path in self._sizes
            if path in found and _is_text(path)
        }
        if known == self._known:
            return
        self._known = known
        temporary = self._place.with_name(f"{self._place.name}.{os.urandom(6).hex()}")
        temporary.write_bytes(msgspec.json.encode(known))
        temporary.replace(self._place)


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
