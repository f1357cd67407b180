"""The acknowledgement of a fault in the audit log, which sets the log's files aside."""

import os
import time
from pathlib import Path

from pegboard_plugins.audit.chain import (
    LogHead,
    full_files,
    line_after,
    locked,
    newest_link,
    read_head,
    to_disk,
    write_head,
)
from pegboard_plugins.audit.check import verify_audit


def acknowledge_audit(path: Path, *, witness: Path | None = None) -> Path | None:
    """Move a faulty log's files to a new folder; return the folder, or None for a sound log.

    The new log begins with a line that describes the fault and names the folder. Its number and
    its digest follow those of the last moved line.

    :raises OSError: when the files cannot be moved, or the line cannot be written.
    """
    fault = verify_audit(path, witness=witness).fault
    if not fault:
        return None
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(path, writing=True) as number:
        head = read_head(number) or LogHead()
        last = max(head.last, newest_link(path), key=lambda link: link.seq)
        aside = path.with_name(f"{path.stem}-set-aside-{time.time_ns() // 1_000_000}")
        aside.mkdir(mode=0o700)
        for file in (*(name for _, name in full_files(path)), path):
            if os.path.lexists(file):
                file.rename(aside / file.name)
        facts = {"by": "user", "found": fault, "aside": str(aside)}
        line, link = line_after(last, "acknowledged", facts)
        _write_new(path, line)
        write_head(number, LogHead(last=link, size=len(line), base=last, turn=head.turn + 1))
    return aside


def _write_new(path: Path, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    number = os.open(path, flags, 0o600)
    try:
        os.write(number, line)
        to_disk(number)
    finally:
        os.close(number)
