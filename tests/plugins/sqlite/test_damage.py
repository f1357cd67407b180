import json
from pathlib import Path

import pytest

from pegboard.ids import IdSource
from pegboard.schema.event import Custom, Event
from pegboard.schema.message import AssistantMessage, TextData, Turn, UnknownFailure, UserMessage
from pegboard.schema.part import TextPart
from pegboard.schema.session import Todo
from pegboard.schema.wire import encode
from pegboard.storage.changes import (
    CreateSession,
    DropSession,
    PutMessage,
    PutPart,
    PutState,
    PutTodos,
)
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.storage import rows, stored

DAMAGE = [b"", b"\0" * 40, b'{"id":"prt', b"\xff\xfe", b"[" * 5000]
TYPELESS = [b"{}", b"[]", b"7", b"null"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pegboard.db"


async def damaged(path: Path, table: str, data: bytes) -> SqliteStorage:
    """A database with two sessions; the rows of the first in `table` hold `data`."""
    storage = await SqliteStorage.open(path, ids=IdSource())
    for name in ("1", "2"):
        session_id = f"ses_{name}"
        await storage.commit(
            CreateSession(rows.session(session_id)),
            PutMessage(rows.question("msg_1", session_id=session_id)),
            PutPart(rows.text("prt_1", session_id=session_id)),
            PutMessage(rows.answer("msg_2", session_id=session_id, completed=3)),
            PutTodos(session_id, (Todo(content="a", status="pending"),)),
            PutState(session_id, "k", 1),
        )
    column = "id" if table == "session" else "session_id"
    storage._writer._db.execute(
        f"UPDATE {table} SET data = ? WHERE {column} = 'ses_1'",  # the table is our own word
        (data,),
    )
    return storage


DAMAGED_PART = TextPart(
    id="prt_1",
    session_id="ses_1",
    message_id="msg_1",
    text="damaged part prt_1",
    synthetic=True,
)


@pytest.mark.parametrize("data", DAMAGE + TYPELESS)
async def test_a_damaged_part_says_so_and_hides_nothing(path: Path, data: bytes) -> None:
    storage = await damaged(path, "part", data)

    turns = await storage.turns("ses_1")
    await storage.aclose()

    assert turns == (
        Turn(info=rows.question(), parts=(DAMAGED_PART,)),
        Turn(info=rows.answer(completed=3), parts=()),
    )


@pytest.mark.parametrize("data", DAMAGE)
async def test_the_json_of_turns_stays_json(path: Path, data: bytes) -> None:
    storage = await damaged(path, "part", data)

    joined = await storage.turns_json("ses_1")
    turns = await storage.turns("ses_1")
    await storage.aclose()

    assert json.loads(joined) == json.loads(encode(turns))


@pytest.mark.parametrize("data", DAMAGE + TYPELESS)
async def test_a_damaged_message_keeps_its_role_and_parts(path: Path, data: bytes) -> None:
    storage = await damaged(path, "message", data)

    asked, answered = await storage.turns("ses_1")
    await storage.aclose()

    assert isinstance(asked.info, UserMessage)
    assert asked.info.id == "msg_1"
    assert asked.parts == (rows.text(),)
    assert isinstance(answered.info, AssistantMessage)
    assert answered.info.error == UnknownFailure(data=TextData(message="damaged message msg_2"))


@pytest.mark.parametrize("data", DAMAGE + TYPELESS)
async def test_a_damaged_session_is_listed_and_can_be_deleted(path: Path, data: bytes) -> None:
    storage = await damaged(path, "session", data)

    listed = await storage.sessions("project")
    joined = await storage.sessions_json("project")
    await storage.commit(DropSession("ses_1"))
    left = await storage.sessions()
    await storage.aclose()

    assert [session.title for session in listed] == ["a title", "damaged session ses_1"]
    assert json.loads(joined) == json.loads(encode(listed))
    assert left == (rows.session("ses_2"),)


async def test_damaged_lists_state_and_events_are_not_fatal(path: Path) -> None:
    storage = await damaged(path, "todos", b"\0")
    storage._writer._db.execute("UPDATE state SET data = x'00'")
    storage._writer._db.execute("UPDATE event SET data = x'00' WHERE seq = 1")

    todos = await storage.todos("ses_1")
    state = await storage.state("ses_1", "k")
    events = await storage.events(0)
    await storage.aclose()

    assert todos == (Todo(content="damaged list", status="cancelled"),)
    assert state is None
    assert events[0] == Event(properties=Custom(name="session.created", data={}), seq=1)
    assert len(events) == 10


async def test_a_damaged_running_call_does_not_run_for_ever(path: Path) -> None:
    storage = await damaged(path, "state", b"1")
    await storage.commit(PutPart(rows.call("prt_9", message_id="msg_1")))
    storage._writer._db.execute("UPDATE part SET data = x'00' WHERE id = 'prt_9'")
    await storage.aclose()

    storage = await SqliteStorage.open(path, ids=IdSource())
    running = await stored.running(storage)
    await storage.aclose()

    assert running == ()
