"""A session's record: created once, changed by fields, and gone for good when it is deleted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.ids import IdSource
from pegboard.schema.event import SessionCreated, SessionFailed, SessionUpdated
from pegboard.schema.message import TextData, UnknownFailure
from pegboard.schema.session import (
    CacheTokens,
    Estimate,
    PermissionRequest,
    Revert,
    Rule,
    Session,
    SessionModel,
    SessionSummary,
    SessionTime,
    Todo,
    Tokens,
)
from pegboard.storage.changes import (
    Change,
    ChangeSession,
    CreateSession,
    DropSession,
    PublishEvent,
    PutApproval,
    PutMessage,
    PutPart,
    PutPermissionRequest,
    PutState,
    PutTodos,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows, stored

RULES = (Rule("bash", "*", "deny"),)
MODEL = SessionModel(id="m", provider_id="p")
REVERT = Revert(message_id="msg_1")
SUMMARY = SessionSummary(additions=1, deletions=2, files=3)
TOKENS = Tokens(input=1, output=2, reasoning=3, cache=CacheTokens(read=4, write=5))
TWICE = Tokens(input=2, output=4, reasoning=6, cache=CacheTokens(read=8, write=10))

ESTIMATE = Estimate(requests=1, cost=0.25, tokens=40)
FIELDS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "title": ({"title": "new"}, {"title": "new"}),
    "agent": ({"agent": "plan"}, {"agent": "plan"}),
    "model": ({"model": MODEL}, {"model": MODEL}),
    "summary": ({"summary": SUMMARY}, {"summary": SUMMARY}),
    "permission": ({"permission": RULES}, {"permission": RULES}),
    "revert": ({"revert": REVERT}, {"revert": REVERT}),
    "metadata": ({"metadata": {"a": 1}}, {"metadata": {"a": 1}}),
    "updated": ({"updated": 9}, {"time": SessionTime(created=1, updated=9)}),
    "archived": ({"archived": 7}, {"time": SessionTime(created=1, updated=1, archived=7)}),
    "compacting": ({"compacting": 7}, {"time": SessionTime(created=1, updated=1, compacting=7)}),
    "cost": ({"cost": 0.5}, {"cost": 0.5}),
    "tokens": ({"tokens": TOKENS}, {"tokens": TOKENS}),
    "estimate": ({"estimate": ESTIMATE}, {"estimate": ESTIMATE}),
}


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStorage]:
    opened = await SqliteStorage.open(tmp_path / "pegboard.db", ids=IdSource())
    await opened.commit(CreateSession(rows.session()))
    yield opened
    await opened.aclose()


async def changed(storage: SqliteStorage, **fields: object) -> Session:
    """The session after a change of these fields, as event and row tell it alike."""
    (event,) = await storage.commit(ChangeSession(session_id="ses_1", **fields))
    stored = await storage.session("ses_1")
    assert event.properties == SessionUpdated(session_id="ses_1", info=stored)
    return stored


def test_every_field_of_a_change_is_tried() -> None:
    assert {"session_id", "title_was", *FIELDS} == set(ChangeSession.__struct_fields__)


@pytest.mark.parametrize("name", FIELDS)
async def test_a_change_is_of_its_field_alone(storage: SqliteStorage, name: str) -> None:
    given, expected = FIELDS[name]

    assert await changed(storage, **given) == replace(rows.session(), **expected)


async def test_changes_of_different_fields_keep_each_other(storage: SqliteStorage) -> None:
    for given, _ in FIELDS.values():
        await changed(storage, **given)

    whole = {name: value for _, fields in FIELDS.values() for name, value in fields.items()}
    time = SessionTime(created=1, updated=9, archived=7, compacting=7)
    assert await storage.session("ses_1") == replace(rows.session(), **{**whole, "time": time})


async def test_a_field_can_be_emptied(storage: SqliteStorage) -> None:
    await changed(storage, archived=7, revert=REVERT, metadata={"a": 1}, summary=SUMMARY)

    emptied = await changed(storage, archived=None, revert=None, metadata=None, summary=None)

    assert emptied == rows.session()


async def test_what_is_spent_adds_up(storage: SqliteStorage) -> None:
    await changed(storage, cost=0.5, tokens=TOKENS)

    assert await changed(storage, cost=0.25, tokens=TOKENS) == replace(
        rows.session(), cost=0.75, tokens=TWICE
    )


async def test_a_title_that_somebody_else_has_given_stays(storage: SqliteStorage) -> None:
    await changed(storage, title="mine")

    assert (await changed(storage, title="made", title_was="a title")).title == "mine"
    assert (await changed(storage, title="made", title_was="mine")).title == "made"


async def test_the_time_of_use_never_goes_back(storage: SqliteStorage) -> None:
    await changed(storage, updated=9)

    assert (await changed(storage, updated=5)).time.updated == 9


async def test_a_session_is_created_once(storage: SqliteStorage) -> None:
    with pytest.raises(InvalidInputError, match="ses_1"):
        await storage.commit(CreateSession(rows.session(title="another")))

    assert await storage.session("ses_1") == rows.session()
    [event] = await storage.events(0)
    assert event.properties == SessionCreated(session_id="ses_1", info=rows.session())


@pytest.mark.parametrize("name", FIELDS)
async def test_a_change_never_makes_a_session(storage: SqliteStorage, name: str) -> None:
    await storage.commit(DropSession("ses_1"))

    with pytest.raises(NotFoundError, match="ses_1"):
        await storage.commit(ChangeSession(session_id="ses_1", **FIELDS[name][0]))

    assert await storage.sessions() == ()


LATE: dict[str, tuple[Change, ...]] = {
    "message": (PutMessage(rows.question()),),
    "part": (PutPart(rows.text()),),
    "todos": (PutTodos("ses_1", (Todo(content="a", status="pending"),)),),
    "state": (PutState("ses_1", "k", 1),),
    "approval": (PutApproval("ses_1", RULES),),
    "request": (
        PutPermissionRequest(
            PermissionRequest(
                id="per_1",
                session_id="ses_1",
                permission="bash",
                patterns=("ls",),
                metadata={},
                always=(),
            )
        ),
    ),
    "event": (
        PublishEvent(
            SessionFailed(session_id="ses_1", error=UnknownFailure(data=TextData(message="late")))
        ),
    ),
    "child": (CreateSession(rows.session("ses_2", parent_id="ses_1")),),
}


@pytest.mark.parametrize("kind", LATE)
async def test_a_late_writer_leaves_nothing_of_a_deleted_session(
    storage: SqliteStorage, kind: str
) -> None:
    deleted = await storage.commit(DropSession("ses_1"))

    with pytest.raises(NotFoundError):
        await storage.commit(*LATE[kind])

    assert await storage.sessions() == ()
    assert await storage.approvals("ses_1") == ()
    assert await stored.permission_requests(storage) == ()
    assert await storage.events(0) == deleted
