"""A database of every earlier version opens, with a copy of what was there beside it.

tests/data has one database per version, as SQL. A new step of migration needs one more.
"""

import sqlite3
import stat
from pathlib import Path

import pytest

from pegboard.ids import IdSource
from pegboard.schema.event import PartUpdated
from pegboard.schema.part import Completed, TextPart, ToolPart
from pegboard.schema.session import Rule, Todo
from pegboard.storage.changes import ChangeSession, PutApproval
from pegboard_plugins.sqlite.migrations import MIGRATIONS
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage.damage import PAGE, met, overwritten, rootpage
from support.tools.cases import DATA

VERSIONS = range(1, len(MIGRATIONS) + 1)


def laid_down(version: int, path: Path) -> None:
    """The database of a version, as it was left."""
    db = sqlite3.connect(path)
    db.executescript((DATA / f"database_{version}.sql").read_text())
    db.close()


async def opened(path: Path) -> SqliteStorage:
    return await SqliteStorage.open(path, ids=IdSource())


async def is_as_it_was(storage: SqliteStorage, *, last: int | None = 8) -> None:
    """All is there, up to the event of the number `last`."""
    [asked, answered] = await storage.turns("ses_1")
    [call] = answered.parts
    assert [(p.id, p.text) for p in asked.parts if isinstance(p, TextPart)] == [("prt_1", "hello")]
    assert isinstance(call, ToolPart)
    assert isinstance(call.state, Completed)
    assert [each.id for each in await storage.sessions("project", roots=True)] == ["ses_1"]
    assert [each.id for each in await storage.children("ses_1")] == ["ses_2"]
    assert await storage.todos("ses_1") == (Todo(content="a", status="pending"),)
    assert await storage.state("ses_1", "k") == {"a": [1]}
    approved = [each.rule for each in await storage.approvals("project")]
    assert approved == [Rule("bash", "make *", "allow")]
    assert len(await storage.projects()) == 1
    events = await storage.events(0)
    assert last is None or [event.seq for event in events] == list(range(1, last + 1))
    told = [each.properties for each in events if isinstance(each.properties, PartUpdated)]
    assert [each.part for each in told if each.part.id == "prt_1"][-1] == asked.parts[0]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_database_of_each_version_opens_and_goes_on(tmp_path: Path, version: int) -> None:
    path = tmp_path / "pegboard.db"
    laid_down(version, path)

    storage = await opened(path)
    await is_as_it_was(storage)
    [session] = await storage.sessions("project", roots=True)
    [event] = await storage.commit(ChangeSession(session_id=session.id, title="new"))
    await storage.commit(PutApproval("project", (Rule("edit", "*", "allow"),)))
    problems = await storage.problems()
    await storage.aclose()

    assert event.seq == 9
    assert problems == storage.warnings == ()
    copy = path.with_name(f"{path.name}.backup-{version}")
    assert copy.exists() is (version < len(MIGRATIONS))
    if copy.exists():
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        with sqlite3.connect(copy) as db:
            assert db.execute("SELECT value FROM meta").fetchall() == [(str(version),)]
        db.close()


async def test_a_process_of_version_3_that_still_runs_adds_no_text_to_other_parts(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pegboard.db"
    laid_down(3, path)
    with sqlite3.connect(path) as still_open:
        still_open.execute("SELECT * FROM part_text").fetchall()
        storage = await opened(path)

        with pytest.raises(sqlite3.OperationalError, match="no column named data"):
            still_open.execute(
                "INSERT INTO part_text(session_id, part_id, data) VALUES('ses_1', 'prt_2', x'21')"
            )
    still_open.close()

    await is_as_it_was(storage)
    await storage.aclose()


@pytest.mark.parametrize("damaged", [False, True])
async def test_a_text_that_was_being_streamed_by_version_3_is_read(
    tmp_path: Path, damaged: bool
) -> None:
    path = tmp_path / "pegboard.db"
    laid_down(3, path)
    with sqlite3.connect(path) as db:
        db.execute(
            "UPDATE part SET state = 'open', data = CAST("
            "replace(CAST(data AS TEXT), 'hello', '') AS BLOB) WHERE id = 'prt_1'"
        )
        if damaged:  # its pieces and its event are what is left of it
            db.execute("DELETE FROM part WHERE id = 'prt_1'")
    db.close()

    if damaged:
        overwritten(path, (rootpage(path, "session_recent") - 1) * PAGE)
        met(path)
    storage = await opened(path)
    await is_as_it_was(storage, last=None)
    await storage.aclose()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_damaged_database_of_each_version_is_taken_over(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "pegboard.db"
    laid_down(version, path)
    with sqlite3.connect(path) as db:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'session_recent'"
        [(page,)] = db.execute(query)
        [(size,)] = db.execute("PRAGMA page_size")
    db.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)
    path.with_name(f"{path.name}.damaged").touch()

    storage = await opened(path)
    await is_as_it_was(storage)
    await storage.aclose()

    assert "(sessions: 2, messages: 2)" in storage.warnings[0]
