# ruff: noqa: ASYNC110, ASYNC240 - these tests look at small files, and wait for them
import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw
import pytest

from pegboard.errors import StorageError
from pegboard.ids import IdSource
from pegboard.schema.event import Event
from pegboard.storage.changes import CreateSession, PutMessage, PutPart
from pegboard_plugins.sqlite import writerthread
from pegboard_plugins.sqlite.databasefile import LockWait
from pegboard_plugins.sqlite.owners import Owners
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    storage = await SqliteStorage.open(path, ids=IdSource())
    yield storage
    await storage.aclose()


async def test_a_bug_in_a_job_fails_its_group_and_nothing_later(storage: SqliteStorage) -> None:
    def buggy(db: apsw.Connection) -> tuple[None, tuple[Event, ...]]:
        db.execute("DELETE FROM session")
        raise ZeroDivisionError

    await storage.commit(CreateSession(rows.session()))

    with pytest.raises(StorageError, match="writer failed"):
        await storage._writer.run(buggy)
    await storage.commit(CreateSession(rows.session("ses_2")))

    assert len(await storage.sessions()) == 2


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize("change", [removed, replaced])
async def test_a_write_to_a_removed_or_replaced_database_is_refused(
    storage: SqliteStorage, path: Path, change: Callable[[Path], None]
) -> None:
    await storage.commit(CreateSession(rows.session()))

    change(path)

    with pytest.raises(StorageError, match=r"pegboard\.db: .* removed or replaced .* restart"):
        await storage.commit(CreateSession(rows.session("ses_2")))
    with pytest.raises(StorageError, match="removed or replaced"):  # the release of its sessions
        await storage.aclose()


async def test_a_database_that_is_moved_back_is_written_again(
    storage: SqliteStorage, path: Path
) -> None:
    aside = path.rename(path.with_name("aside"))
    with pytest.raises(StorageError, match="move the file back"):
        await storage.commit(CreateSession(rows.session()))

    aside.rename(path)
    await storage.commit(CreateSession(rows.session()))

    assert len(await storage.sessions()) == 1


@pytest.mark.parametrize("word", ["with a word", "without a word"])
async def test_the_end_of_the_writing_thread_fails_all_that_wait(
    storage: SqliteStorage, path: Path, word: str
) -> None:
    def ends(db: apsw.Connection) -> tuple[None, tuple[Event, ...]]:
        if word == "without a word":
            storage._writer._loop = asyncio.new_event_loop()  # which nobody runs
        raise SystemExit

    await storage.commit(CreateSession(rows.session()))

    waiting = [storage.commit(PutMessage(rows.question(f"msg_{number}"))) for number in range(600)]
    outcomes = await asyncio.gather(storage._writer.run(ends), *waiting, return_exceptions=True)
    turns = await storage.turns("ses_1")
    with pytest.raises(StorageError, match="has ended"):
        await storage.commit(CreateSession(rows.session("ses_2")))

    if word == "without a word":
        storage._writer._loop.close()
    assert {type(each) for each in outcomes} == {StorageError}
    assert all(str(path) in str(each) for each in outcomes)
    assert turns == ()
    with pytest.raises(StorageError, match="has ended"):
        await storage.aclose()


async def test_commits_that_wait_together_are_written_together(storage: SqliteStorage) -> None:
    await storage.commit(CreateSession(rows.session()))
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False  # which lets it happen

    storage._writer._db.set_commit_hook(count)

    await asyncio.gather(
        *(storage.commit(PutMessage(rows.question(f"msg_{number}"))) for number in range(200))
    )
    storage._writer._db.set_commit_hook(None)

    assert 0 < commits < 100
    assert len(await storage.turns("ses_1")) == 200


async def test_a_listener_that_raises_leaves_nobody_waiting(path: Path) -> None:
    loop = asyncio.get_running_loop()
    failures: list[object] = []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def deaf(events: tuple[Event, ...]) -> None:
        raise ZeroDivisionError

    storage = await SqliteStorage.open(path, ids=IdSource(), on_commit=deaf)
    async with asyncio.timeout(30):
        await storage.commit(CreateSession(rows.session()))
    await storage.aclose()

    assert [type(failure) for failure in failures] == [ZeroDivisionError]


async def test_listeners_hear_what_the_recovery_changed(path: Path) -> None:
    storage = await SqliteStorage.open(path, ids=IdSource())
    await storage.commit(
        CreateSession(rows.session()), PutMessage(rows.answer()), PutPart(rows.call())
    )
    await storage.aclose()
    heard: list[str] = []

    storage = await SqliteStorage.open(
        path, ids=IdSource(), on_commit=lambda events: heard.extend(event.type for event in events)
    )
    await storage.aclose()

    assert heard == ["message.part.updated", "message.updated", "session.status", "session.idle"]


async def test_the_log_is_written_back_when_nothing_happens(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writerthread, "_IDLE_S", 0.05)
    storage = await SqliteStorage.open(path, ids=IdSource())
    await storage.commit(CreateSession(rows.session(title="x" * 20_000)))
    before = path.stat().st_size

    async with asyncio.timeout(30):
        while path.stat().st_size == before:
            await asyncio.sleep(0.02)
    await storage.aclose()


def test_an_opening_that_takes_too_long_is_named(tmp_path: Path) -> None:
    first = Owners(tmp_path / "owners")
    second = Owners(tmp_path / "owners")
    wait = LockWait(tmp_path / "pegboard.db", limit_s=0.02)

    with first.opening(wait), pytest.raises(StorageError, match="opening"), second.opening(wait):
        pass
