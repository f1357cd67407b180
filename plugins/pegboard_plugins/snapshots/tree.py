"""The files of a worktree as git's trees, of which only what changes is computed and stored."""

from collections.abc import Iterable, Mapping

from pegboard_plugins.snapshots.objects import (
    FOLDER,
    Entry,
    Objects,
    object_id,
    tree_content,
    tree_entries,
)

EMPTY_TREE = object_id("tree", b"")


class Tree:
    """The state of all files, folder by folder.

    A folder is stored as an object when something in it is about to change, and again after
    that: whatever differs between two states that were taken here can be read later.
    """

    def __init__(self, files: Mapping[bytes, Entry], objects: Objects) -> None:
        self._objects = objects
        self._folders: dict[bytes, dict[bytes, Entry]] = {b"": {}}
        for path, entry in files.items():
            folder, _, name = path.rpartition(b"/")
            known = self._folders.get(folder)
            if known is None:
                known = self._folders[folder] = {}
            known[name] = entry
        self._id = EMPTY_TREE
        self._refresh(self._with_parents(self._folders), store=False)

    @property
    def id(self) -> str:
        """The id of the whole."""
        return self._id.decode()

    @property
    def folders(self) -> tuple[bytes, ...]:
        """The folders that have files, and those above them."""
        return tuple(self._folders)

    def change(self, files: Mapping[bytes, Entry | None]) -> None:
        """Take the new states of files in; None is a file that is gone."""
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
        """Compute the ids of these folders, the deepest first; empty ones go."""
        for folder in sorted(folders, key=lambda path: path.count(b"/") if path else -1)[::-1]:
            content = tree_content(self._folders.get(folder, {}))
            oid = self._objects.put("tree", content) if store else object_id("tree", content)
            if not folder:
                self._id = oid
                return
            parent, _, name = folder.rpartition(b"/")
            if content:
                self._folders.setdefault(parent, {})[name] = Entry(FOLDER, oid)
                continue
            self._folders.pop(folder, None)
            entries = self._folders.get(parent, {})
            if name in entries and entries[name].mode == FOLDER:
                del entries[name]


def tree_of(files: Mapping[bytes, Entry | None], objects: Objects) -> str:
    """The id of a stored tree that has these files alone."""
    tree = Tree({}, objects)
    tree.change(files)
    return tree.id


class MissingObjectError(LookupError):
    """An object of a snapshot is gone, so nothing can be said about the file."""


def look_up(tree: str, path: bytes, objects: Objects) -> Entry | None:
    """The file at a path of a stored tree, None where the tree has none there.

    :raises MissingObjectError: when a tree on the way is not there; this is never "no file".
    """
    here = Entry(FOLDER, tree.encode())
    for name in path.split(b"/"):
        if here.mode != FOLDER:
            return None
        content = b"" if here.oid == EMPTY_TREE else objects.get(here.oid)
        if content is None:
            raise MissingObjectError(f"the snapshot {tree} is not complete any more")
        found = tree_entries(content).get(name)
        if found is None:
            return None
        here = found
    return here if here.mode != FOLDER else None
