from collections.abc import Iterator

import pytest

from pegboard.schema.event import SessionIdle, SessionStatusChanged
from pegboard.schema.message import (
    AssistantMessage,
    MessagePath,
    MessageTime,
    TextData,
    UnknownFailure,
)
from pegboard.schema.part import (
    Failed,
    Part,
    Pending,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
    ToolState,
)
from pegboard.schema.session import Idle, Tokens
from pegboard.storage import (
    Change,
    PublishEvent,
    PutMessage,
    PutPart,
    SettlePermissionRequest,
    end_unfinished,
    is_unfinished,
    unfinished_state,
)
from pegboard.storage.rows import INTERRUPTED_ANSWER, INTERRUPTED_CALL, NEVER_RAN

RUNNING = Running(input={"a": 1}, time=TimeSpan(start=5), metadata={"output": "half"})
PENDING = Pending(input={"b": 2}, raw="{}")
TEXT = TextPart(
    id="prt_3", session_id="ses_1", message_id="msg_1", text="half", time=TimeSpan(start=5)
)
THOUGHT = ReasoningPart(
    id="prt_4", session_id="ses_1", message_id="msg_1", text="half", time=TimeSpan(start=5)
)
ANSWER = AssistantMessage(
    id="msg_1",
    session_id="ses_1",
    parent_id="msg_0",
    model_id="m",
    provider_id="p",
    mode="tester",
    agent="tester",
    path=MessagePath(cwd="/project", root="/project"),
    cost=0.0,
    tokens=Tokens(),
    time=MessageTime(created=1),
)


def call(state: ToolState) -> ToolPart:
    return ToolPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c", tool="launch", state=state
    )


def ended(*parts: Part, died: bool = True) -> Iterator[Change]:
    return end_unfinished("ses_1", parts=parts, messages=[ANSWER], requests=["per_1"], died=died)


@pytest.mark.parametrize(
    ("part", "state"),
    [
        (call(RUNNING), "running"),
        (call(PENDING), "pending"),
        (TEXT, "open"),
        (THOUGHT, "open"),
        (TextPart(id="prt_3", session_id="ses_1", message_id="msg_1", text="x"), None),
    ],
)
def test_a_part_is_unfinished_until_its_end(part: Part, state: str | None) -> None:
    assert unfinished_state(part) == state


def test_unfinished_work_of_a_dead_process_ends_with_its_input_and_progress() -> None:
    ran, never, text, answer, request, status, idle = ended(call(RUNNING), call(PENDING), TEXT)

    assert isinstance(ran, PutPart)
    assert isinstance(ran.part, ToolPart)
    assert isinstance(ran.part.state, Failed)
    assert (ran.part.state.input, ran.part.state.metadata) == (RUNNING.input, RUNNING.metadata)
    assert (ran.part.state.error, ran.part.state.time.start) == (INTERRUPTED_CALL, 5)
    assert isinstance(never, PutPart)
    assert isinstance(never.part, ToolPart)
    assert isinstance(never.part.state, Failed)
    assert (never.part.state.input, never.part.state.error) == (PENDING.input, NEVER_RAN)
    assert text == PutPart(TEXT)
    assert isinstance(answer, PutMessage)
    assert isinstance(answer.message, AssistantMessage)
    assert not is_unfinished(answer.message)
    assert answer.message.error == UnknownFailure(data=TextData(message=INTERRUPTED_ANSWER))
    assert request == SettlePermissionRequest("ses_1", "per_1", "reject")
    assert status == PublishEvent(SessionStatusChanged(session_id="ses_1", status=Idle()))
    assert idle == PublishEvent(SessionIdle(session_id="ses_1"))


def test_work_of_a_living_process_says_that_its_end_could_not_be_stored() -> None:
    ran, answer, *_ = ended(call(RUNNING), died=False)

    assert isinstance(ran, PutPart)
    assert isinstance(ran.part, ToolPart)
    assert isinstance(ran.part.state, Failed)
    assert "could not store the end of this call" in ran.part.state.error
    assert isinstance(answer, PutMessage)
    assert isinstance(answer.message, AssistantMessage)
    assert isinstance(answer.message.error, UnknownFailure)
    assert "could not store the end of this answer" in answer.message.error.data.message
