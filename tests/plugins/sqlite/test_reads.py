import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from pegboard.errors import NotFoundError
from pegboard.ids import IdSource
from pegboard.schema.message import Turn
from pegboard.schema.session import Approval, Project, ProjectTime, Rule, Todo
from pegboard.schema.wire import encode
from pegboard.storage import LastIds
from pegboard.storage.changes import (
    Change,
    CreateSession,
    DropApproval,
    DropSession,
    PutApproval,
    PutMessage,
    PutPart,
    PutProject,
    PutState,
    PutTodos,
)
from pegboard_plugins.sqlite import owners, reads
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows, stored

PROJECT = Project(
    id="project", worktree="/work", time=ProjectTime(created=1, updated=1), sandboxes=()
)


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    opened = await SqliteStorage.open(tmp_path / "pegboard.db", ids=IdSource())
    yield opened
    await opened.aclose()


@pytest.fixture
async def talk(storage: SqliteStorage) -> None:
    """A session with a question and an answer."""
    await storage.commit(
        CreateSession(rows.session()),
        PutMessage(rows.question()),
        PutPart(rows.text()),
        PutMessage(rows.answer()),
        PutPart(rows.call()),
    )


async def test_turns_come_in_the_order_of_creation_whatever_their_ids(
    storage: SqliteStorage,
) -> None:
    messages = ["msg_zzz", "msg_000", "msg_mmm", "msg_ffffffffffff"]
    parts = ["prt_9", "prt_1", "prt_5"]
    await storage.commit(CreateSession(rows.session()))
    for message_id in messages:
        await storage.commit(
            PutMessage(rows.question(message_id)),
            *(PutPart(rows.text(f"{part}{message_id}", message_id=message_id)) for part in parts),
        )
    await storage.commit(
        PutMessage(rows.question("msg_zzz")),
        PutPart(rows.text("prt_9msg_zzz", message_id="msg_zzz")),
    )

    turns = await storage.turns("ses_1")

    assert [turn.info.id for turn in turns] == messages
    assert [[part.id[:5] for part in turn.parts] for turn in turns] == [parts] * 4


async def test_the_last_turns_can_be_read_alone(storage: SqliteStorage, talk: None) -> None:
    both = await storage.turns("ses_1")

    assert both == (
        Turn(info=rows.question(), parts=(rows.text(),)),
        Turn(info=rows.answer(), parts=(rows.call(),)),
    )
    assert await storage.turns("ses_1", limit=1) == both[1:]
    assert await storage.turns("ses_1", limit=0) == ()
    assert await storage.turn("ses_1", "msg_2") == both[1]


@pytest.mark.parametrize("limit", [None, 0, 1, 5])
async def test_the_json_of_turns_is_that_of_the_values(
    storage: SqliteStorage, talk: None, limit: int | None
) -> None:
    joined = await storage.turns_json("ses_1", limit=limit)

    assert json.loads(joined) == json.loads(encode(await storage.turns("ses_1", limit=limit)))


async def test_sessions_are_listed_last_updated_first(storage: SqliteStorage) -> None:
    await storage.commit(
        CreateSession(rows.session("ses_old", updated=1)),
        CreateSession(rows.session("ses_new", updated=9, title="100%_Sure")),
        CreateSession(rows.session("ses_child", updated=5, parent_id="ses_old")),
        CreateSession(rows.session("ses_same", updated=5, directory="/else")),
        CreateSession(rows.session("ses_far", updated=7, project_id="other")),
    )

    async def listed(**wanted: object) -> list[str]:
        found = await storage.sessions("project", **wanted)  # type: ignore[arg-type]  # the filters vary
        return [session.id for session in found]

    assert await listed() == ["ses_new", "ses_same", "ses_child", "ses_old"]
    assert await listed(limit=2) == ["ses_new", "ses_same"]
    assert await listed(roots=True) == ["ses_new", "ses_same", "ses_old"]
    assert await listed(since=5) == ["ses_new", "ses_same", "ses_child"]
    assert await listed(directory="/else") == ["ses_same"]
    assert await listed(search="%_sure") == ["ses_new"]
    assert await listed(search="_title") == []
    assert [session.id for session in await storage.sessions()][1] == "ses_far"
    assert [session.id for session in await storage.children("ses_old")] == ["ses_child"]


@pytest.mark.parametrize("wanted", [{}, {"limit": 1}, {"search": "nothing"}])
async def test_the_json_of_sessions_is_that_of_the_values(
    storage: SqliteStorage, wanted: dict[str, object]
) -> None:
    await storage.commit(
        CreateSession(rows.session("ses_1", updated=1)),
        CreateSession(rows.session("ses_2", updated=2, parent_id="ses_1")),
    )

    joined = await storage.sessions_json("project", **wanted)
    values = await storage.sessions("project", **wanted)  # type: ignore[arg-type]  # the filters vary

    assert json.loads(joined) == json.loads(encode(values))


async def test_sessions_are_found_by_index(storage: SqliteStorage) -> None:
    plan = storage._writer._db.execute(
        "EXPLAIN QUERY PLAN SELECT data FROM session WHERE project_id = 'p' "
        "ORDER BY updated DESC, ordinal DESC LIMIT 9"
    )

    steps = [str(row[-1]) for row in plan]

    assert steps == ["SEARCH session USING INDEX session_recent_of_project (project_id=?)"]


def operations(db: apsw.Connection, read: Callable[[], object]) -> int:
    """How many steps of the database's machine a read takes."""
    counts: Counter[str] = Counter()

    def count() -> bool:
        counts["steps"] += 1
        return False

    db.set_progress_handler(count, 1)
    read()
    db.set_progress_handler(None)
    return counts["steps"]


async def filled(storage: SqliteStorage, messages: int) -> apsw.Connection:
    """A session of so many messages with two parts each, and as many other sessions."""
    changes: list[Change] = [CreateSession(rows.session())]
    for number in range(messages):
        message_id = f"msg_{number:06}"
        changes.append(CreateSession(rows.session(f"ses_x{number:06}", updated=number)))
        changes.append(PutMessage(rows.question(message_id)))
        changes += [
            PutPart(rows.text(f"prt_{number:06}{part}", message_id=message_id)) for part in "ab"
        ]
    await storage.commit(*changes)
    return storage._writer._db


async def test_the_last_messages_are_read_without_those_before(tmp_path: Path) -> None:
    found = []
    for messages in (40, 2_000):
        path = tmp_path / f"{messages}.db"
        storage = await SqliteStorage.open(path, ids=IdSource())
        db = await filled(storage, messages)
        found.append(operations(db, partial(reads.turns, db, "ses_1", limit=10)))
        await storage.aclose()

    few, many = found
    assert many < 1.2 * few


async def test_no_read_of_some_rows_scans_or_sorts_all_of_them(storage: SqliteStorage) -> None:
    db = await filled(storage, 200)
    queries: list[tuple[str, Any]] = []

    def note(_: object, sql: str, bindings: Any) -> bool:
        queries.append((sql, bindings))
        return True

    db.exec_trace = note
    reads.session(db, "ses_1")
    reads.owner(db, "ses_1")
    for project in ("project", None):
        reads.sessions(db, project, {"limit": 9})
        reads.sessions(db, project, {"since": 190})
    reads.children(db, "ses_1")
    reads.turns(db, "ses_1", limit=None)
    reads.turns(db, "ses_1", limit=9, before="msg_000100")
    reads.turn(db, "ses_1", "msg_000100")
    reads.todos(db, "ses_1")
    reads.state(db, "ses_1", "k")
    reads.events(db, 90, 10)
    reads.last_ids(db, "ses_1")
    owners.recover(db, lambda _: True)
    owners.interrupt(db, "ses_1")
    db.execute("DELETE FROM message WHERE session_id = 'ses_1' AND id = 'msg_000100'")
    db.exec_trace = None

    plans = {
        sql: [str(row[-1]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
        for sql, bindings in queries
        if sql.split()[0] in {"SELECT", "UPDATE", "DELETE"}
    }
    # All sessions by their time, and indexes that have only the rows that are asked for.
    whole = "session_recent|session_owned|message_unfinished|part_running"
    scan = rf"SCAN (session|message|part|part_text|event)\b(?! USING (COVERING )?INDEX ({whole})$)"
    odd = re.compile(rf"{scan}|TEMP B-TREE FOR ORDER")
    assert {sql: plan for sql, plan in plans.items() if any(map(odd.search, plan))} == {}
    assert len(plans) > 15


async def test_todos_are_replaced(storage: SqliteStorage, talk: None) -> None:
    await storage.commit(PutTodos("ses_1", (Todo(content="a", status="pending"),)))
    await storage.commit(PutTodos("ses_1", (Todo(content="b", status="pending"),)))

    assert await storage.todos("ses_1") == (Todo(content="b", status="pending"),)


async def test_tool_state_is_any_json(storage: SqliteStorage, talk: None) -> None:
    await storage.commit(PutState("ses_1", "k", {"a": [1, None, "ü"]}))

    assert await storage.state("ses_1", "k") == {"a": [1, None, "ü"]}
    await storage.commit(PutState("ses_1", "k", None))
    assert await storage.state("ses_1", "k") is None


async def test_approvals_are_kept_by_project(storage: SqliteStorage) -> None:
    first = Rule(permission="bash", pattern="ls *", action="allow")
    second = Rule(permission="edit", pattern="*", action="allow")
    await storage.commit(
        PutApproval("project", (first, second), at=7),
        PutApproval("project", (first,), agent="plan"),
        PutApproval("other", (first,)),
    )
    given = await storage.approvals("project")

    assert given == (
        Approval(1, "project", first, at=7),
        Approval(2, "project", second, at=7),
        Approval(3, "project", first, agent="plan"),
    )
    await storage.commit(PutApproval("project", (first,), at=8), DropApproval((2,)))
    kept = await storage.approvals("other", "project")
    assert [(each.id, each.key, each.at) for each in kept] == [
        (1, "project", 8),
        (3, "project", 0),
        (4, "other", 0),
    ]


async def test_approvals_of_a_session_are_found_by_its_project_and_go_with_it(
    storage: SqliteStorage, talk: None
) -> None:
    rule = Rule(permission="edit", pattern="*", action="allow")
    await storage.commit(PutApproval("ses_1", (rule,)))
    session = await storage.session("ses_1")

    found = await storage.session_approvals(session.project_id)
    await storage.commit(DropSession("ses_1"))

    assert found == (Approval(1, "ses_1", rule),)
    assert found[0].scope == "session"
    assert await storage.approvals("ses_1") == ()


async def test_projects_are_listed(storage: SqliteStorage) -> None:
    await storage.commit(PutProject(PROJECT))
    await storage.commit(PutProject(PROJECT))

    assert await storage.projects() == (PROJECT,)


async def test_the_greatest_ids_of_a_session_are_known(storage: SqliteStorage) -> None:
    await storage.commit(CreateSession(rows.session()))
    assert await storage.last_ids("ses_1") == LastIds(message=None, part=None)

    await storage.commit(
        PutMessage(rows.question("msg_zz")),
        PutPart(rows.text("prt_zz", message_id="msg_zz")),
        PutMessage(rows.question("msg_01")),
        PutPart(rows.text("prt_01", message_id="msg_01")),
    )

    assert await storage.last_ids("ses_1") == LastIds(message="msg_zz", part="prt_zz")


async def test_sessions_with_running_calls_are_known(storage: SqliteStorage, talk: None) -> None:
    assert await stored.running(storage) == ("ses_1",)


@pytest.mark.parametrize("what", ["session", "turn"])
async def test_what_is_not_there_is_not_found(storage: SqliteStorage, what: str) -> None:
    with pytest.raises(NotFoundError):
        await (storage.session("ses_9") if what == "session" else storage.turn("ses_9", "msg_9"))
