import json

import pytest

from pegboard.schema.event import Custom, SessionIdle
from pegboard.schema.message import AssistantMessage, MessageTime, Turn, UserMessage
from pegboard.schema.part import ModelChoice, TextPart
from pegboard.schema.session import Project, Session, SessionTime, Todo
from pegboard.schema.wire import encode
from pegboard.storage import (
    TurnRows,
    damage_of,
    join_sessions,
    read_json,
    read_message,
    read_part,
    read_properties,
    read_session,
    read_todos,
)

DAMAGED = [b"", b"\0" * 40, b'{"id":"prt', b"\xff\xfe", b"[" * 5000]
QUESTION = UserMessage(
    id="msg_1",
    session_id="ses_1",
    time=MessageTime(created=1),
    agent="tester",
    model=ModelChoice(provider_id="p", model_id="m"),
)
TEXT = TextPart(id="prt_1", session_id="ses_1", message_id="msg_1", text="one")
LOST = TextPart(
    id="prt_2", session_id="ses_1", message_id="msg_1", text="damaged part prt_2", synthetic=True
)


def session(id_: str, title: str) -> Session:
    return Session(
        id=id_,
        slug=id_,
        project_id="project",
        directory="/project",
        title=title,
        version="",
        time=SessionTime(created=7, updated=7),
    )


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_row_names_itself(data: bytes) -> None:
    answer = read_message(data, "ses_1", "msg_2", "assistant")

    assert read_session(data, "ses_1", "project", "/project", 7) == session(
        "ses_1", "damaged session ses_1"
    )
    assert read_part(data, "ses_1", "msg_1", "prt_2", added=b"more") == LOST
    assert isinstance(answer, AssistantMessage)
    assert answer.error is not None
    assert isinstance(read_message(data, "ses_1", "msg_1", "user"), UserMessage)
    assert read_todos(data) == (Todo(content="damaged list", status="cancelled"),)
    assert read_json(data, Project) is None
    assert read_properties("session.idle", data) == Custom(name="session.idle", data={})


def test_a_row_becomes_its_value() -> None:
    idle = SessionIdle(session_id="ses_1")

    assert read_json(b'{"a":[1]}', object) == {"a": [1]}
    assert read_properties("session.idle", encode(idle)) == idle
    assert read_properties("demo.event", b'{"a":1}') == Custom(name="demo.event", data={"a": 1})


def test_added_text_follows_without_a_letter_that_is_cut() -> None:
    found = read_part(encode(TEXT), "ses_1", "msg_1", "prt_1", added="étwoé".encode()[:-1])

    assert isinstance(found, TextPart)
    assert found.text == "oneétwo"


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_row_hides_no_other(data: bytes) -> None:
    rows = TurnRows(
        "ses_1",
        [("msg_1", "user", encode(QUESTION))],
        {"msg_1": [("prt_1", encode(TEXT)), ("prt_2", data)]},
    )
    listed = [(encode(session("ses_2", "Two")), "ses_2", "project", "/project", 7)]
    listed.append((data, "ses_1", "project", "/project", 7))

    assert rows.values() == (Turn(info=QUESTION, parts=(TEXT, LOST)),)
    assert json.loads(rows.json()) == json.loads(encode(rows.values()))
    assert [each["title"] for each in json.loads(join_sessions(listed))] == [
        "Two",
        "damaged session ses_1",
    ]


def test_json_of_sound_rows_is_that_of_their_values() -> None:
    rows = TurnRows(
        "ses_1", [("msg_1", "user", encode(QUESTION))], {"msg_1": [("prt_1", encode(TEXT))]}
    )
    found = session("ses_1", "One")

    assert rows.json() == encode(rows.values())
    assert join_sessions([(encode(found), "ses_1", "project", "/project", 7)]) == encode((found,))


def test_the_damage_of_a_row_is_a_sentence_that_names_it() -> None:
    assert damage_of("part", "prt_1", encode(TEXT)) is None
    assert (damage_of("part", "prt_2", b"{") or "").startswith("part prt_2 cannot be read: ")


def test_the_own_texts_of_a_message_lack_those_that_pegboard_added() -> None:
    turn = Turn(info=QUESTION, parts=(TEXT, LOST))

    assert turn.own_texts == ("one",)
    assert turn.text == "onedamaged part prt_2"
