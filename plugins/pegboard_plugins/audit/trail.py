"""A log of every decision and tool call; a change or loss of lines is detected.

The newest file is `audit.jsonl`. A full file is renamed to `audit-N.jsonl`, with the number of its
last line as N, and the chain continues in a new file. `audit.head` records the log's end.

A line is written before its action goes on, so that it survives the end of the process. It is
flushed to the disk half a second later. `audit.head` never records a line before the flush. A power
cut may lose the last lines, but leaves a valid chain.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from pegboard import ToolError
from pegboard.app import UserFolders
from pegboard.plugins import redact, shield
from pegboard_plugins.audit.chain import (
    LONGEST_LINE_BYTES,
    ZERO,
    ChainLink,
    LogHead,
    cut_note,
    first_link,
    full_file,
    full_files,
    line_after,
    locked,
    newest_link,
    read_head,
    read_line,
    to_disk,
    write_head,
)

FULL_BYTES = 16 << 20
"""A file of this size is full: some 40,000 lines."""
KEPT_FILES = 8
"""Full files that are kept; the oldest goes first."""
SYNC_AFTER_S = 0.5
"""So long a line may be in the system's memory alone; with a sync for each, a call waits 1 ms."""
SLOW_S = 0.02
"""A log that takes longer than this for a line is written by a thread, for a while."""
SLOW_FOR_S = 10.0
LONGEST_TEXT = 500
"""Letters of a text that are kept; a command line may hold a whole file."""
MOST_TEXTS = 50
_SEARCHED_TEXT = 4000
"""Letters that are searched for secrets before a text is cut."""


class _End(msgspec.Struct, frozen=True):
    """The end of the audit log, and the faults that were found there.

    `cut` is the size up to the last complete line, if a crash has cut the line after it. `lost`
    tells whether data are missing that a crash cannot have removed.
    """

    last: ChainLink
    found: tuple[str, ...] = ()
    cut: int | None = None
    lost: bool = False


class _Entry(msgspec.Struct):
    """A line to write, and the outcome of its write."""

    kind: str
    facts: Mapping[str, Any]
    tried: bool = False
    error: OSError | None = None


class Audit:
    """The audit log at `path`, with its full files next to it; several processes may write it.

    `secrets` are texts that must not be in the log; other recognizable secrets are removed too.
    Whoever can write the files can replace them all. Store the last digest elsewhere to detect
    this. `witness` is a file in another folder that proves that a log existed.
    """

    def __init__(
        self,
        path: Path,
        *,
        secrets: Sequence[str] = (),
        witness: Path | None = None,
        full_bytes: int = FULL_BYTES,
        kept_files: int = KEPT_FILES,
    ) -> None:
        self._path = path
        # A session's id, an agent and a permission are in each line.
        self._redacted = lru_cache(maxsize=128)(partial(redact, values=tuple(secrets)))
        self._witness = witness
        self._full_bytes = full_bytes
        self._kept_files = kept_files
        self._waiting: list[_Entry] = []
        self._turn = asyncio.Lock()
        self._known = LogHead()
        self._synced = 0
        self._sync_failed = False
        self._slow_until = 0.0
        self._syncing: asyncio.Task[None] | None = None

    @classmethod
    def at(cls, places: UserFolders, *, secrets: Sequence[str] = ()) -> Self:
        """Return the audit log of a user, with its witness file."""
        return cls(places.audit, secrets=secrets, witness=places.audit_witness)

    async def write(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Append a line to the log; it survives the end of the process, and soon a power cut too.

        :raises ToolError: when it cannot be written: what leaves no trace shall not run.
        """
        entry = _Entry(kind, facts)
        self._waiting.append(entry)
        async with self._turn:  # who is first writes for all that wait
            if not entry.tried:
                await self._write_all()
        if entry.error is not None or not entry.tried:
            why = entry.error or "the line of another call cannot be"
            way = "PEGBOARD_STATE_DIR names another folder for it"
            raise ToolError(
                f"the audit log {self._path} cannot be written: {why}; {way}"
            ) from entry.error

    async def aclose(self) -> None:
        """Flush all lines of the log to the disk, with the record of the last line."""
        if self._syncing is not None:
            self._syncing.cancel()
            await asyncio.wait({self._syncing})  # a thread that syncs is not waited for
        await asyncio.to_thread(self._sync)

    async def _sync_soon(self) -> None:
        while self._known.last.seq > self._synced and not self._sync_failed:
            await asyncio.sleep(SYNC_AFTER_S)
            await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        """Flush the log's lines to the disk, then the record of the last line.

        The log is locked only for the record. The next call reports a failure.
        """
        known = self._known
        if known.last.seq <= self._synced:
            return
        try:
            _sync_file(self._path)
            with locked(self._path, writing=True) as number:
                head = read_head(number)
                if head is not None and head.last.seq < known.last.seq:
                    ended = replace(head, last=known.last, size=known.size, turn=head.turn + 1)
                    write_head(number, ended)
        except OSError:
            self._sync_failed = True
        else:
            self._synced = known.last.seq

    async def _write_all(self) -> None:
        """Write the waiting lines; a cancelled caller waits, because others depend on the write."""
        entries, self._waiting = self._waiting, []
        try:
            if not self._is_written_here(entries):
                await shield(asyncio.to_thread(self._tried, entries))  # 30 s for its lock at most
        finally:
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.create_task(self._sync_soon(), name="audit")

    def _is_written_here(self, entries: Sequence[_Entry]) -> bool:
        """Try to write the entries on the event loop, which is eight times as fast as in a thread.

        Return False if a thread must write them: for the first line, a repair, a full file, a log
        that another process has locked or written, a slow disk, or an error.
        """
        began = time.monotonic()
        if began < self._slow_until or self._sync_failed or not self._known.turn:
            return False
        try:
            with locked(self._path, writing=True, wait_s=0) as number:
                head = self._newer(read_head(number))
                if head is None or not head.size == _size(self._path) < self._full_bytes:
                    return False
                last = self._put(_End(head.last), entries, sync=False)
                size = _size(self._path)
                self._known = replace(head, last=last, size=size, turn=head.turn + 1)
        except OSError:
            return False
        for entry in entries:
            entry.tried = True
        if (ended := time.monotonic()) - began > SLOW_S:
            self._slow_until = ended + SLOW_FOR_S
        return True

    def _tried(self, entries: Sequence[_Entry]) -> None:
        error = None
        try:
            self._append(entries)
        except OSError as raised:
            error = raised
        for entry in entries:
            entry.tried, entry.error = True, error

    def _append(self, entries: Sequence[_Entry]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._path, writing=True) as number:
            written = read_head(number)
            head = self._newer(written)
            end = self._end(head)
            if end.cut is not None:
                os.truncate(self._path, end.cut)
            if head is None:
                head = LogHead(base=self._oldest())
                if not end.last.seq and not end.found:
                    write_head(number, head)  # from here on a log without a record has lost it
            if end.lost and not head.lost:
                head = replace(head, lost=end.last.seq + 1)
            if _size(self._path) >= self._full_bytes:
                head = self._turn_over(number, replace(head, last=end.last, turn=head.turn + 1))
            at_once = written is None or bool(end.found) or self._sync_failed
            last = self._put(end, entries, sync=at_once)
            self._testify()
            head = replace(head, last=last, size=_size(self._path), turn=head.turn + 1)
            if at_once:
                write_head(number, head)
                self._synced, self._sync_failed = last.seq, False
            self._known = head

    def _testify(self) -> None:
        """Create the witness file, an empty file in another folder that proves that a log existed.

        An error is ignored: without the witness, only the loss of the whole log goes undetected.
        """
        if self._witness is not None and not self._known.turn:
            with suppress(OSError):
                self._witness.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._witness.touch(mode=0o600)

    def _newer(self, head: LogHead | None) -> LogHead | None:
        """Return the head, updated if the last line that this process has written is newer."""
        if head is None or self._known.last.seq <= head.last.seq:
            return head
        return replace(head, last=self._known.last, size=self._known.size)

    def _put(self, end: _End, entries: Sequence[_Entry], *, sync: bool) -> ChainLink:
        """Append a line for each fault in `end.found`, then the entries' lines, to the log."""
        content, last = b"", end.last
        found = [("repaired", {"found": text}) for text in end.found]
        for kind, facts in (*found, *((each.kind, each.facts) for each in entries)):
            kept = {key: self._plain(value) for key, value in facts.items()}
            line, last = line_after(last, kind, kept)
            content += line
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        number = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(number).st_size
            whole = not size or os.pread(number, 1, size - 1) == b"\n"
            content = content if whole else b"\n" + content
            if os.write(number, content) < len(content):
                raise OSError("the disk is full")
            if sync:
                to_disk(number)
        finally:
            os.close(number)
        return last

    def _end(self, head: LogHead | None) -> _End:
        """Return the line after which the log continues, and the faults found at the log's end.

        Usually the record `head` names this line. After a crash, it is the last complete line.
        """
        size = _size(self._path)
        if head is None:
            return self._end_without_head(size)
        if size == head.size:
            return _End(head.last)
        if size < head.size:
            full = full_files(self._path)
            if not size and full and full[-1][0] == head.last.seq:
                return _End(head.last)  # it ended after the file was renamed
            found = f"{head.size - size} bytes are gone from the log's end"
            return _End(head.last, (found,), lost=True)
        return self._end_behind(head)

    def _end_behind(self, head: LogHead) -> _End:
        """Return the log's end if a process died after writing a line, before writing the head."""
        with self._path.open("rb") as file:
            file.seek(head.size)
            rest = file.read()
        sound = rest[: rest.rfind(b"\n", 0, (rest + ZERO).index(ZERO)) + 1]
        last = head.last
        for text in sound.splitlines():
            last = read_line(text, last).link  # one with a fault stays, and `verify_audit` names it
        if sound == rest:
            return _End(last)
        found = cut_note(len(rest) - len(sound))
        return _End(last, (found,), cut=head.size + len(sound))

    def _end_without_head(self, size: int) -> _End:
        if size or full_files(self._path):
            found = "the record of the log's end was missing"
            return _End(newest_link(self._path), (found,), lost=True)
        if self._witness is not None and self._witness.exists():
            return _End(ChainLink(), ("the log before this one is gone as a whole",), lost=True)
        return _End(ChainLink())

    def _oldest(self) -> ChainLink:
        """Return the number and digest of the line before the oldest stored line."""
        files = [*(path for _, path in full_files(self._path)), self._path]
        for path in files:
            try:
                with path.open("rb") as file:
                    return first_link(file.readline(LONGEST_LINE_BYTES))
            except (OSError, ValueError):
                continue
        return ChainLink()

    def _turn_over(self, number: int, head: LogHead) -> LogHead:
        """Rename the full log file, and delete the oldest full files if there are too many.

        The head is written between the steps, so that the log stays valid if the process dies.
        """
        _sync_file(self._path)
        write_head(number, replace(head, size=_size(self._path)))
        self._path.rename(full_file(self._path, head.last.seq))
        full = full_files(self._path)
        gone, kept = full[: -self._kept_files], full[-self._kept_files :]
        base = head.base
        if gone:
            with kept[0][1].open("rb") as file:
                base = first_link(file.readline(LONGEST_LINE_BYTES))
        head = replace(head, size=0, base=base, turn=head.turn + 1)
        write_head(number, head)
        for _, path in gone:
            path.unlink()
        _sync_folder(self._path.parent)
        return head

    def _plain(self, value: object) -> object:
        """Return the value without secrets, shortened to the limit of a line."""
        if isinstance(value, str):
            text = value[:_SEARCHED_TEXT].encode(errors="replace").decode()
            text = self._redacted(text)
            short = len(text) <= LONGEST_TEXT and len(value) <= _SEARCHED_TEXT
            return text if short else f"{text[:LONGEST_TEXT]}…"
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value[:MOST_TEXTS]]
        return value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sync_file(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        to_disk(number)
    finally:
        os.close(number)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
