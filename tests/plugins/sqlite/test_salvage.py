# ruff: noqa: ASYNC240 - these tests arrange small files
"""What is kept of a damaged database."""

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from pegboard.errors import StorageError
from pegboard.ids import IdSource
from pegboard.schema.message import Turn
from pegboard.schema.part import Failed, ToolPart
from pegboard.schema.session import Project, ProjectTime, Rule, Todo
from pegboard.storage.changes import (
    Change,
    CreateSession,
    DropSession,
    PutApproval,
    PutMessage,
    PutPart,
    PutProject,
    PutState,
    PutTodos,
)
from pegboard_plugins.sqlite.salvage import Salvaged
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows, stored
from support.storage.damage import PAGE, met, overwritten, rootpage, taken_over

LEAF = 0x0D
SESSIONS = 6
MESSAGES = 30


async def opened(path: Path) -> SqliteStorage:
    return await SqliteStorage.open(path, ids=IdSource())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


@pytest.fixture
async def full(path: Path) -> dict[str, tuple[Turn, ...]]:
    """What a database of several pages per table has, by session; it has no events."""
    storage = await opened(path)
    project = Project(
        id="project", worktree="/home", time=ProjectTime(created=1, updated=1), sandboxes=()
    )
    await storage.commit(PutProject(project))
    for number in range(SESSIONS):
        await storage.commit(*_conversation(f"ses_{number}"))
    await storage.commit(PutApproval("project", (Rule("bash", "ls", "allow"),)))
    storage._writer._db.execute("DELETE FROM event")
    storage._writer._db.execute("VACUUM")  # no page has rows that are gone
    turns = {f"ses_{n}": await storage.turns(f"ses_{n}") for n in range(SESSIONS)}
    await storage.aclose()
    return turns


def _conversation(
    session_id: str,
) -> list[Change]:
    changes: list[Change] = [
        CreateSession(rows.session(session_id)),
        PutTodos(session_id, (Todo(content="a", status="pending"),)),
        PutState(session_id, "k", 1),
    ]
    for number in range(MESSAGES):
        message = f"msg_{number:03}"
        changes.append(PutMessage(rows.question(message, session_id=session_id)))
        part = rows.text(
            f"prt_{number:03}", message_id=message, session_id=session_id, content="x" * 700
        )
        changes.append(PutPart(part))
    return changes


def pages_of(path: Path, table: str) -> list[int]:
    """The offsets of the leaf pages of a table's rows."""
    content = path.read_bytes()
    leaves = [start for start in range(PAGE, len(content), PAGE) if content[start] == LEAF]
    mark = {"part": b'"text"', "message": b'"role"'}[table]
    return [start for start in leaves if mark in content[start : start + PAGE]]


async def test_a_damaged_page_costs_its_own_rows_only(
    path: Path, full: dict[str, tuple[Turn, ...]]
) -> None:
    damaged = pages_of(path, "part")
    overwritten(path, damaged[3])
    content = path.read_bytes()
    met(path)

    storage = await opened(path)
    kept = {session: await storage.turns(session) for session in full}
    rules = await storage.approvals("project")
    todos = await storage.todos("ses_5")
    remembered = await storage.state("ses_5", "k")
    await storage.aclose()

    before = [part for turns in full.values() for turn in turns for part in turn.parts]
    after = [part for turns in kept.values() for turn in turns for part in turn.parts]
    assert {session: [t.info for t in turns] for session, turns in kept.items()} == {
        session: [t.info for t in turns] for session, turns in full.items()
    }
    assert 0 < len(before) - len(after) <= PAGE // 700
    assert [part for part in before if part in after] == after
    assert ([each.rule for each in rules], todos, remembered) == (
        [Rule("bash", "ls", "allow")],
        (Todo(content="a", status="pending"),),
        1,
    )
    [warning] = storage.warnings
    [aside] = path.parent.glob("*.corrupt-*[0-9Z]")
    assert f"(sessions: {SESSIONS}, messages: {SESSIONS * MESSAGES})" in warning
    assert str(aside) in warning
    assert aside.read_bytes() == content


async def test_a_read_that_meets_damage_has_the_next_opening_mend_it(
    path: Path, full: dict[str, tuple[Turn, ...]]
) -> None:
    overwritten(path, pages_of(path, "part")[0])
    storage = await opened(path)
    with pytest.raises(StorageError, match="malformed"):
        await storage.turns("ses_0")
    await storage.aclose()

    mended = await opened(path)
    turns = await mended.turns("ses_0")
    problems = await mended.problems()
    await mended.aclose()
    again = await opened(path)
    await again.aclose()

    assert [turn.info for turn in turns] == [turn.info for turn in full["ses_0"]]
    assert problems == ()
    assert len(mended.warnings) == 1
    assert again.warnings == ()


@pytest.mark.parametrize("lost", [b"\0" * 100, b"\xa5" * 100, b"no base"], ids=len)
async def test_a_lost_head_of_the_file_costs_nothing(
    path: Path, full: dict[str, tuple[Turn, ...]], lost: bytes
) -> None:
    content = bytearray(path.read_bytes())
    content[: len(lost)] = lost
    path.write_bytes(content)

    storage = await opened(path)
    kept = {session: await storage.turns(session) for session in full}
    problems = await storage.problems()
    await storage.aclose()

    assert kept == full
    assert problems == ()
    [aside] = path.parent.glob("*.corrupt-*")
    assert aside.read_bytes() == content
    assert not list(path.parent.glob("mending-*"))


@pytest.mark.parametrize("logged", [False, True])
async def test_rows_are_found_without_the_list_of_tables(
    path: Path, full: dict[str, tuple[Turn, ...]], *, logged: bool
) -> None:
    if logged:  # what was written last is in the log alone, as after a crash
        storage = await opened(path)
        question, part = (
            rows.question("msg_new", session_id="ses_0"),
            rows.text("prt_new", message_id="msg_new", session_id="ses_0", content="y" * 20_000),
        )
        await storage.commit(PutMessage(question), PutPart(part))
        full["ses_0"] = await storage.turns("ses_0")
        files = {file: file.read_bytes() for file in (path, path.with_name("pegboard.db-wal"))}
        await storage.aclose()
        for file, kept_bytes in files.items():
            file.write_bytes(kept_bytes)
    content = bytearray(path.read_bytes())
    content[:PAGE] = b"\0" * PAGE
    path.write_bytes(content)
    met(path)

    storage = await opened(path)
    kept = {session: await storage.turns(session) for session in full}
    rules = await storage.approvals("project")
    todos = await storage.todos("ses_1")
    problems = await storage.problems()
    await storage.aclose()

    assert kept == full
    assert [each.rule for each in rules] == [Rule("bash", "ls", "allow")]
    assert todos == (Todo(content="a", status="pending"),)
    assert problems == ()


async def test_whichever_page_is_lost_no_word_of_the_newest_is(tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    storage = await opened(path)
    await storage.commit(*_conversation("ses_0"))
    turns = await storage.turns("ses_0")
    await storage.aclose()
    content = path.read_bytes()
    assert len(content) > 20 * PAGE

    for start in range(0, len(content), 3 * PAGE):  # page 1 has the list of tables
        damaged = tmp_path / str(start) / "pegboard.db"
        damaged.parent.mkdir()
        damaged.write_bytes(content[:start] + b"\0" * PAGE + content[start + PAGE :])
        met(damaged)
        storage = await opened(damaged)
        kept = await storage.turns("ses_0")
        sessions = await storage.sessions()
        await storage.aclose()

        assert kept == turns
        assert sessions == (rows.session("ses_0"),)


async def test_deleted_rows_do_not_come_back_with_the_lost_ones(path: Path) -> None:
    storage = await opened(path)
    for number in range(2):
        await storage.commit(*_conversation(f"ses_{number}"))
    await storage.commit(DropSession("ses_0"))
    await storage.aclose()
    roots = [rootpage(path, name) for name in ("part", "message", "event")]
    for root in roots:
        overwritten(path, (root - 1) * PAGE)
    met(path)

    storage = await opened(path)
    sessions = await storage.sessions()
    turns = await storage.turns("ses_1")
    await storage.aclose()

    assert [each.id for each in sessions] == ["ses_1"]
    assert len(turns) == MESSAGES
    assert all(len(turn.parts) == 1 for turn in turns)


async def test_lost_rows_come_back_from_their_events_in_their_places(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(*_conversation("ses_0"))
    before = await storage.turns("ses_0")
    last = await stored.last_seq(storage)
    db = storage._writer._db
    db.execute("PRAGMA foreign_keys = 0")
    db.execute("DELETE FROM message WHERE id IN ('msg_003', 'msg_004')")
    db.execute("DELETE FROM part WHERE id IN ('prt_003', 'prt_017')")
    db.execute("DELETE FROM session")
    await storage.aclose()

    found = await taken_over(path)

    storage = await opened(path)
    turns = await storage.turns("ses_0")
    session = await storage.session("ses_0")
    [event] = await storage.commit(CreateSession(rows.session("ses_9")))
    await storage.aclose()
    assert found == Salvaged(1, MESSAGES, MESSAGES)
    assert turns == before
    assert session == rows.session("ses_0")
    assert event.seq == last + 1


async def test_what_was_said_in_a_lost_session_is_found(
    path: Path, full: dict[str, tuple[Turn, ...]]
) -> None:
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM session WHERE id = 'ses_1'")  # without foreign keys: rows stay
    db.execute("DELETE FROM message WHERE session_id = 'ses_2' AND id = 'msg_007'")
    db.close()

    await taken_over(path)

    storage = await opened(path)
    lost = await storage.session("ses_1")
    turns = await storage.turns("ses_1")
    orphaned = await storage.turns("ses_2")
    await storage.aclose()
    assert lost.title == "recovered conversation"
    assert (lost.project_id, lost.directory) == ("project", "/home")
    assert turns == full["ses_1"]
    assert [turn.info.id for turn in orphaned] == [turn.info.id for turn in full["ses_2"]]
    assert orphaned[7].parts == full["ses_2"][7].parts


async def test_an_answer_that_ran_is_interrupted_in_the_new_database(path: Path) -> None:
    storage = await opened(path)
    await storage.commit(
        CreateSession(rows.session()),
        PutMessage(rows.question()),
        PutMessage(rows.answer()),
        PutPart(rows.call()),
    )
    storage._owners.close()  # as if the process had died
    await storage._writer.aclose()
    overwritten(path, (rootpage(path, "session_recent") - 1) * PAGE)
    met(path)

    storage = await opened(path)
    turns = await storage.turns("ses_1")
    running = await stored.running(storage)
    await storage.aclose()

    [call] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(call.state, Failed)
    assert running == ()
    assert len(storage.warnings) == 1


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_is_damaged_the_start_goes_on(
    path: Path, full: dict[str, tuple[Turn, ...]], seed: int
) -> None:
    chance = random.Random(seed)
    kinds: tuple[Callable[[], object], ...] = (
        lambda: overwritten(path, chance.randrange(path.stat().st_size), chance.randrange(9000)),
        lambda: path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)]),
        lambda: overwritten(path, PAGE * chance.randrange(path.stat().st_size // PAGE), 40),
    )
    kinds[seed % len(kinds)]()
    met(path)

    storage = await opened(path)
    known = {turn.info.id for turns in full.values() for turn in turns}
    for session in await storage.sessions():
        assert {turn.info.id for turn in await storage.turns(session.id)} <= known
    problems = await storage.problems()
    await storage.commit(CreateSession(rows.session("ses_new")))
    await storage.aclose()

    assert [text for text in problems if "cannot be read" not in text] == []
