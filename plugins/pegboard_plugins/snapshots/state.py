"""The state of a worktree's files, kept up to date with as few reads as possible."""

import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pegboard.files import secret_path
from pegboard.schema.part import Staged
from pegboard.unstable import COPIED_LIMIT_BYTES
from pegboard_plugins.snapshots.apart import FREE_BYTES, Apart, LargeFiles, Traits
from pegboard_plugins.snapshots.git import Listing, ShadowGit
from pegboard_plugins.snapshots.objects import (
    EXECUTABLE,
    FILE,
    SUBMODULE,
    SYMLINK,
    Objects,
    Tree,
    TreeEntry,
    file_id,
)
from pegboard_plugins.snapshots.staging import staged

OTHERS_LIMIT_FILES = 10_000
OTHERS_LIMIT_BYTES = 128 << 20
"""More files that git does not track, or more bytes in short ones, are left out altogether."""
MOST_REMEMBERED = 100_000
"""Of more files that are left out it is not seen that one is gone."""
MOST_SKIPPED = 10_000
"""The most files with git's skip-worktree bit that are looked at."""
FRESHEN_EVERY_S = 20 * 60.0
"""Well within the time for which objects without a reference are kept."""
_RACY_NS = 20_000_000
"""Clocks of file systems are this coarse: a file this young may change without a new time."""


class _Seen(msgspec.Struct, frozen=True):
    """A file's state when it was read; if `sure`, every later change also changes its times."""

    facts: tuple[int, ...]
    entry: TreeEntry
    sure: bool


class TooMuchError(Exception):
    """An error for a folder with more files than a snapshot may take."""


class NotKeptError(Exception):
    """An error for a file that cannot be copied."""


class WorktreeState:
    """The state of a worktree's files at the last comparison; its methods block.

    Files that git reports as unchanged are not read: their ids come from the user's index. For
    secret and very long files, only the id is stored, and not the content.
    """

    def __init__(self, git: ShadowGit, objects: Objects) -> None:
        self._git = git
        self._objects = objects
        self._root = os.fsencode(git.worktree) + b"/"
        self._index: dict[bytes, TreeEntry] = {}
        self._skipped: set[bytes] = set()
        self._many: set[bytes] = set()
        self._unmerged: dict[bytes, TreeEntry] = {}
        self._index_state: tuple[int, ...] | None = None
        self._unlike_index: dict[bytes, TreeEntry | None] = {}
        self._files: dict[bytes, TreeEntry] = {}
        self._seen: dict[bytes, _Seen] = {}
        self._tree: Tree | None = None
        self.apart = Apart(self._root)
        self.traits = Traits(self._root, git.folder / "traits")
        self._had: set[bytes] = set()
        self._large = LargeFiles(git.folder / "large")
        self._flooded = False
        self._linked: dict[bytes, bool] = {}
        self.moved: dict[bytes, bytes] = {}
        self._head = ""
        self.staged: Staged | None = None
        self._freshened_at = time.monotonic()

    @property
    def tree(self) -> str | None:
        """The id of the state's tree; None before the first comparison."""
        return self._tree.id if self._tree is not None else None

    @property
    def folders(self) -> tuple[bytes, ...]:
        """The folders of all files, including the root; empty before the first comparison."""
        return self._tree.folders if self._tree is not None else ()

    @property
    def indexed_anew(self) -> bool:
        """Whether the user's index has changed since the last comparison of all files."""
        return self._git.index_state() != self._index_state

    def look(self, told: Iterable[bytes] = ()) -> frozenset[bytes]:
        """Compare all files with this state, update the state, and return the changed files' paths.

        `told` are paths that are known to be written, even ignored ones. The result includes paths
        that snapshots leave out, which `apart` records. One process of git runs, and one more for a
        new index if attributes convert files.

        :raises OSError: when git fails or an object cannot be stored.
        :raises TooMuchError: when there is no git repository and there are too many files.
        """
        self._linked.clear()
        state = self._git.index_state()
        whole = self._tree is None or state != self._index_state
        listing = self._git.listing(whole=whole)
        self._check(listing)
        if whole:
            if self._git.converts(listing):
                listing.doubtful |= self._converted(listing.indexed)
            if self._tree is not None:
                before = Listing(indexed=self._index, unmerged=self._unmerged)
                change = staged(before, listing, self._head, self._objects)
                self.staged = change or self.staged  # that of a look that failed is still there
            self._index, self._unmerged = listing.indexed, listing.unmerged
            self._skipped = listing.skipped if len(listing.skipped) <= MOST_SKIPPED else set()
            for path in (p for p, entry in listing.indexed.items() if entry.mode == SUBMODULE):
                self.apart.add(path, "submodule")
        first = self._tree is None
        self._set_apart(listing, told)
        if first:
            for path, facts, entry in self._large.remembered(self._objects):
                if path in listing.others and self._large.fits(path, facts[2]):
                    self._seen[path] = _Seen(facts, entry, sure=True)
        looked = {path: self._entry(path) for path in sorted(self._candidates(listing))}
        self._unlike_index = {
            path: entry for path, entry in looked.items() if self._index.get(path) != entry
        }
        self._head = self._git.head()
        self._large.remember({path: (s.facts, s.entry) for path, s in self._seen.items() if s.sure})
        unkept = self.apart.changed()
        self._index_state = state
        if whole:
            changed = self._take_all()
            self.traits.look(self.folders, len(self._files))
            self.apart.add_empty(self.traits.empty_folders())
            return changed if first else changed | unkept
        gone = self._files.keys() - self._index.keys() - looked.keys()
        return self._take({**looked, **dict.fromkeys(gone)}) | unkept

    def look_at(self, told: Iterable[bytes], seen: Iterable[bytes] = ()) -> frozenset[bytes]:
        """Do as `look`, but only for files that are reported as written by a call or the kernel.

        No process runs, unless some of the files are new and may be ignored.
        """
        self._linked.clear()
        known: set[bytes] = set()
        new: list[bytes] = []
        unkept: set[bytes] = set()
        for path in {*told, *seen}:
            above = self.apart.above(path)
            if above is not None:
                unkept.add(above)
            elif path in self.apart.reasons:
                unkept.add(path)
            elif path in self._files or path in self._index or path in self._skipped:
                known.add(path)
            elif path in self._many and not os.path.lexists(self._root + path):
                self.apart.add(path, "many")
                unkept.add(path)
            elif os.path.lexists(self._root + path):
                new.append(path)
        if new:
            listing = self._git.listing(whole=False, paths=new)
            known |= listing.others
            self._set_apart(listing, told)
        else:
            self._set_apart(Listing(), told)
        looked = {path: self._entry(path) for path in sorted(known)}
        self._unlike_index.update(looked)
        unkept |= self.apart.reasons.keys() & (known | set(told))
        return self._take(looked) | self.apart.changed(unkept)

    def _set_apart(self, listing: Listing, told: Iterable[bytes]) -> None:
        """Record the paths in nested repositories, and written paths that are ignored."""
        for path in listing.nested:
            self.apart.add(path, "nested")
        gone: list[bytes] = []
        for path in told:
            above = self.apart.above(path)
            if above is not None:
                self.apart.add(path, self.apart.reasons[above])
                continue
            known = path in self._files or path in self._index or path in listing.others
            if not known and os.path.lexists(self._root + path):
                self.apart.add(path, "ignored")
            elif not known and path in self._had:
                gone.append(path)
        for path in gone if self._flooded or not gone else self._git.ignored(gone):
            self.apart.add(path, "many" if self._flooded else "ignored")

    def freshen(self) -> None:
        """Protect the contents of files that differ from the index from deletion.

        No reference protects them yet. Contents that another process has deleted are stored again.
        """
        now = time.monotonic()
        if now - self._freshened_at < FRESHEN_EVERY_S:
            return
        self._freshened_at = now
        own = {path: each.oid for path, each in self._unlike_index.items() if each is not None}
        gone = self._objects.freshen(own.values())
        for path in [path for path, oid in own.items() if oid in gone]:
            self._seen.pop(path, None)
            self._entry(path)

    def entry(self, path: bytes) -> TreeEntry | None:
        """Return a file's tree entry without storing the content; None if the file is missing."""
        return _entry_of(self._root + path, self._objects, stores=False)[0]

    def copy(self, path: bytes) -> TreeEntry | None:
        """Return a file's tree entry, and store the file's content unless it is too long.

        :raises OSError: when the content cannot be stored.
        """
        return _entry_of(self._root + path, self._objects, stores=True)[0]

    def has(self, path: bytes) -> bool:
        """Return whether the state contains the file, or nothing was compared yet."""
        return self._tree is None or path in self._files or path in self._index

    def copied(self, path: bytes) -> TreeEntry | None:
        """Store a file that snapshots leave out; return its tree entry, or None if it is missing.

        The content of a secret file is not stored.

        :raises NotKeptError: when the file cannot be read, or is too long; `apart` then records it.
        """
        size = _size(self._root + path)
        if size < 0:
            return None
        hidden = secret_path(Path(os.fsdecode(path)))
        if not hidden and not self._large.fits(path, size):
            self.apart.reasons[path] = "large"
            raise NotKeptError
        entry, _ = _entry_of(self._root + path, self._objects, stores=not hidden)
        if entry is None:
            raise NotKeptError
        self._had.add(path)
        return entry

    def _check(self, listing: Listing) -> None:
        total = 0
        if len(listing.others) <= OTHERS_LIMIT_FILES:
            sizes = (_size(self._root + path) for path in listing.others)
            total = sum(size for size in sizes if size <= FREE_BYTES)
        fits = len(listing.others) <= OTHERS_LIMIT_FILES and total <= OTHERS_LIMIT_BYTES
        if fits and not self._flooded:
            return
        if not self._git.seeded:
            raise TooMuchError(
                f"{self._git.worktree} has more than {OTHERS_LIMIT_FILES:,} files or "
                f"{OTHERS_LIMIT_BYTES >> 20} MiB and is no git repository"
            )
        self._flooded = True
        for path in self._many - listing.others:
            if not os.path.lexists(self._root + path):
                self.apart.add(path, "many")
        self._many = listing.others if len(listing.others) <= MOST_REMEMBERED else set()
        listing.others = {path for path in listing.others if path in self._files}

    def _converted(self, indexed: Mapping[bytes, TreeEntry]) -> set[bytes]:
        """Return the files whose size differs from their blob's, as line-end conversion causes."""
        new = {path: entry for path, entry in indexed.items() if self._index.get(path) != entry}
        sizes = self._git.sizes(tuple({entry.oid for entry in new.values()}))
        return {
            path
            for path, entry in new.items()
            if (size := sizes.get(entry.oid)) is not None and size != _size(self._root + path)
        }

    def _candidates(self, listing: Listing) -> set[bytes]:
        """Return the files to compare, including files that differed from the index before."""
        converted = self._unlike_index.keys() & self._index.keys()
        skipped = (p for p in self._skipped if p in self._files or os.path.lexists(self._root + p))
        return listing.doubtful.union(listing.others, converted, skipped)

    def _entry(self, path: bytes) -> TreeEntry | None:
        tracked = path in self._index
        name = self._root + path
        try:
            if self._is_behind_link(path):
                raise NotADirectoryError
            facts = os.lstat(name)
        except (OSError, ValueError):
            self._seen.pop(path, None)
            return None
        if stat.S_ISDIR(facts.st_mode):
            known = self._index.get(path)
            return known if known is not None and known.mode == SUBMODULE else None
        seen = self._seen.get(path)
        if seen is not None and seen.sure and seen.facts == _facts(facts):
            return seen.entry
        if not tracked and path not in self._files and not self._fits(path, facts.st_size):
            return None
        looked_at = time.time_ns()
        hidden = secret_path(Path(os.fsdecode(path)))  # a copy would lie where nobody expects it
        entry, read = _entry_of(name, self._objects, stores=not hidden)
        if entry is None or read is None:
            return None
        sure = looked_at - max(read.st_mtime_ns, read.st_ctime_ns) > _RACY_NS
        self._seen[path] = _Seen(_facts(read), entry, sure)
        return entry

    def _is_behind_link(self, path: bytes) -> bool:
        """Return whether a parent folder is a symlink, so that the path means another file."""
        folder = path.rpartition(b"/")[0]
        if not folder:
            return False
        if folder not in self._linked:
            is_link = os.path.islink(self._root + folder)  # noqa: PTH114 - a path of bytes
            self._linked[folder] = is_link or self._is_behind_link(folder)
        return self._linked[folder]

    def _fits(self, path: bytes, size: int) -> bool:
        """Return whether snapshots can copy an untracked file; if not, record the reason."""
        self.apart.forget_folder(path)
        if self._flooded:
            self.apart.add(path, "many")
        elif path not in self.apart.reasons and not self._large.fits(path, size):
            self.apart.add(path, "large")
        return path not in self.apart.reasons

    def _take_all(self) -> frozenset[bytes]:
        files = {**self._index, **{p: e for p, e in self._unlike_index.items() if e is not None}}
        for path, entry in self._unlike_index.items():
            if entry is None:
                files.pop(path, None)
        if self._tree is None:
            self._files = files
            self._tree = Tree(files, self._objects)
            return frozenset()
        different = {path for path, _ in self._files.items() ^ files.items()}
        return self._take({path: files.get(path) for path in different})

    def _take(self, looked: Mapping[bytes, TreeEntry | None]) -> frozenset[bytes]:
        assert self._tree is not None
        changed = {p: entry for p, entry in looked.items() if self._files.get(p) != entry}
        self.moved = {}
        if not changed:
            return frozenset()
        gone = {self._files[path].oid: path for path, entry in changed.items() if entry is None}
        self.moved = {
            path: gone[entry.oid]
            for path, entry in changed.items()
            if entry is not None and entry.oid in gone
        }
        self._tree.change(changed)
        for path, entry in changed.items():
            if entry is None:
                self._files.pop(path, None)
            else:
                self._files[path] = entry
        return frozenset(changed)


def _entry_of(
    name: bytes, objects: Objects, *, stores: bool
) -> tuple[TreeEntry | None, os.stat_result | None]:
    """Return the tree entry of a file, and the file's status before it was read."""
    try:
        facts = os.lstat(name)
        if stat.S_ISLNK(facts.st_mode):
            target = os.readlink(name)  # noqa: PTH115 - a path of bytes
            return TreeEntry(SYMLINK, objects.blob(target, stores=stores)), facts
        if not stat.S_ISREG(facts.st_mode):
            return None, facts
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None, None
    with os.fdopen(file, "rb", buffering=0) as content:
        facts = os.fstat(file)
        mode = EXECUTABLE if facts.st_mode & stat.S_IXUSR else FILE
        if facts.st_size > COPIED_LIMIT_BYTES:
            return TreeEntry(mode, file_id(file, facts.st_size, objects.algorithm)), facts
        return TreeEntry(mode, objects.blob(content.read(facts.st_size), stores=stores)), facts


def _facts(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


def _size(name: bytes) -> int:
    try:
        return os.lstat(name).st_size
    except (OSError, ValueError):
        return -1
