"""The events of a turn, for the tests of what is shown of it."""

from pegboard.schema.event import Event, MessageUpdated, PartDelta, PartUpdated, Properties
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime
from pegboard.schema.part import Part, Running, TextPart, TimeSpan, ToolPart, ToolState
from pegboard.schema.session import Session, SessionTime, Tokens

SESSION = "ses_1"


def answer(
    message_id: str = "msg_2",
    *,
    session_id: str = SESSION,
    cost: float = 0.5,
    summary: bool = False,
) -> AssistantMessage:
    return AssistantMessage(
        id=message_id,
        session_id=session_id,
        parent_id="msg_1",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/w", root="/w"),
        cost=cost,
        tokens=Tokens(input=10, output=2),
        time=MessageTime(created=1),
        summary=summary,
    )


def session(session_id: str, parent_id: str | None = None) -> Session:
    return Session(
        id=session_id,
        slug="s",
        project_id="p",
        directory="/w",
        title="t",
        version="0",
        time=SessionTime(created=1, updated=1),
        parent_id=parent_id,
    )


def event(properties: Properties) -> Event:
    return Event(properties=properties)


def said(message: AssistantMessage) -> Event:
    return event(MessageUpdated(session_id=message.session_id, info=message))


def updated(part: Part) -> Event:
    return event(PartUpdated(session_id=part.session_id, part=part, time=1))


def text(content: str, *, end: int | None = None, message_id: str = "msg_2") -> Event:
    return updated(
        TextPart(
            id="prt_t",
            session_id=SESSION,
            message_id=message_id,
            text=content,
            time=TimeSpan(start=1, end=end),
        )
    )


def delta(content: str, *, field: str = "text") -> Event:
    return event(
        PartDelta(
            session_id=SESSION, message_id="msg_2", part_id="prt_t", field=field, delta=content
        )
    )


def call(
    state: ToolState | None = None,
    *,
    tool: str = "bash",
    part_id: str = "prt_c",
    session_id: str = SESSION,
    message_id: str = "msg_2",
) -> Event:
    return updated(
        ToolPart(
            id=part_id,
            session_id=session_id,
            message_id=message_id,
            call_id=f"call_{part_id}",
            tool=tool,
            state=state or Running(input={"command": "ls"}, time=TimeSpan(start=1)),
        )
    )
