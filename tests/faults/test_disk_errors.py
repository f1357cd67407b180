"""A disk that is full or fails in the middle of a commit fails that commit, and nothing else."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from pegboard.errors import StorageError
from pegboard.ids import IdSource
from pegboard.storage.changes import CreateSession, PutMessage, PutPart
from pegboard_plugins.sqlite import writerthread
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows

WRITES = 9
"""More than a commit of this test makes, so that a checkpoint's are hit, too."""
ERRORS = {"full": apsw.FullError, "broken": apsw.IOError}


class FailingFile(apsw.VFSFile):
    """A file that counts its writes, and fails one of them."""

    def __init__(self, disk: "FailingDisk", name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.count()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.count()
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    """SQLite's door to a disk; the write or sync after `left` others fails, and none later."""

    def __init__(self, name: str, error: type[apsw.Error]) -> None:
        self.name = name
        self.left: int | None = None
        self.failed = 0
        self._error = error
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> FailingFile:  # noqa: N802 - SQLite's name
        return FailingFile(self, name, flags)

    def count(self) -> None:
        """One more write or sync."""
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.left = None
            self.failed += 1
            raise self._error("no luck")


def turn(number: int) -> tuple[PutMessage, PutPart]:
    message = f"msg_{number}"
    part = rows.text(f"prt_{number}", message_id=message, content="x" * 6000)
    return PutMessage(rows.question(message)), PutPart(part)


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("place", range(WRITES))
async def test_a_commit_that_the_disk_refuses_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: int
) -> None:
    path = tmp_path / "pegboard.db"
    disk = FailingDisk(f"failing-{kind}-{place}", ERRORS[kind])
    whole = apsw.Connection

    def connected(name: str) -> apsw.Connection:
        db = whole(name, vfs=disk.name)
        db.pragma("locking_mode", "exclusive")  # needs no shared memory
        return db

    kept = ["msg_1"]
    with monkeypatch.context() as patched:
        patched.setattr(apsw, "Connection", connected)
        patched.setattr(writerthread, "_LOG_PAGES", 1)  # every commit is followed by a checkpoint
        storage = await SqliteStorage.open(path, ids=IdSource())
        await storage.commit(CreateSession(rows.session()), *turn(1))
        disk.left = place
        for number in (2, 3, 4):
            try:
                await storage.commit(*turn(number))
                kept.append(f"msg_{number}")
            except StorageError:
                assert disk.failed
        await storage.aclose()
    disk.unregister()

    storage = await SqliteStorage.open(path, ids=IdSource())
    turns = await storage.turns("ses_1")
    problems = await storage.problems()
    await storage.aclose()
    assert disk.failed == 1
    assert len(kept) >= 3
    assert kept[-1] == "msg_4"
    assert [each.info.id for each in turns] == kept
    assert all(len(each.parts) == 1 for each in turns)
    assert (storage.warnings, problems) == ((), ())
