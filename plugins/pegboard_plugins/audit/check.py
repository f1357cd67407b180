"""The check that the audit log is unchanged."""

from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard_plugins.audit.chain import (
    ZERO,
    ChainLink,
    LogHead,
    full_files,
    head_file,
    locked,
    read_head,
    read_line,
)


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check: the number of valid lines in order, and the first invalid line.

    `broken` is the number of the invalid line in `file`, from 1; for lines missing at the end it is
    the last line's number plus 1. `notes` are the repairs that the log reports, such as of a line
    that a crash had cut. `lost` are the reported losses that no user has acknowledged.
    """

    lines: int
    broken: int | None = None
    reason: str = ""
    file: Path | None = None
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """The fault that a user has to examine, on one line; "" for a sound log."""
        if self.broken is not None:
            return f"{self.file}, line {self.broken}: {self.reason}"
        return "; ".join(self.lost)


def verify_audit(path: Path, *, witness: Path | None = None) -> Audited:
    """Check whether a line was changed, added, removed or moved, or is missing at the end.

    Processes may write the log meanwhile; their new lines are ignored. Old full files that were
    deleted are no fault.

    :raises OSError: when the log cannot be read.
    """
    with ExitStack() as held:
        head, files = _opened(path, held)
        if not files and head is None:
            gone = witness is not None and witness.exists()
            return Audited(lines=0, lost=("the log is gone as a whole",) if gone else ())
        return _AuditReading(head, path).read(files)


def _opened(path: Path, held: ExitStack) -> tuple[LogHead | None, list[tuple[Path, BinaryIO, int]]]:
    """Open the log's files; return the record of the log's end, and each file with its size."""
    with ExitStack() as lock:
        head = None
        if head_file(path).exists():
            head = read_head(lock.enter_context(locked(path, writing=False)))
        oldest = head.base.seq if head else 0
        names = [name for last, name in full_files(path) if last > oldest]
        names += [path] if path.exists() else []
        files = [(name, held.enter_context(name.open("rb"))) for name in names]
        return head, [(name, file, name.stat().st_size) for name, file in files]


class _AuditReading:
    """One pass over all files of the audit log."""

    def __init__(self, head: LogHead | None, path: Path) -> None:
        self._head = head
        self._path = path
        self._last = head.base if head else ChainLink()
        self._first = self._last.seq
        self._notes: list[str] = []
        self._lost: list[str] = []
        if head and 0 < head.lost <= head.base.seq:
            self._lost.append(f"line {head.lost}, too old to be kept, said that something is gone")
        self._torn = False

    def read(self, files: list[tuple[Path, BinaryIO, int]]) -> Audited:
        count = 0
        for name, file, size in files:
            count, left = 0, size
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                count += 1
                if fault := self._fault(line):
                    return self._broken(fault, name, count)
        if self._head is None:
            reason = "the record of where the log ends is missing: lines behind it may be gone"
            return self._broken(reason, self._path, count + 1)
        if self._last.seq < self._head.last.seq:
            gone = self._head.last.seq - self._last.seq
            reason = f"it is gone, with all behind it: {gone} in all"
            return self._broken(reason, self._path, count + 1)
        lines = self._last.seq - self._first
        return Audited(lines=lines, notes=tuple(self._notes), lost=tuple(self._lost))

    def _fault(self, text: bytes) -> str:
        head = self._head
        known = head is not None and self._last.seq < head.last.seq
        if not known and (self._torn or not text.endswith(b"\n") or ZERO in text):
            if not self._torn:
                self._notes.append("the last line is cut; its writer did not live to end it")
            self._torn = True
            return ""
        line = read_line(text, self._last)
        if line.fault or not text.endswith(b"\n"):
            return line.fault or "it was changed"
        self._last = line.link
        if head and line.link.seq == head.last.seq and line.link != head.last:
            return "it is not the one that the record of the log's end knows"
        if line.note:
            self._notes.append(f"line {line.link.seq} says: {line.note}")
        if line.loss:
            self._lost.append(f"line {line.link.seq} says: {line.loss}")
        return ""

    def _broken(self, reason: str, file: Path, number: int) -> Audited:
        lines = self._last.seq - self._first
        notes, lost = tuple(self._notes), tuple(self._lost)
        return Audited(lines=lines, broken=number, reason=reason, file=file, notes=notes, lost=lost)
