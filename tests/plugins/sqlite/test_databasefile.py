# ruff: noqa: ASYNC240 - these tests arrange small files
import asyncio
import os
import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import apsw
import pytest

from pegboard.errors import StorageError
from pegboard.ids import IdSource
from pegboard.storage.changes import CreateSession, PutMessage, PutPart
from pegboard_plugins.sqlite import open_sqlite
from pegboard_plugins.sqlite.databasefile import VERSION, schema_version
from pegboard_plugins.sqlite.migrations import MIGRATIONS, migrate
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows

FOREIGN_BOOT_OWNER = "1-2-00000000-abc"


async def opened(path: Path) -> SqliteStorage:
    return await SqliteStorage.open(path, ids=IdSource())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "pegboard.db"


@pytest.fixture
async def used(path: Path) -> None:
    """A database with enough rows to have pages to damage."""
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.question()))
    await storage.commit(*(PutPart(rows.text(f"prt_{n}", content="x" * 900)) for n in range(300)))
    await storage.aclose()


@pytest.mark.parametrize("scheme", ["", "sqlite://"])
async def test_a_path_and_a_url_open_the_same_database(path: Path, scheme: str) -> None:
    storage = await open_sqlite(f"{scheme}{path}", ids=IdSource())
    await storage.aclose()

    assert path.is_file()


async def test_only_the_user_can_read_the_database(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()))

    files = list(path.parent.rglob("*"))
    modes = {stat.S_IMODE(file.stat().st_mode) for file in files if file.is_file()}
    folders = {stat.S_IMODE(file.stat().st_mode) for file in (*files, path.parent) if file.is_dir()}
    await storage.aclose()

    assert modes == {0o600}
    assert folders == {0o700}
    assert {file.name for file in files} >= {"pegboard.db-wal", "pegboard.db-shm"}


async def test_the_settings_make_commits_durable(path: Path) -> None:
    storage = await opened(path)
    db = storage._writer._db

    names = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "trusted_schema")
    settings = [db.pragma(name) for name in names]
    await storage.aclose()

    assert settings == ["wal", 2, 1, 0, 0]


@pytest.mark.parametrize("content", [b"this is no database" * 99, b"\0" * 8192])
async def test_a_file_that_is_no_database_is_moved_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()))
    await storage.aclose()

    (warning,) = storage.warnings
    (aside,) = path.parent.glob("*.corrupt-*")
    assert str(aside) in warning
    assert aside.read_bytes() == content


async def test_damage_is_found_after_the_machine_stopped(path: Path, used: None) -> None:
    content = bytearray(path.read_bytes())
    content[8192:-4096] = b"\xa5" * (len(content) - 12288)
    path.write_bytes(content)
    (path.with_name("pegboard.db.owners") / FOREIGN_BOOT_OWNER).touch()

    storage = await opened(path)
    sessions = await storage.sessions()
    await storage.aclose()

    assert len(storage.warnings) == 1
    assert [session.title for session in sessions] == ["recovered conversation"]
    assert len(list(path.parent.glob("*.corrupt-*"))) == 1


async def test_a_version_that_is_no_number_is_damage(path: Path, used: None) -> None:
    db = apsw.Connection(str(path))
    db.execute("UPDATE meta SET value = 'banana' WHERE key = 'schema_version'")
    db.close()

    storage = await opened(path)
    sessions, turns = await storage.sessions(), await storage.turns("ses_1")
    await storage.aclose()

    [warning] = storage.warnings
    assert "'banana'" in warning
    assert [path for path in path.parent.glob("*.corrupt-*") if str(path) in warning]
    assert (sessions, len(turns[0].parts)) == ((rows.session(),), 300)


async def test_a_sound_database_is_kept_after_the_machine_stopped(path: Path, used: None) -> None:
    (path.with_name("pegboard.db.owners") / FOREIGN_BOOT_OWNER).touch()

    storage = await opened(path)
    sessions = await storage.sessions()
    await storage.aclose()

    assert storage.warnings == ()
    assert sessions == (rows.session(),)


async def test_damage_that_shows_at_the_opening_does_not_keep_the_user_out(
    path: Path, used: None
) -> None:
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)

    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()))
    await storage.aclose()

    assert len(storage.warnings) == 1


async def test_damage_that_shows_later_is_an_error_of_the_read(path: Path, used: None) -> None:
    content = bytearray(path.read_bytes())
    content[-len(content) // 3 :] = b"\xa5" * -(-len(content) // 3)
    path.write_bytes(content)
    storage = await opened(path)

    with pytest.raises(StorageError, match="malformed"):
        await storage.turns("ses_1")
    sessions = await storage.sessions()
    await storage.aclose()

    assert sessions == (rows.session(),)


async def test_a_damaged_database_that_others_use_is_not_moved(path: Path, used: None) -> None:
    other = await opened(path)
    path.write_bytes(b"this is no database" * 99)

    with pytest.raises(StorageError, match="close the other"):
        await opened(path)

    assert not list(path.parent.glob("*.corrupt-*"))
    await asyncio.gather(other.aclose(), return_exceptions=True)


async def test_another_program_s_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(a)")
    db.close()

    with pytest.raises(StorageError, match="another program"):
        await opened(path)


async def test_a_later_version_s_database_is_left_alone(path: Path, used: None) -> None:
    db = apsw.Connection(str(path))
    db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    db.close()

    with pytest.raises(StorageError, match="update pegboard"):
        await opened(path)


@pytest.mark.parametrize("place", ["/dev/null/pegboard.db", "/proc/pegboard.db"])
async def test_a_place_that_cannot_hold_a_database_is_named(place: str) -> None:
    with pytest.raises(StorageError, match=place):
        await opened(Path(place))


async def test_a_folder_in_the_database_s_place_is_an_error(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StorageError, match="cannot open"):
        await opened(path)


async def test_a_full_disk_fails_the_commit_and_no_other(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.question()))
    db = storage._writer._db
    pages = db.pragma("page_count")
    db.pragma("max_page_count", pages)

    with pytest.raises(StorageError, match="full"):
        await storage.commit(PutPart(rows.text(content="x" * 100_000)))
    db.pragma("max_page_count", 1_000_000)
    await storage.commit(PutPart(rows.text(content="small")))
    (turn,) = await storage.turns("ses_1")
    await storage.aclose()

    assert turn.parts == (rows.text(content="small"),)


async def test_a_writer_that_another_process_blocks_gives_up(path: Path) -> None:
    storage = await opened(path)
    storage._writer._db.set_busy_timeout(50)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageError, match="locked"):
        await storage.commit(CreateSession(rows.session()))
    other.execute("ROLLBACK")
    other.close()
    await storage.commit(CreateSession(rows.session()))
    await storage.aclose()


async def test_a_file_system_without_shared_memory_works_with_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This way of locking has no shared memory, as many network file systems.
    monkeypatch.setattr(apsw, "Connection", partial(apsw.Connection, vfs="unix-dotfile"))

    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()))
    sessions = await storage.sessions()
    await storage.aclose()

    assert len(storage.warnings) == 1
    assert sessions == (rows.session(),)


@pytest.fixture(scope="session")
def no_shared_maps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no file is mapped for writing, as on some network file systems."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("maps") / "maps.so"
    source = Path(__file__).parents[2] / "support/storage/no_shared_maps.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


def played(env: dict[str, str], mode: str, path: Path, *arguments: str) -> None:
    """Have a process of its own use the database."""
    child = Path(__file__).parents[2] / "support/storage/storage_child.py"
    done = subprocess.run(
        [sys.executable, child, mode, path, *arguments],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_a_database_that_no_memory_can_be_mapped_for_is_read_and_written(
    path: Path, no_shared_maps: dict[str, str]
) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()))
    killed = path.parent.with_name("killed")
    shutil.copytree(path.parent, killed)  # all of it is in the log
    await storage.aclose()
    fresh = path.parent.with_name("fresh") / path.name

    played(no_shared_maps, "hold", fresh)
    for name in "ab":
        played(no_shared_maps, "add", killed / path.name, name, "3")

    new, old = await opened(fresh), await opened(killed / path.name)
    counts = [len(await new.turns("ses_1")), len(await old.sessions())]
    counts += [len(await old.turns(f"ses_{name}")) for name in "ab"]
    problems = (*await new.problems(), *await old.problems())
    await new.aclose()
    await old.aclose()
    assert (counts, problems) == ([2, 3, 3, 3], ())


async def test_processes_that_can_map_no_memory_share_a_database(
    path: Path, no_shared_maps: dict[str, str]
) -> None:
    def add(name: str) -> None:
        played(no_shared_maps, "add", path, name, "20")

    await asyncio.gather(*(asyncio.to_thread(add, name) for name in "abcde"))

    storage = await opened(path)
    counts = [len(await storage.turns(f"ses_{name}")) for name in "abcde"]
    await storage.aclose()
    assert counts == [20] * 5


async def test_the_log_is_moved_into_the_database(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(CreateSession(rows.session()), PutMessage(rows.question()))
    for number in range(60):
        await storage.commit(PutPart(rows.text(f"prt_{number}", content="x" * 100_000)))
    log = path.with_name("pegboard.db-wal").stat().st_size
    await storage.aclose()

    assert log < 16 * 1024 * 1024
    assert not path.with_name("pegboard.db-wal").exists()


def test_a_migration_keeps_a_copy_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    path.touch()
    db = apsw.Connection(str(path))
    assert migrate(db, path, version=0) is None
    assert schema_version(db, path) == VERSION == len(MIGRATIONS)
    db.execute("INSERT INTO meta(key, value) VALUES('kept', 'yes')")

    copy = migrate(
        db, path, version=VERSION, migrations=(*MIGRATIONS, "CREATE TABLE added(a TEXT) STRICT")
    )

    assert copy == tmp_path / f"pegboard.db.backup-{len(MIGRATIONS)}"
    assert schema_version(db, path) == len(MIGRATIONS) + 1
    before = apsw.Connection(str(copy))
    assert schema_version(before, copy) == len(MIGRATIONS)
    assert list(before.execute("SELECT value FROM meta WHERE key = 'kept'")) == [("yes",)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    before.close()
    db.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.db"
    db = apsw.Connection(str(path))
    migrate(db, path, version=0)

    with pytest.raises(apsw.SQLError):
        migrate(
            db,
            path,
            version=VERSION,
            migrations=(*MIGRATIONS, "CREATE TABLE added(a); SELECT nonsense;"),
        )

    assert schema_version(db, path) == len(MIGRATIONS)
    assert not list(db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'added'"))
    db.close()
