"""Git's loose objects and trees, written and read without a process of git.

An object is a file, named by the hash of its content, and is created by a rename. Processes can
therefore share the folder without a lock. Of the trees of a worktree, only the changed ones are
computed and stored.
"""

import errno
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

FOLDER = b"40000"
FILE = b"100644"
EXECUTABLE = b"100755"
SYMLINK = b"120000"
SUBMODULE = b"160000"
QUICK_LEVEL = 1
"""Snapshots are written far more often than they are read: least effort of compression."""
COMPRESSED_LIMIT_BYTES = 2 << 20
"""Longer contents are mostly packed already, and a tool waits for this."""
_CHUNK_BYTES = 1 << 20
_READ_ONLY = 0o444
_TEMPORARY = "tmp_"
_STAGED = re.compile(rb":([0-3]):")
Algorithm = Literal["sha1", "sha256"]
"""The hashes that git can name objects by (git-init: --object-format)."""
_HASHES = {"sha1": hashlib.sha1, "sha256": hashlib.sha256}


class TreeEntry(NamedTuple):
    """The entry of a path in a tree: git's mode (`FILE`, `FOLDER`, ...) and an object's id."""

    mode: bytes
    oid: bytes


def stage_name(path: bytes, stage: bytes = b"0") -> bytes:
    """Return the path for stage 0, else git's form of the path with a stage, `:1:path`."""
    return path if stage == b"0" and not _STAGED.match(path) else b":%s:%s" % (stage, path)


def path_and_stage(name: bytes) -> tuple[bytes, bytes]:
    """Return the path and the stage in a name that `stage_name` made."""
    found = _STAGED.match(name)
    return (name[found.end() :], found[1]) if found else (name, b"0")


def object_id(kind: str, content: bytes, algorithm: Algorithm = "sha1") -> bytes:
    """Return git's id of a content, in hexadecimal digits."""
    head = f"{kind} {len(content)}\0".encode()
    return _HASHES[algorithm](head + content, usedforsecurity=False).hexdigest().encode()


def file_id(file: int, size: int, algorithm: Algorithm = "sha1") -> bytes:
    """Return the blob id of the first `size` bytes of an open file, read in chunks."""
    digest = _HASHES[algorithm](f"blob {size}\0".encode(), usedforsecurity=False)
    while size and (chunk := os.read(file, min(size, _CHUNK_BYTES))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode()


class NoRoomError(OSError):
    """An error for a disk without free space beyond the space reserved for other data."""


class Objects:
    """The loose objects of a Git repository; every method may raise `OSError`."""

    def __init__(self, folder: Path, algorithm: Algorithm = "sha1") -> None:
        self._folder = folder
        self.algorithm = algorithm
        self.empty_tree = object_id("tree", b"", algorithm)
        self._known: set[bytes] = set()
        self._room: int | None = None

    @contextmanager
    def sparing(self, reserve_bytes: int) -> Iterator[None]:
        """Make `put` raise `NoRoomError` in the `with` block if it would use reserved space."""
        places = (self._folder, *self._folder.parents)
        facts = os.statvfs(next(place for place in places if place.exists()))
        self._room = facts.f_bavail * facts.f_frsize - reserve_bytes
        try:
            yield
        finally:
            self._room = None

    def put(self, kind: str, content: bytes) -> bytes:
        """Store a content unless it is stored already, set its time to now, and return its id."""
        oid = object_id(kind, content, self.algorithm)
        if oid in self._known:
            return oid
        place = self._place(oid)
        if not _touched(place):
            head = f"{kind} {len(content)}\0".encode()
            level = QUICK_LEVEL if len(content) <= COMPRESSED_LIMIT_BYTES else 0
            packed = zlib.compress(head + content, level)
            if self._room is not None:
                self._room -= len(packed)
                if self._room < 0:
                    raise NoRoomError(errno.ENOSPC, "the disk is nearly full")
            _write(place, packed)
        self._known.add(oid)
        return oid

    def blob(self, content: bytes, *, stores: bool) -> bytes:
        """Return the id of a file's content; with `stores`, store the content too."""
        return self.put("blob", content) if stores else object_id("blob", content, self.algorithm)

    def freshen(self, oids: Iterable[bytes]) -> set[bytes]:
        """Set objects' times to now, to protect them from deletion; return which are missing.

        Afterwards `put` looks for each object on the disk again, because other processes may have
        deleted it.
        """
        self._known.clear()
        return {oid for oid in oids if not _touched(self._place(oid))}

    def get(self, oid: bytes) -> bytes | None:
        """Return the content of an object, or None if it is missing or damaged.

        A damaged object is deleted, because `put` would not store it again, and git would fail on
        it.
        """
        try:
            raw = zlib.decompress(self._place(oid).read_bytes())
        except zlib.error:
            raw = b""
        except OSError:
            return None
        head, _, content = raw.partition(b"\0")
        kind = head.partition(b" ")[0].decode(errors="replace")
        if object_id(kind, content, self.algorithm) == oid:
            return content
        with suppress(OSError):
            self.drop(oid)
        return None

    def has(self, oid: bytes) -> bool:
        """Return whether the object exists."""
        return self._place(oid).exists()

    def all(self) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield the id of each object, with the status of its file."""
        for folder in self._folder.glob("[0-9a-f][0-9a-f]"):
            with os.scandir(folder) as files:
                for file in files:
                    if len(folder.name) + len(file.name) == len(self.empty_tree):
                        yield f"{folder.name}{file.name}".encode(), file.stat()

    def sweep(self, older: float) -> int:
        """Delete unfinished files last changed before the time `older`; return the freed bytes."""
        freed = 0
        for file in self._folder.glob(f"[0-9a-f][0-9a-f]/{_TEMPORARY}*"):
            with suppress(FileNotFoundError):
                facts = file.stat()
                if facts.st_mtime < older:
                    file.unlink()
                    freed += facts.st_size
        return freed

    def drop(self, oid: bytes) -> None:
        """Delete the object, if it exists."""
        self._known.discard(oid)
        self._place(oid).unlink(missing_ok=True)

    def _place(self, oid: bytes) -> Path:
        name = oid.decode()
        return self._folder / name[:2] / name[2:]


def tree_content(entries: dict[bytes, TreeEntry]) -> bytes:
    """Return a tree object with these entries, in git's order."""
    ordered = sorted(
        entries.items(), key=lambda item: item[0] + b"/" if item[1].mode == FOLDER else item[0]
    )
    return b"".join(
        entry.mode + b" " + name + b"\0" + bytes.fromhex(entry.oid.decode())
        for name, entry in ordered
    )


def tree_entries(content: bytes, algorithm: Algorithm = "sha1") -> dict[bytes, TreeEntry]:
    """Parse a tree object; return its entries by name."""
    id_bytes = _HASHES[algorithm]().digest_size
    entries: dict[bytes, TreeEntry] = {}
    place = 0
    while place < len(content):
        end = content.index(b"\0", place)
        mode, _, name = content[place:end].partition(b" ")
        place = end + 1 + id_bytes
        entries[name] = TreeEntry(mode, content[end + 1 : place].hex().encode())
    return entries


def _touched(place: Path) -> bool:
    """Set a file's time to now; return False if the file does not exist."""
    try:
        os.utime(place)
    except FileNotFoundError:
        return False
    return True


def _write(place: Path, content: bytes) -> None:
    """Write a file atomically, without a sync: a lost object only costs the user an undo."""
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f"{_TEMPORARY}{os.urandom(8).hex()}")
    try:
        temporary.write_bytes(content)
        temporary.chmod(_READ_ONLY)
        temporary.replace(place)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


class Tree:
    """The state of all files of a worktree, with one git tree object per folder.

    A folder's tree object is stored before and after each change of the folder, so that any two
    states can be compared later.
    """

    def __init__(self, files: Mapping[bytes, TreeEntry], objects: Objects) -> None:
        self._objects = objects
        self._folders: dict[bytes, dict[bytes, TreeEntry]] = {b"": {}}
        for path, entry in files.items():
            folder, _, name = path.rpartition(b"/")
            known = self._folders.get(folder)
            if known is None:
                known = self._folders[folder] = {}
            known[name] = entry
        self._id = objects.empty_tree
        self._refresh(self._with_parents(self._folders), store=False)

    @property
    def id(self) -> str:
        """The object id of the tree's root folder."""
        return self._id.decode()

    @property
    def folders(self) -> tuple[bytes, ...]:
        """The folders that contain files, and the folders above these."""
        return tuple(self._folders)

    def change(self, files: Mapping[bytes, TreeEntry | None]) -> None:
        """Apply the new entries of files; None deletes a file."""
        before = self._with_parents(path.rpartition(b"/")[0] for path in files)
        for folder in before & self._folders.keys():
            self._objects.put("tree", tree_content(self._folders[folder]))
        for path, entry in files.items():
            folder, _, name = path.rpartition(b"/")
            if entry is not None:
                self._folders.setdefault(folder, {})[name] = entry
            elif path not in self._folders:
                self._folders.get(folder, {}).pop(name, None)
        self._refresh(before, store=True)

    def _with_parents(self, folders: Iterable[bytes]) -> set[bytes]:
        found = {b""}
        for folder in folders:
            here = folder
            while here not in found:
                found.add(here)
                here = here.rpartition(b"/")[0]
        return found

    def _refresh(self, folders: set[bytes], *, store: bool) -> None:
        """Compute the ids of folders' tree objects, deepest folder first; drop empty folders."""
        for folder in sorted(folders, key=lambda path: path.count(b"/") if path else -1)[::-1]:
            content = tree_content(self._folders.get(folder, {}))
            oid = (
                self._objects.put("tree", content)
                if store
                else object_id("tree", content, self._objects.algorithm)
            )
            if not folder:
                self._id = oid
                return
            parent, _, name = folder.rpartition(b"/")
            if content:
                self._folders.setdefault(parent, {})[name] = TreeEntry(FOLDER, oid)
                continue
            self._folders.pop(folder, None)
            entries = self._folders.get(parent, {})
            if name in entries and entries[name].mode == FOLDER:
                del entries[name]


def tree_of(files: Mapping[bytes, TreeEntry | None], objects: Objects) -> str:
    """Store a tree with only these files, and return its id."""
    tree = Tree({}, objects)
    tree.change(files)
    return tree.id


class MissingObjectError(LookupError):
    """An error for a deleted object of a snapshot, which makes a file's content unknown."""


class StoredTrees:
    """A reader of files in stored trees, which reads each tree once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._read: dict[bytes, dict[bytes, TreeEntry]] = {objects.empty_tree: {}}

    def look_up(self, tree: str, path: bytes) -> TreeEntry | None:
        """Return the entry of a path in a tree, or None if the tree has no file there.

        :raises MissingObjectError: when a tree on the path was deleted: the entry is unknown.
        """
        here = TreeEntry(FOLDER, tree.encode())
        for name in path.split(b"/"):
            if here.mode != FOLDER:
                return None
            if here.oid not in self._read:
                content = self._objects.get(here.oid)
                if content is None:
                    raise MissingObjectError(f"the snapshot {tree} is not complete any more")
                self._read[here.oid] = tree_entries(content, self._objects.algorithm)
            found = self._read[here.oid].get(name)
            if found is None:
                return None
            here = found
        return here if here.mode != FOLDER else None
