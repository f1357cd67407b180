"""The power fails at any moment: what was acknowledged is there, and the database is sound.

The writes of a real database are recorded at SQLite's own door to the file system. A cut keeps
what had been synced by then; of each later write it keeps all, nothing, or some sectors.
`PEGBOARD_POWER_CUTS` sets how many cuts there are.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from pegboard.ids import IdSource
from pegboard.storage.changes import CreateSession, PutMessage, PutPart
from pegboard_plugins.sqlite import writerthread
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows

CUTS = int(os.environ.get("PEGBOARD_POWER_CUTS", "60"))
COMMITS = 120
SECTOR_BYTES = 512
CHECKPOINT_PAGES = 40
"""Often enough that many cuts hit the moment when the log is moved into the database."""


@dataclass(frozen=True)
class Write:
    """Bytes written to a file; without bytes, the file is cut to `offset`."""

    file: str
    offset: int
    content: bytes | None


@dataclass(frozen=True)
class Sync:
    """The disk has all that was written to the file."""

    file: str


@dataclass(frozen=True)
class Removed:
    """The file is gone."""

    file: str


@dataclass(frozen=True)
class Told:
    """So many commits are acknowledged."""

    commits: int


Step = Write | Sync | Removed | Told


class RecordedFile(apsw.VFSFile):
    """A file of SQLite whose changes are noted."""

    def __init__(self, steps: list[Step], name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._file = Path(path or "").name
        self._steps = steps
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._steps.append(Write(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(newsize)
        self._steps.append(Write(self._file, newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        super().xSync(flags)
        self._steps.append(Sync(self._file))


class Recorder(apsw.VFS):
    """SQLite's door to the file system, with a record of what went through."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:  # noqa: N802 - SQLite's name
        return RecordedFile(self.steps, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's
        super().xDelete(filename, syncdir)
        self.steps.append(Removed(Path(filename).name))


class Hasty(apsw.Connection):
    """A connection whose commits do not wait for the disk."""

    def pragma(self, name: str, *value: Any, **names: Any) -> Any:
        return super().pragma(name, *(("normal",) if name == "synchronous" else value), **names)


@dataclass
class Disk:
    """What a disk has, and what is on the way to it."""

    files: dict[str, bytearray] = field(default_factory=dict)
    waiting: dict[str, list[Write]] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        """Go on by one step."""
        match step:
            case Write(file=file):
                self.waiting.setdefault(file, []).append(step)
            case Sync(file=file):
                for write in self.waiting.pop(file, ()):
                    self.apply(write)
            case Removed(file=file):
                self.files.pop(file, None)
                self.waiting.pop(file, None)
            case Told():
                pass

    def apply(self, write: Write) -> None:
        """Write to the disk."""
        content = self.files.setdefault(write.file, bytearray())
        if write.content is None:
            del content[write.offset :]
            return
        end = write.offset + len(write.content)
        content.extend(bytes(max(0, end - len(content))))
        content[write.offset : end] = write.content

    def lay_down(self, folder: Path) -> None:
        """What is found after the power is back."""
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)

    def cut(self, chance: random.Random) -> None:
        """The power fails: of what is on the way all, nothing or some sectors arrive."""
        for writes in self.waiting.values():
            for write in writes:
                for piece in _arriving(write, chance):
                    self.apply(piece)


def _arriving(write: Write, chance: random.Random) -> Iterator[Write]:
    fate = chance.choice(("all", "nothing", "some"))
    if fate == "nothing":
        return
    if fate == "all" or write.content is None:
        yield write
        return
    for start in range(0, len(write.content), SECTOR_BYTES):
        if chance.random() < 0.5:
            sector = write.content[start : start + SECTOR_BYTES]
            yield Write(write.file, write.offset + start, sector)


async def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: type) -> list[Step]:
    """The steps of a database in the making, with checkpoints, to its last commit."""
    recorder = Recorder(f"recorder-{folder.name}")

    def connected(path: str) -> apsw.Connection:
        db: apsw.Connection = kind(path, vfs=recorder.name)
        db.pragma("locking_mode", "exclusive")  # needs no shared memory, which is not recorded
        return db

    with monkeypatch.context() as patched:
        patched.setattr(apsw, "Connection", connected)
        patched.setattr(writerthread, "_LOG_PAGES", CHECKPOINT_PAGES)
        storage = await SqliteStorage.open(folder / "pegboard.db", ids=IdSource())
        await storage.commit(CreateSession(rows.session()))
        for number in range(1, COMMITS + 1):
            message = f"msg_{number:04}"
            content = "x" * (number * 37 % 3000)
            part = rows.text(f"prt_{number:04}", message_id=message, content=content)
            await storage.commit(PutMessage(rows.question(message)), PutPart(part))
            recorder.steps.append(Told(number))
        steps = list(recorder.steps)
        await storage.aclose()
    recorder.unregister()
    return steps


async def lost(folder: Path, steps: Sequence[Step], chance: random.Random) -> int:
    """How many acknowledged commits are gone when the power fails behind these steps."""
    disk = Disk()
    for step in steps:
        disk.take(step)
    disk.cut(chance)
    disk.lay_down(folder)
    told = max((step.commits for step in steps if isinstance(step, Told)), default=0)
    storage = await SqliteStorage.open(folder / "pegboard.db", ids=IdSource())
    turns = await storage.turns("ses_1")
    problems = await storage.problems()
    await storage.aclose()

    assert (storage.warnings, problems) == ((), ())
    assert [turn.info.id for turn in turns] == [f"msg_{n:04}" for n in range(1, len(turns) + 1)]
    assert all(len(turn.parts) == 1 for turn in turns)
    assert len(turns) <= told + 1
    return max(0, told - len(turns))


def moments(steps: Sequence[Step], number: int) -> list[int]:
    """Moments of a cut, evenly over the whole course."""
    return [len(steps) * (each + 1) // number for each in range(number)]


async def test_a_power_cut_takes_no_acknowledged_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    steps = await recorded(tmp_path, monkeypatch, apsw.Connection)
    at = partial(lost, chance=chance)

    gone = [await at(tmp_path / str(n), steps[:end]) for n, end in enumerate(moments(steps, CUTS))]

    assert gone == [0] * CUTS
    assert any(isinstance(step, Write) and step.file == "pegboard.db" for step in steps[99:])


async def test_the_rig_sees_commits_that_do_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    steps = await recorded(tmp_path, monkeypatch, Hasty)
    at = partial(lost, chance=chance)

    gone = [await at(tmp_path / str(n), steps[:end]) for n, end in enumerate(moments(steps, 8))]

    assert max(gone) > 0
