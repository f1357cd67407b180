import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from pegboard.errors import InvalidInputError, NotFoundError, StorageError
from pegboard.ids import IdSource
from pegboard.schema.event import (
    Custom,
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    ProjectUpdated,
    SessionCreated,
    SessionDeleted,
    TodoUpdated,
)
from pegboard.schema.message import Turn
from pegboard.schema.session import PermissionRequest, Project, ProjectTime, Todo
from pegboard.schema.wire import encode
from pegboard.storage.changes import (
    Change,
    CreateSession,
    DropMessage,
    DropPart,
    DropSession,
    PublishEvent,
    PutMessage,
    PutPart,
    PutPermissionRequest,
    PutProject,
    PutState,
    PutTodos,
    SettlePermissionRequest,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from pegboard_plugins.sqlite.writes import _WRITERS
from support.storage import rows, stored

PROJECT = Project(
    id="project", worktree="/work", time=ProjectTime(created=1, updated=1), sandboxes=()
)
REQUEST = PermissionRequest(
    id="per_1", session_id="ses_1", permission="bash", patterns=("ls",), metadata={}, always=("ls",)
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


def test_every_change_can_be_written() -> None:
    assert set(_WRITERS) == set(get_args(Change))


async def test_events_are_numbered_in_order_and_read_back_as_they_were(
    storage: SqliteStorage,
) -> None:
    events = await storage.commit(
        PutProject(PROJECT),
        CreateSession(rows.session()),
        PutMessage(rows.question()),
        PutPart(rows.text()),
        PutTodos("ses_1", (Todo(content="a", status="pending"),)),
        PutPermissionRequest(REQUEST),
        PublishEvent(Custom(name="mine.own", data={"a": [1]})),
    )

    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert await storage.events(0) == events
    assert await storage.events(4, limit=2) == events[4:6]
    assert await stored.last_seq(storage) == 7
    part_updated = events[3].properties
    assert isinstance(part_updated, PartUpdated)
    assert [event.properties for event in events] == [
        ProjectUpdated(info=PROJECT),
        SessionCreated(session_id="ses_1", info=rows.session()),
        MessageUpdated(session_id="ses_1", info=rows.question()),
        PartUpdated(session_id="ses_1", part=rows.text(), time=part_updated.time),
        TodoUpdated(session_id="ses_1", todos=(Todo(content="a", status="pending"),)),
        PermissionAsked(request=REQUEST),
        Custom(name="mine.own", data={"a": [1]}),
    ]


async def test_the_stored_event_has_the_protocol_s_properties(storage: SqliteStorage) -> None:
    events = await storage.commit(CreateSession(rows.session()), PutMessage(rows.question()))

    stored = [
        json.loads(data)
        for (data,) in storage._writer._db.execute("SELECT data FROM event ORDER BY seq")
    ]
    assert stored == [json.loads(encode(event.payload())) for event in events]


async def test_of_a_thing_s_updates_the_first_and_the_last_event_stay(
    storage: SqliteStorage, talk: None
) -> None:
    before = await stored.last_seq(storage)
    for length in range(1, 20):
        await storage.commit(PutPart(rows.text(content="x" * length)))

    kept = await storage.events(0)

    texts = [
        event.properties.part
        for event in kept
        if isinstance(event.properties, PartUpdated) and event.properties.part.id == "prt_1"
    ]
    assert texts == [rows.text(), rows.text(content="x" * 19)]
    assert kept[-1].seq == before + 19


async def test_only_the_newest_events_are_kept(storage: SqliteStorage) -> None:
    for _ in range(11):
        await storage.commit(*(PublishEvent(Custom(name="n", data={})) for _ in range(1000)))

    kept = await storage.events(0, limit=20_000)

    assert 10_000 <= len(kept) < 10_256
    assert kept[-1].seq == 11_000


async def test_a_session_goes_with_its_family_deepest_first(
    storage: SqliteStorage, talk: None
) -> None:
    await storage.commit(
        CreateSession(rows.session("ses_2", parent_id="ses_1")),
        CreateSession(rows.session("ses_3", parent_id="ses_2")),
        PutTodos("ses_1", (Todo(content="a", status="pending"),)),
        PutState("ses_1", "k", 1),
    )

    events = await storage.commit(DropSession("ses_1"))

    gone = ["ses_3", "ses_2", "ses_1"]
    assert [event.session_id for event in events] == gone
    assert all(isinstance(event.properties, SessionDeleted) for event in events)
    assert await storage.sessions() == ()
    assert await storage.turns("ses_1") == ()
    assert await storage.todos("ses_1") == ()
    assert await storage.state("ses_1", "k") is None
    assert await storage.events(0) == events, "what a deleted session said is not kept in events"


async def test_sessions_that_are_each_other_s_parents_can_be_deleted(
    storage: SqliteStorage,
) -> None:
    await storage.commit(
        CreateSession(rows.session("ses_1")),
        CreateSession(rows.session("ses_2", parent_id="ses_1")),
    )
    storage._writer._db.execute("UPDATE session SET parent_id = 'ses_2' WHERE id = 'ses_1'")

    events = await storage.commit(DropSession("ses_1"))

    assert sorted(str(event.session_id) for event in events) == ["ses_1", "ses_2"]
    assert await storage.sessions() == ()


async def test_a_message_goes_with_its_parts(storage: SqliteStorage, talk: None) -> None:
    (event,) = await storage.commit(DropMessage("ses_1", "msg_2"))

    assert event.properties == MessageRemoved(session_id="ses_1", message_id="msg_2")
    assert await storage.turns("ses_1") == (Turn(info=rows.question(), parts=(rows.text(),)),)
    assert await stored.running(storage) == ()


async def test_a_part_goes_alone(storage: SqliteStorage, talk: None) -> None:
    (event,) = await storage.commit(DropPart("ses_1", "msg_2", "prt_2"))

    assert event.properties == PartRemoved(session_id="ses_1", message_id="msg_2", part_id="prt_2")
    assert (await storage.turn("ses_1", "msg_2")).parts == ()


async def test_dropping_what_is_not_there_is_no_event(storage: SqliteStorage, talk: None) -> None:
    events = await storage.commit(
        DropPart("ses_1", "msg_1", "prt_2"),
        DropMessage("ses_1", "msg_9"),
        DropSession("ses_9"),
        SettlePermissionRequest("ses_1", "per_9", "once"),
    )

    assert events == ()


async def test_a_request_waits_until_it_is_settled(storage: SqliteStorage, talk: None) -> None:
    await storage.commit(PutPermissionRequest(REQUEST))
    assert await stored.permission_requests(storage) == (REQUEST,)
    assert await stored.permission_requests(storage) == (REQUEST,)

    (event,) = await storage.commit(SettlePermissionRequest("ses_1", "per_1", "always"))

    assert event.properties == PermissionReplied(
        session_id="ses_1", request_id="per_1", reply="always"
    )
    assert await stored.permission_requests(storage) == ()


@pytest.mark.parametrize(
    "change",
    [
        PutMessage(rows.question()),
        PutPart(rows.text()),
        PutTodos("ses_1", ()),
        PutState("ses_1", "k", 1),
        PutPermissionRequest(REQUEST),
    ],
)
async def test_what_belongs_to_nothing_is_refused(storage: SqliteStorage, change: Change) -> None:
    with pytest.raises(NotFoundError):
        await storage.commit(change)

    assert await storage.events(0) == ()


async def test_a_part_cannot_move_to_another_message(storage: SqliteStorage, talk: None) -> None:
    with pytest.raises(InvalidInputError, match="prt_1 belongs to message msg_1"):
        await storage.commit(PutPart(rows.text("prt_1", message_id="msg_2")))


async def test_what_has_no_json_form_is_refused(storage: SqliteStorage, talk: None) -> None:
    with pytest.raises(InvalidInputError, match="JSON"):
        await storage.commit(PutState("ses_1", "k", object()))


async def test_a_commit_is_all_or_nothing(storage: SqliteStorage, talk: None) -> None:
    with pytest.raises(NotFoundError):
        await storage.commit(
            PutPart(rows.text(content="changed")), PutPart(rows.text("prt_9", message_id="msg_9"))
        )

    assert (await storage.turn("ses_1", "msg_1")).parts == (rows.text(),)


async def test_a_commit_that_fails_does_not_fail_those_beside_it(
    storage: SqliteStorage, talk: None
) -> None:
    changes = [PutState("ses_1" if n % 3 else "ses_9", f"k{n}", n) for n in range(30)]

    answers = await asyncio.gather(
        *(storage.commit(change) for change in changes), return_exceptions=True
    )

    assert [isinstance(answer, NotFoundError) for answer in answers] == [
        n % 3 == 0 for n in range(30)
    ]
    assert await storage.state("ses_1", "k29") == 29


async def test_commits_are_heard_in_order_even_when_nobody_waits_for_them(tmp_path: Path) -> None:
    heard: list[int] = []
    storage = await SqliteStorage.open(
        tmp_path / "pegboard.db",
        ids=IdSource(),
        on_commit=lambda events: heard.extend(event.seq for event in events),
    )
    waiting = [
        asyncio.ensure_future(storage.commit(PublishEvent(Custom(name="n", data={}))))
        for _ in range(20)
    ]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()

    await asyncio.wait(waiting)
    await storage.aclose()

    assert heard == list(range(1, 21))


async def test_a_closed_database_says_so(storage: SqliteStorage) -> None:
    await storage.aclose()
    await storage.aclose()

    with pytest.raises(StorageError, match="closed"):
        await storage.commit(CreateSession(rows.session()))
    with pytest.raises(StorageError, match="closed"):
        await storage.sessions()


async def test_a_release_after_the_closing_leaves_no_task(tmp_path: Path) -> None:
    storage = await SqliteStorage.open(tmp_path / "pegboard.db", ids=IdSource())
    await storage.commit(CreateSession(rows.session()))
    fence = await storage.claim("ses_1")
    await storage.aclose()

    with pytest.raises(StorageError, match="closed"):
        await storage.release(fence)

    assert asyncio.all_tasks() == {asyncio.current_task()}
