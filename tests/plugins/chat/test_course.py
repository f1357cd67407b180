"""What the course of a session makes of its events."""

import msgspec
import pytest

from pegboard.schema.event import (
    Event,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    Properties,
    SessionCreated,
    SessionStatusChanged,
    SessionWarned,
)
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    ModelChoice,
    Part,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
)
from pegboard.schema.session import (
    Busy,
    PermissionRequest,
    Retry,
    Session,
    SessionTime,
    ToolReference,
)
from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.finished import Called, Finished, Noted, call_head
from pegboard_plugins.chat.footer import _children

SESSION = Session(
    id="ses_1",
    slug="s",
    project_id="p",
    directory="/",
    title="t",
    version="1",
    time=SessionTime(created=1, updated=1),
)
ASKED = PermissionRequest(
    id="per_1",
    session_id="ses_1",
    permission="edit",
    patterns=("a",),
    metadata={},
    always=(),
    tool=ToolReference(message_id="msg_1", call_id="c1"),
)


def call(**changes: object) -> ToolPart:
    state = Running(input={}, time=TimeSpan(start=1_000))
    part = ToolPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c1", tool="edit", state=state
    )
    return msgspec.structs.replace(part, **changes)


def test_the_seconds_of_a_call_are_those_in_which_it_worked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 2.0
    monkeypatch.setattr("pegboard_plugins.chat.waitclock.time", lambda: now_s)
    course = Course(SESSION)

    def take(properties: Properties) -> list[Finished]:
        return list(course.take(Event(properties=properties)))

    take(PartUpdated(session_id="ses_1", part=call(), time=1))
    take(PermissionAsked(request=ASKED))
    now_s = 62.0
    waiting = course.waited_s(call())
    take(PermissionReplied(session_id="ses_1", request_id="per_1", reply="once"))
    now_s = 70.0
    done = Completed(
        input={}, output="", title="", metadata={}, time=CompletedSpan(start=1_000, end=62_500)
    )
    (finished,) = take(PartUpdated(session_id="ses_1", part=call(state=done), time=1))

    assert isinstance(finished, Called)
    assert (waiting, finished.waited_s) == (60.0, 60.0)
    head = call_head(finished.part, "a", waited_s=finished.waited_s)
    assert head[-1].text.strip() == "1.5 s"


def test_a_subagent_that_waits_for_its_provider_says_so_until_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pegboard_plugins.chat.turnprogress.time", lambda: 2.0)
    course = Course(SESSION)
    child = msgspec.structs.replace(SESSION, id="ses_2", parent_id="ses_1", agent="explore")
    waits = Retry(attempt=1, message="overloaded", next=5_000)

    def take(properties: Properties) -> list[str]:
        assert not [*course.take(Event(properties=properties))]
        return ["".join(span.text for span in line) for line in _children(course)]

    take(SessionCreated(session_id="ses_2", info=child))
    waiting = take(SessionStatusChanged(session_id="ses_2", status=waits))
    going_on = take(SessionStatusChanged(session_id="ses_2", status=Busy()))

    assert waiting == ["◆ explore t · Retrying in 3 s (attempt 2): overloaded"]
    assert going_on == ["◆ explore t · starting"]


def test_the_row_of_a_subagent_says_whether_it_thinks_or_writes() -> None:
    course = Course(SESSION)
    child = msgspec.structs.replace(SESSION, id="ses_2", parent_id="ses_1", agent="explore")
    of = {"id": "prt_1", "session_id": "ses_2", "message_id": "msg_1"}

    def take(properties: Properties) -> str:
        assert not [*course.take(Event(properties=properties))]
        return "".join(span.text for span in _children(course)[0])

    def take_part(part: Part) -> str:
        return take(PartUpdated(session_id="ses_2", part=part, time=1))

    take(SessionCreated(session_id="ses_2", info=child))
    asked = take_part(TextPart(text="Look at it.", **of))
    thinking = take_part(ReasoningPart(text="", time=TimeSpan(start=1), **of))
    writing = take_part(TextPart(text="", time=TimeSpan(start=1), **of))

    assert asked == "◆ explore t · starting"
    assert thinking == "◆ explore t · thinking"
    assert writing == "◆ explore t · writing"


def test_of_a_stored_call_no_seconds_are_shown_in_which_it_may_have_waited() -> None:
    done = Completed(
        input={}, output="", title="", metadata={}, time=CompletedSpan(start=1_000, end=62_500)
    )
    said = UserMessage(
        id="msg_1",
        session_id="ses_1",
        agent="build",
        model=ModelChoice(provider_id="p", model_id="m"),
        time=MessageTime(created=1),
    )
    (finished,) = Course(SESSION).read([Turn(info=said, parts=(call(state=done),))])

    assert isinstance(finished, Called)
    head = call_head(finished.part, "a", waited_s=finished.waited_s)
    assert "".join(span.text for span in head) == "● edit a"


def test_a_warning_of_the_session_or_of_its_subagent_is_shown() -> None:
    course = Course(SESSION)
    child = msgspec.structs.replace(SESSION, id="ses_2", parent_id="ses_1")
    events = (
        SessionCreated(session_id="ses_2", info=child),
        *(SessionWarned(session_id=f"ses_{n}", message=f"slow {n}") for n in (1, 2, 3)),
    )

    shown = [piece for each in events for piece in course.take(Event(properties=each))]

    assert shown == [Noted("slow 1", "warning"), Noted("slow 2", "warning")]
