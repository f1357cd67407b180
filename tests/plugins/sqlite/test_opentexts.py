"""The text of an open part is in a file of its own, which goes by what a commit says."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from pegboard.errors import NotFoundError, StorageError
from pegboard.storage.changes import (
    Change,
    CreateSession,
    DropMessage,
    DropPart,
    DropSession,
    PutMessage,
    PutPart,
)
from pegboard_plugins.sqlite import reads
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows
from support.storage.damage import PAGE, met, overwritten, rootpage
from support.storage.text_pieces import added, begun, opened, part, replayed, texts

LONG = "Some words of a text. " * 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    made = await begun(path)
    yield made
    await made.aclose()


def files(path: Path) -> list[str]:
    folder = path.with_name(f"{path.name}.texts")
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


async def said(storage: SqliteStorage) -> list[str]:
    return texts((await storage.turns("ses_1"))[-1].parts)


async def died(storage: SqliteStorage) -> None:
    """As if its process had died."""
    storage._owners.close()
    await storage._writer.aclose()


def log_bytes(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


async def test_a_piece_costs_its_bytes_and_no_page(storage: SqliteStorage, path: Path) -> None:
    await storage.commit(PutPart(part()))
    before = log_bytes(path)

    for piece in ("Once ", "upon ", "a time."):
        await storage.commit(*added(piece))

    assert log_bytes(path) == before
    [name] = files(path)
    file = path.with_name(f"{path.name}.texts") / name
    assert file.read_text() == "Once upon a time."
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.parent in storage.files


async def test_a_change_that_is_undone_takes_its_text_along(storage: SqliteStorage) -> None:
    await storage.commit(PutPart(part()), *added("kept"))

    with pytest.raises(NotFoundError):
        await storage.commit(*added(" lost"), PutMessage(replace(rows.question(), session_id="x")))
    await storage.commit(*added(" too"))

    assert await said(storage) == ["kept too"]


async def test_a_commit_that_fails_takes_its_text_along(storage: SqliteStorage) -> None:
    await storage.commit(PutPart(part()), *added("kept"))
    db = storage._writer._db

    db.set_commit_hook(lambda: True)
    with pytest.raises(StorageError):
        await storage.commit(*added(" lost"), PutMessage(rows.question()))
    db.set_commit_hook(None)
    assert await said(storage) == ["kept"]
    await storage.commit(*added(" too"))

    assert await said(storage) == ["kept too"]


async def test_a_file_that_cannot_be_written_fails_the_commit_with_all_its_changes(
    storage: SqliteStorage, path: Path
) -> None:
    await storage.commit(PutPart(part()))
    folder = path.with_name(f"{path.name}.texts")
    folder.write_text("no folder")

    with pytest.raises(StorageError, match="cannot write the database"):
        await storage.commit(*added("lost"), PutPart(rows.text("prt_3", message_id="msg_1")))
    folder.unlink()
    await storage.commit(*added("kept"))

    assert await said(storage) == ["kept"]
    assert (await storage.turn("ses_1", "msg_1")).parts == ()


@pytest.mark.parametrize(
    "change",
    [
        PutPart(part("Short.", end=2)),
        PutPart(part(LONG, end=2)),
        DropPart("ses_1", "msg_2", "prt_2"),
        DropMessage("ses_1", "msg_2"),
        DropSession("ses_1"),
    ],
)
async def test_the_file_goes_with_the_end_of_its_part(
    storage: SqliteStorage, path: Path, change: Change
) -> None:
    await storage.commit(PutPart(part()), *added(LONG))
    assert len(files(path)) == 1

    await storage.commit(change)

    assert files(path) == []


async def test_a_part_that_ends_in_the_commit_that_began_it_leaves_no_file(
    storage: SqliteStorage, path: Path
) -> None:
    await storage.commit(PutPart(part()), *added("Once."), PutPart(part("Once.", end=2)))

    assert files(path) == []
    assert await said(storage) == ["Once."]


async def test_a_file_that_a_crash_has_left_is_nobody_s_text(
    storage: SqliteStorage, path: Path
) -> None:
    await storage.commit(PutPart(part()), *added("old"))
    [name] = files(path)
    await storage.commit(DropPart("ses_1", "msg_2", "prt_2"))
    folder = path.with_name(f"{path.name}.texts")
    (folder / name).write_text("old")

    await storage.commit(PutPart(part()))

    assert await said(storage) == [""]
    await storage.commit(*added("new"))
    assert files(path) == [name]
    assert await said(storage) == ["new"]


async def test_an_opening_removes_what_nobody_writes_and_leaves_what_somebody_does(
    storage: SqliteStorage, path: Path
) -> None:
    await storage.claim("ses_1")
    await storage.commit(PutPart(part()), *added("still "))
    (path.with_name(f"{path.name}.texts") / "77").write_text("of a crash")

    other = await opened(path)
    await storage.commit(*added("written"))

    assert len(files(path)) == 1
    assert await said(other) == ["still written"]
    await other.aclose()


async def test_a_reader_that_has_begun_before_the_end_has_the_whole_text(
    storage: SqliteStorage,
) -> None:
    await storage.commit(PutPart(part()), *added(LONG))
    reader = apsw.Connection(str(storage.path), flags=apsw.SQLITE_OPEN_READONLY)
    with reader:
        reader.execute("SELECT count(*) FROM part").fetchall()
        await storage.commit(PutPart(part(LONG, end=2)))

        turn = reads.turn(reader, "ses_1", "msg_2")
    reader.close()

    assert texts(turn.parts) == [LONG]


async def test_a_letter_that_is_cut_is_left_out(storage: SqliteStorage, path: Path) -> None:
    await storage.commit(PutPart(part()), *added("two \N{SNOWMAN}"))
    [name] = files(path)
    file = path.with_name(f"{path.name}.texts") / name
    file.write_bytes(file.read_bytes()[:-1])

    assert await said(storage) == ["two "]


@pytest.mark.parametrize("text", ["Once upon", LONG])
async def test_the_text_of_a_dead_process_comes_into_the_database(path: Path, text: str) -> None:
    dead = await opened(path)
    await dead.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await dead.claim("ses_1")
    await dead.commit(PutPart(part()), *added(text))
    await died(dead)

    storage = await opened(path)

    assert await said(storage) == [text]
    assert replayed(await storage.events(0)) == text
    assert files(path) == []
    await storage.aclose()


@pytest.mark.parametrize("table", ["part", "session", "event"])
async def test_a_damaged_database_gets_the_text_of_its_open_parts_back(
    path: Path, table: str
) -> None:
    dead = await opened(path)
    await dead.commit(CreateSession(rows.session()), PutMessage(rows.answer()))
    await dead.claim("ses_1")
    await dead.commit(PutPart(part()), *added(LONG))
    await died(dead)
    overwritten(path, (rootpage(path, table) - 1) * PAGE)
    met(path)

    storage = await opened(path)

    assert "was damaged" in storage.warnings[0]
    assert await said(storage) == [LONG]
    assert files(path) == []
    await storage.aclose()
