"""The file ledger: which states of files a session has read, and one writer per file."""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec

from pegboard.errors import ToolError
from pegboard.kit.openat import drop_stale, folder_of, resolved_path, temporary_beside
from pegboard.kit.threads import shielded
from pegboard.policy.clock import Slots
from pegboard.schema.message import Turn
from pegboard.schema.part import Completed, ToolPart

DIGEST_LIMIT_BYTES = 1 << 20
"""Up to this size a file's content is compared when its times differ, above it is not read."""

MOST_KEPT = 100
"""Of so many files a call keeps what it has seen, for a later process."""
STAMPS = "stamps"
"""Where the metadata of a call has that."""
_STAMP = re.compile(r"(\d{1,20}):(\d{1,20}):(\d{1,20}):(\d{1,20}):((?:[0-9a-f]{32})?)")


class _Stamp(msgspec.Struct, frozen=True):
    """A state of a file; `digest` is empty for a long one."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    digest: bytes

    def text(self) -> str:
        """The stamp as text, since JSON clients round large numbers."""
        times = f"{self.mtime_ns}:{self.ctime_ns}:{self.size}:{self.inode}"
        return f"{times}:{self.digest.hex()}"


@dataclass(slots=True)
class _Gate:
    slot: Slots = field(default_factory=lambda: Slots(1))
    users: int = 0


class FileLedger:
    """Read stamps by session, and the write locks that all sessions of an App share."""

    def __init__(self) -> None:
        self._stamps: dict[str, dict[str, _Stamp]] = {}
        self._gates: dict[str, _Gate] = {}
        self._swept: set[Path] = set()
        self._recalled: set[str] = set()

    def view(
        self,
        session_id: str,
        *,
        announce: Callable[[Path], None] | None = None,
        noted: set[str] | None = None,
    ) -> "SessionFiles":
        """The ledger for the tools of one session.

        `announce` hears of a write before it, in a thread; `noted` takes up the files that are
        noted as read.
        """
        stamps = self._stamps.setdefault(session_id, {})
        return SessionFiles(self, stamps, announce, noted)

    def stamps(self, session_id: str, noted: Iterable[str]) -> dict[str, str]:
        """The session's stamps of these files, to be stored with the call, up to a limit."""
        known = self._stamps.get(session_id, {})
        return {path: known[path].text() for path in islice(noted, MOST_KEPT) if path in known}

    def recall(self, session_id: str, turns: Iterable[Turn]) -> None:
        """Restore the stamps that calls of an earlier process have stored, once for a session.

        What this process has seen itself stays.
        """
        if session_id in self._recalled:
            return
        self._recalled.add(session_id)
        found: dict[str, _Stamp] = {}
        for stamps in _kept(turns):
            for path, text in stamps.items() if isinstance(stamps, dict) else ():
                stamp = _stamp_of(text)
                if stamp is not None:
                    found[path] = stamp
        known = self._stamps.setdefault(session_id, {})
        known.update({**found, **known})

    def forget(self, session_id: str) -> None:
        """Drop the stamps of a session that is closed or deleted."""
        self._stamps.pop(session_id, None)
        self._recalled.discard(session_id)

    def sweep(self, folder: Path) -> None:
        """Remove temporary files of killed processes from a folder, once per folder; it blocks."""
        if folder not in self._swept:
            self._swept.add(folder)
            drop_stale(folder)

    @asynccontextmanager
    async def writing(self, path: Path) -> AsyncIterator[None]:
        """The exclusive write lock of the file at `path`, links resolved; others wait in order.

        A tool must not enter it twice for one file. There is no time limit of its own: the
        limit of the tool call ends the wait.
        """
        key = resolved_path(path)  # microseconds, and the order must hold
        gate = self._gates.setdefault(key, _Gate())
        gate.users += 1
        try:
            async with gate.slot.taken():
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                self._gates.pop(key, None)


class SessionFiles:
    """`FileAccess` for the tools of one session."""

    def __init__(
        self,
        ledger: FileLedger,
        stamps: dict[str, _Stamp],
        announce: Callable[[Path], None] | None = None,
        noted: set[str] | None = None,
    ) -> None:
        self._noted = noted
        self._ledger = ledger
        self._stamps = stamps
        self._announce = announce

    def note_read(self, path: Path) -> None:
        """Remember that this session has seen the file as it is now.

        Note first and read then: a change between the two is noticed, not overlooked.
        """
        target = resolved_path(path)
        stamp = _stamp(target)
        if stamp is None:
            self._stamps.pop(target, None)
        else:
            self._stamps[target] = stamp
            if self._noted is not None:
                self._noted.add(target)

    def check_fresh(self, path: Path) -> None:
        """Check that this session has seen the current state of the file.

        Other times with the same content (up to 1 MiB) are no change.

        :raises ToolError: when it has not, with the request to read the file (again).
        """
        target = resolved_path(path)
        seen = self._stamps.get(target)
        if seen is None:
            raise ToolError(f"{path} has not been read in this session: read it first")
        try:
            now = os.stat(target)  # noqa: PTH116 - a text, resolved already
        except OSError as error:
            raise ToolError(f"{path} is gone since it was read: {error.strerror}") from error
        if _same_state(seen, now):
            return
        current = _stamp(target)
        if current is None or not seen.digest or current.digest != seen.digest:
            raise ToolError(f"{path} has changed since it was read: read it again")
        self._stamps[target] = current

    def writing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """The write lock of this file, across tools, sessions and subagents of the App."""
        return self._ledger.writing(path)

    async def replace(self, path: Path, content: bytes) -> int:
        """Replace the file's content atomically, and note it as read.

        `path` is one that `ask_path` gave: without links, and one put there since is refused.
        Mode, owner and extended attributes stay where the system lets us; missing folders are
        made. The answer is how many other names (hard links) the file had: they keep the old
        content. A cancelled call waits until the file is whole.

        :raises OSError: when it cannot be written; the old file is then whole.
        """
        # No limit: it is one write, and the lock may not be given up before it ends.
        others = await shielded(asyncio.to_thread(self._replace, path, content))
        self.note_read(path)
        return others

    async def intend(self, path: Path) -> None:
        """Say that the call is about to move or remove the file, or to change it by itself.

        What snapshots would not have of it is copied. `replace` says it of its own.
        """
        if self._announce is not None:
            await asyncio.to_thread(self._announce, path)

    def _replace(self, path: Path, content: bytes) -> int:
        if self._announce is not None:
            self._announce(path)
        self._ledger.sweep(path.parent)
        return _replace(path, content)


def _kept(turns: Iterable[Turn]) -> Iterator[object]:
    for part in (part for turn in turns for part in turn.parts):
        if isinstance(part, ToolPart) and isinstance(part.state, Completed):
            yield part.state.metadata.get(STAMPS)


def _stamp_of(text: object) -> _Stamp | None:
    """The stamp of a text that `_Stamp.text` gave; None for any other, as of an import."""
    found = _STAMP.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    mtime_ns, ctime_ns, size, inode = map(int, found.groups()[:4])
    return _Stamp(mtime_ns, ctime_ns, size, inode, bytes.fromhex(found[5]))


def _same_state(seen: _Stamp, now: os.stat_result) -> bool:
    return (seen.mtime_ns, seen.ctime_ns, seen.size, seen.inode) == (
        now.st_mtime_ns,
        now.st_ctime_ns,
        now.st_size,
        now.st_ino,
    )


def _stamp(target: str) -> _Stamp | None:
    """The state of a regular file, None for anything else."""
    try:
        file = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    now = os.fstat(file)
    if not stat.S_ISREG(now.st_mode):  # of a directory no file can be made
        os.close(file)
        return None
    with os.fdopen(file, "rb") as content:
        short = now.st_size <= DIGEST_LIMIT_BYTES
        digest = blake2b(content.read(), digest_size=16).digest() if short else b""
    return _Stamp(now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, digest)


def _replace(path: Path, content: bytes) -> int:
    with folder_of(path, make=True) as folder:
        links = _links(path, folder)
        temporary = temporary_beside(path).name
        try:
            _write_new(temporary, content, folder=folder, old=path.name if links else None)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return max(links - 1, 0)


def _links(path: Path, folder: int) -> int:
    """How many names the regular file has that we may write; 0 if there is none.

    :raises OSError: for a directory, a link, a device, a pipe, or a file that is write-protected.
    """
    try:
        facts = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if stat.S_ISDIR(facts.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(f"{path} is not a regular file")
    if not os.access(path.name, os.W_OK, dir_fd=folder):
        raise PermissionError(f"{path} is write-protected")
    return facts.st_nlink


def _write_new(name: str, content: bytes, *, folder: int, old: str | None) -> None:
    """The content on the disk in a file of its own, with the traits of the old file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb") as file:
        if old is not None:
            _copy_traits(old, folder, file.fileno())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _copy_traits(old: str, folder: int, file: int) -> None:
    facts = os.stat(old, dir_fd=folder, follow_symlinks=False)
    if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(file, facts.st_uid, facts.st_gid)
    os.fchmod(file, stat.S_IMODE(facts.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            _copy_attributes(old, folder, file)


def _copy_attributes(old: str, folder: int, file: int) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    source = os.open(old, flags, dir_fd=folder)
    try:
        for name in os.listxattr(source):
            os.setxattr(file, name, os.getxattr(source, name))
    finally:
        os.close(source)
