"""Restored files in a worktree: written atomically, and never through a symlink.

It also computes the diff of a file between two states.
"""

import os
import stat
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from pegboard.files import diff_texts, secret_path
from pegboard.schema.session import FileDiff
from pegboard.snapshots import Left, RestoreWay
from pegboard.unstable import copy_traits, temporary_beside
from pegboard_plugins.snapshots.apart import Traits
from pegboard_plugins.snapshots.objects import (
    EXECUTABLE,
    SUBMODULE,
    SYMLINK,
    MissingObjectError,
    Objects,
    StoredTrees,
    TreeEntry,
)


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one file, which becomes `wanted` if its current state is `expected`.

    None means that the file does not exist.
    """

    path: bytes
    expected: TreeEntry | None
    wanted: TreeEntry | None

    @property
    def is_secret(self) -> bool:
        """Whether the file may hold secrets, so that its content is never stored."""
        return secret_path(Path(os.fsdecode(self.path)))


def moves_of(
    ways: Mapping[Path, RestoreWay], root: Path, objects: Objects
) -> tuple[list[Move], list[Left]]:
    """Return the changes of files, removals first, and the files with a state no longer stored."""
    trees = StoredTrees(objects)
    moves, lost = [], []
    for path, way in ways.items():
        if not path.is_relative_to(root) or ".." in path.parts:  # of an import
            lost.append(Left(path=path, reason="lost"))
            continue
        name = os.fsencode(path.relative_to(root))
        if way.before == way.after:  # of an empty folder, which no tree has
            moves.append(Move(path=name, expected=None, wanted=None))
            continue
        try:
            before, after = trees.look_up(way.before, name), trees.look_up(way.after, name)
        except MissingObjectError:
            lost.append(Left(path=path, reason="lost"))
            continue
        if SUBMODULE not in (before and before.mode, after and after.mode):
            moves.append(Move(path=name, expected=before, wanted=after))
    # What goes makes room first: a folder may come where a file was.
    return sorted(moves, key=lambda move: move.wanted is not None), lost


def moves_to(
    states: Mapping[Path, str], root: Path, objects: Objects
) -> tuple[list[Move], list[Left]]:
    """Return the changes that write files in these states, and the files with an unknown state."""
    none = objects.empty_tree.decode()
    ways = {path: RestoreWay(before=none, after=state) for path, state in states.items()}
    return moves_of(ways, root, objects)


def put_back(root: Path, move: Move, content: bytes, *, stays: Path, traits: Traits) -> None:
    """Restore a file; for a symlink, `content` is its target.

    The permissions come from `traits`. Folders that become empty are removed, except `stays` and
    those that were empty before.

    :raises OSError: when the file cannot be restored; it is then unchanged.
    """
    place, wanted = root / os.fsdecode(move.path), move.wanted
    _check_parents(root, place)
    if wanted is None:
        place.unlink(missing_ok=True)
        empty = (root / os.fsdecode(path) for path in traits.empty_folders())
        _drop_empty(root, place.parent, {stays, *empty})
        return
    if place.is_dir() and not place.is_symlink():
        place.rmdir()  # fails when something is in it
    _make_folder(root, place.parent, traits)
    temporary = temporary_beside(place)
    try:
        if wanted.mode == SYMLINK:
            temporary.symlink_to(os.fsdecode(content))
        else:
            _write(temporary, content, place, wanted.mode, traits.mode_of(move.path))
        temporary.replace(place)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def make_empty(root: Path, path: bytes, traits: Traits) -> None:
    """Create a folder that was empty, if the path does not exist.

    :raises OSError: when the folder cannot be created.
    """
    if path in traits.empty_folders():
        place = root / os.fsdecode(path)
        _check_parents(root, place)
        _make_folder(root, place, traits)


def put_out(
    folder: Path, moves: Sequence[Move], contents: Mapping[bytes, bytes], traits: Traits
) -> list[bytes]:
    """Write files to `folder`, a copy of the worktree; return the files whose content is lost.

    :raises OSError: when a file cannot be written.
    """
    lost = []
    for move in moves:
        content = b"" if move.wanted is None else contents.get(move.wanted.oid)
        if content is None:
            lost.append(move.path)
        else:
            put_back(folder, move, content, stays=folder, traits=traits)
    return lost


def _check_parents(root: Path, place: Path) -> None:
    """Raise an error if a folder above is a symlink, which may lead out of the worktree."""
    here = root
    for name in place.relative_to(root).parts[:-1]:
        here /= name
        if here.is_symlink():
            raise NotADirectoryError(f"{here} is a symlink")


def _make_folder(root: Path, folder: Path, traits: Traits) -> None:
    """Create a folder and the folders above it, with the empty folders recorded in them."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        if mode := traits.mode_of(os.fsencode(each.relative_to(root))):
            each.chmod(mode | stat.S_IRWXU)  # files are put into it
    if missing:
        for path in traits.empty_folders(os.fsencode(missing[-1].relative_to(root))):
            empty = root / os.fsdecode(path)
            empty.mkdir(parents=True, exist_ok=True)
            if mode := traits.mode_of(path):
                empty.chmod(mode)


def _write(temporary: Path, content: bytes, old: Path, kind: bytes, known: int | None) -> None:
    """Write a new file with the owner, permissions and attributes of the existing file `old`.

    If `old` is missing, the permissions are `known`, or the default for None.
    """
    executable = kind == EXECUTABLE
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    created = known or (0o777 if executable else 0o666)
    with os.fdopen(os.open(temporary, flags, created), "wb") as file:
        is_there = old.is_file() and not old.is_symlink()
        if is_there:
            copy_traits(str(old), file.fileno())
        if is_there or known:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) if is_there else known or 0
            readers = (mode & 0o444) >> 2
            os.fchmod(file.fileno(), mode | readers if executable else mode & ~0o111)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _drop_empty(root: Path, folder: Path, stays: Set[Path]) -> None:
    """Remove the folder and the folders above it as long as they are empty."""
    names: Sequence[Path] = (folder, *folder.parents)
    for each in names:
        if each == root or each in stays or not each.is_relative_to(root):
            return
        try:
            each.rmdir()
        except OSError:
            return


LIMIT_BYTES = 1 << 20
"""Of a longer file a diff says only that it changed."""


def file_diff(move: Move, contents: Mapping[bytes, bytes]) -> FileDiff:
    """Return the diff of a file; `contents` has the known file contents by object id."""
    name = move.path.decode(errors="replace")
    before, after = _decode(move.expected, contents), _decode(move.wanted, contents)
    status: Literal["added", "deleted", "modified"] = "modified"
    if move.expected is None or move.wanted is None:
        status = "added" if move.expected is None else "deleted"
    if before is None or after is None:
        return FileDiff(file=name, additions=0, deletions=0, status=status)
    diff = diff_texts(before, after, name=name)
    return FileDiff(
        file=name,
        additions=diff.additions,
        deletions=diff.deletions,
        patch=diff.text,
        status=status,
    )


def _decode(entry: TreeEntry | None, contents: Mapping[bytes, bytes]) -> str | None:
    if entry is None:
        return ""
    content = contents.get(entry.oid)
    if content is None or len(content) > LIMIT_BYTES or b"\0" in content:
        return None
    return content.decode(errors="replace")
