"""Changes in a worktree as the kernel reports them, which saves a comparison of all files.

It uses Linux's inotify through the C library. Each folder is watched, except those inside ignored
folders. If the reports may be incomplete, because folders come and go, the queue overflows or an
ignore rule changes, all files have to be compared.
"""

import os
import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD

MOST_FOLDERS = 10_000
"""Of more folders none is watched: each takes a kilobyte of the kernel's memory."""
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW, _IGNORED, _FOLDER = 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NO_FOLLOW = 0x1000000, 0x2000000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_MASK = _CHANGES | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NO_FOLLOW
_COMES_AND_GOES = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO
_GONE = _DELETE_SELF | _MOVE_SELF | _IGNORED
_HEAD = struct.Struct("iIII")
_NUMBER = struct.Struct("i")
_READ_BYTES = 1 << 16
_RULES = (b".gitignore", b".gitattributes")

Ignored = Callable[[Sequence[bytes]], set[bytes]]
"""Which of some paths git ignores; it may raise `OSError`."""


class Watch:
    """A record of the files below `root` that change after `arm`; threads may share the record.

    `generation` is 0 while no folder is watched, and grows when more folders are watched.
    """

    def __init__(self, root: bytes) -> None:
        self.generation = 0
        self._root = root
        self._file = -1
        self._folders: dict[int, bytes] = {}
        self._new: set[bytes] = set()
        self._lock = threading.Lock()
        self._off = not sys.platform.startswith("linux")

    def arm(self, folders: Collection[bytes], ignored: Ignored) -> None:
        """Also watch these folders, their subfolders, and folders that have appeared since."""
        with self._lock:
            known, noted = set(self._folders.values()), set(self._new)
        new = [folder for folder in {*folders, *noted} if folder not in known]
        if self._off or not (new or noted):
            return
        try:
            found = _with_neighbours(self._root, new, set(folders), ignored)
        except OSError:
            found = None
        with self._lock:
            self._new -= noted
            try:
                if found is not None:
                    self._add(found)
            except OSError:
                found = None
            if found is None:
                self._stop()
            else:
                self.generation += 1

    def changed(self) -> frozenset[bytes] | None:
        """Return the files that may have changed since the last call; None if that is unknown."""
        with self._lock:
            if self._file < 0:
                return None
            found: set[bytes] = set()
            sure = True
            for number, mask, name in self._events():
                folder = self._folders.get(number)
                if folder is None or mask & (_OVERFLOW | _GONE):
                    sure = False
                    self._forget(folder)
                    continue
                path = folder + b"/" + name if folder else name
                if mask & _FOLDER:
                    sure = sure and not mask & _COMES_AND_GOES
                    if mask & (_CREATE | _MOVED_TO):
                        self._new.add(path)
                else:
                    sure = sure and name not in _RULES
                    found.add(path)
            return frozenset(found) if sure and not self._new else None

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            self._stop()

    def _forget(self, gone: bytes | None) -> None:
        """Stop watching a removed or moved folder, and all folders below it."""
        if gone is not None:
            self._folders = {
                number: folder
                for number, folder in self._folders.items()
                if folder != gone and not folder.startswith(gone + b"/")
            }

    def _stop(self) -> None:
        self._off = True
        self.generation = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._folders.clear()
        self._new.clear()

    def _add(self, folders: Iterable[bytes]) -> None:
        import ctypes  # 5 ms, which only long work pays

        library = ctypes.CDLL(None, use_errno=True)
        if self._file < 0:
            self._file = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for folder in folders:
            number = library.inotify_add_watch(self._file, self._root + folder, _MASK)
            if number < 0 or len(self._folders) >= MOST_FOLDERS:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
            self._folders[number] = folder

    def _events(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield only the events so far; a file that keeps changing would add events forever."""
        with suppress(BlockingIOError):
            (left,) = _NUMBER.unpack(ioctl(self._file, FIONREAD, bytes(_NUMBER.size)))
            while left > 0:
                content = os.read(self._file, _READ_BYTES)
                left -= len(content)
                place = 0
                while place < len(content):
                    number, mask, _, length = _HEAD.unpack_from(content, place)
                    place += _HEAD.size
                    yield number, mask, content[place : place + length].rstrip(b"\0")
                    place += length


def _with_neighbours(
    root: bytes, folders: Iterable[bytes], known: Collection[bytes], ignored: Ignored
) -> list[bytes]:
    """Return the folders with all unknown subfolders; of ignored folders, only the first level.

    Git is asked only about unknown folders with files.
    """
    found: list[bytes] = []
    waiting = list(folders)
    while waiting:
        found += waiting
        below: list[bytes] = []
        held: dict[bytes, list[bytes]] = {}
        for folder in waiting:
            inside, has_files = _inside(root, folder)
            new = [path for path in inside if path not in known and path != b".git"]
            if has_files and folder not in known:
                held[folder] = new
            else:
                below += new
        for folder in held.keys() - (ignored(tuple(held)) if held else set()):
            below += held[folder]
        waiting = below
    return found


def _inside(root: bytes, folder: bytes) -> tuple[list[bytes], bool]:
    """Return the subfolders of a folder, and whether it contains anything else."""
    below, has_files = [], False
    with suppress(OSError), os.scandir(root + folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(folder + b"/" + entry.name if folder else entry.name)
            else:
                has_files = True
    return below, has_files
