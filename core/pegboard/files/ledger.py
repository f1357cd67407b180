"""The file ledger: which state of each file a session has read, and a write lock for each file."""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from pegboard import ToolError
from pegboard.files.placing import drop_stale, replace_resolved
from pegboard.kit.threads import shield
from pegboard.paths import resolved_path
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
    """A state of a file; `digest` is empty for large files."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    digest: bytes

    def text(self) -> str:
        """Encode the file state as a string, because JSON clients round large numbers."""
        times = f"{self.mtime_ns}:{self.ctime_ns}:{self.size}:{self.inode}"
        return f"{times}:{self.digest.hex()}"


@dataclass(slots=True)
class _Gate:
    slot: Slots = field(default_factory=lambda: Slots(1))
    users: int = 0


class LocalLedger:
    """The `FileLedger` for the files of this machine."""

    def __init__(self) -> None:
        self._stamps: dict[str, dict[str, _Stamp]] = {}
        self._gates: dict[str, _Gate] = {}
        self._swept: set[Path] = set()
        self._recalled: set[str] = set()

    def view(
        self,
        session_id: str,
        *,
        turns: Iterable[Turn] = (),
        announce: Callable[[Path], None] | None = None,
        kept: dict[str, Any] | None = None,
    ) -> "SessionFiles":
        """Return the access to files for one session, as `FileLedger.view` documents."""
        stamps = self._stamps.setdefault(session_id, {})
        if turns and session_id not in self._recalled:
            self._recalled.add(session_id)
            stamps.update({**_recalled(turns), **stamps})
        return SessionFiles(self, stamps, announce, {} if kept is None else kept)

    def forget(self, session_id: str) -> None:
        """Forget what a session has read, as `FileLedger.forget` documents."""
        self._stamps.pop(session_id, None)
        self._recalled.discard(session_id)

    def sweep(self, folder: Path) -> None:
        """Remove temporary files of killed processes from a folder; this blocks.

        Later calls for the same folder do nothing.
        """
        if folder not in self._swept:
            self._swept.add(folder)
            drop_stale(folder)

    @asynccontextmanager
    async def lock(self, path: Path) -> AsyncIterator[None]:
        """Hold the write lock of the file at `path` (resolved); waiters are served in order.

        A tool must not enter it twice for one file. The wait is limited only by the time limit of
        the tool call.
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
    """The access to files for the tools of one session (`FileAccess`)."""

    def __init__(
        self,
        ledger: LocalLedger,
        stamps: dict[str, _Stamp],
        announce: Callable[[Path], None] | None,
        kept: dict[str, Any],
    ) -> None:
        self._ledger = ledger
        self._stamps = stamps
        self._announce = announce
        self._kept = kept

    def note_read(self, path: Path) -> None:
        """Record that this session has read the file as it is now.

        Call this before reading, so that a change in between is detected later.
        """
        target = resolved_path(path)
        stamp = _stamp(target)
        if stamp is None:
            self._stamps.pop(target, None)
            self._kept.get(STAMPS, {}).pop(target, None)
            return
        self._stamps[target] = stamp
        kept = self._kept.setdefault(STAMPS, {})
        if target in kept or len(kept) < MOST_KEPT:
            kept[target] = stamp.text()

    def check_fresh(self, path: Path) -> None:
        """Check that this session has seen the file as it is now.

        Changed times with the same content (up to 1 MiB) do not count as a change.

        :raises ToolError: when the session has not seen it; the message asks to read the file.
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

    def lock(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Hold the write lock of a file in a block, against other tools, sessions and subagents."""
        return self._ledger.lock(path)

    async def replace(self, path: Path, content: bytes) -> int:
        """Replace the file's content atomically; return the number of its other hard links.

        `path` is a path that `require_path` returned, without links; a link placed there since is
        refused. Mode, owner and extended attributes are kept if the system allows it. Missing
        folders are created. Other names (hard links) of the file keep the old content. A cancelled
        call waits until the file is complete.

        :raises OSError: when the file cannot be written; the old file is then unchanged.
        """
        # No limit: it is one write, and the lock may not be given up before it ends.
        others = await shield(asyncio.to_thread(self._replace, path, content))
        self.note_read(path)
        return others

    async def will_change(self, path: Path) -> None:
        """Announce that the tool call will move, remove or change the file without `replace`.

        Content that snapshots do not store is then copied. `replace` announces the file itself.
        """
        if self._announce is not None:
            await asyncio.to_thread(self._announce, path)

    def _replace(self, path: Path, content: bytes) -> int:
        if self._announce is not None:
            self._announce(path)
        self._ledger.sweep(path.parent)
        return replace_resolved(path, content)


def _recalled(turns: Iterable[Turn]) -> dict[str, _Stamp]:
    """Collect the file states that the calls of an earlier process have stored, by path."""
    found: dict[str, _Stamp] = {}
    for part in (part for turn in turns for part in turn.parts):
        if isinstance(part, ToolPart) and isinstance(part.state, Completed):
            stamps = part.state.metadata.get(STAMPS)
            for path, text in stamps.items() if isinstance(stamps, dict) else ():
                stamp = _stamp_of(text)
                if stamp is not None:
                    found[path] = stamp
    return found


def _stamp_of(text: object) -> _Stamp | None:
    """Parse a file state that `_Stamp.text` has encoded; return None for any other string."""
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
    """Return the current state of a regular file, or None for any other path."""
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
        digest = blake2b(content.read(now.st_size), digest_size=16).digest() if short else b""
    return _Stamp(now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, digest)
