"""Values to store: sessions, messages and parts with nothing special about them."""

from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, UserMessage
from pegboard.schema.part import ModelChoice, Running, TextPart, TimeSpan, ToolPart, ToolState
from pegboard.schema.session import Session, SessionTime, Tokens


def session(
    id_: str = "ses_1",
    *,
    updated: int = 1,
    parent_id: str | None = None,
    title: str = "a title",
    project_id: str = "project",
    directory: str = "/work",
) -> Session:
    """A session."""
    return Session(
        id=id_,
        slug=id_,
        project_id=project_id,
        directory=directory,
        title=title,
        version="1",
        time=SessionTime(created=1, updated=updated),
        parent_id=parent_id,
    )


def question(id_: str = "msg_1", *, session_id: str = "ses_1") -> UserMessage:
    """A message of the user."""
    return UserMessage(
        id=id_,
        session_id=session_id,
        time=MessageTime(created=1),
        agent="build",
        model=ModelChoice(provider_id="p", model_id="m"),
    )


def answer(
    id_: str = "msg_2", *, session_id: str = "ses_1", completed: int | None = None
) -> AssistantMessage:
    """An answer of the model, unfinished unless `completed`."""
    return AssistantMessage(
        id=id_,
        session_id=session_id,
        parent_id="msg_1",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/work", root="/work"),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=1, completed=completed),
    )


def text(
    id_: str = "prt_1", *, message_id: str = "msg_1", session_id: str = "ses_1", content: str = "hi"
) -> TextPart:
    """A part with text."""
    return TextPart(id=id_, session_id=session_id, message_id=message_id, text=content)


RUNNING = Running(
    input={"command": "make"}, time=TimeSpan(start=5), title="make", metadata={"output": "half"}
)


def call(
    id_: str = "prt_2",
    *,
    message_id: str = "msg_2",
    session_id: str = "ses_1",
    state: ToolState = RUNNING,
) -> ToolPart:
    """A tool call."""
    return ToolPart(
        id=id_,
        session_id=session_id,
        message_id=message_id,
        call_id="call_1",
        tool="bash",
        state=state,
    )
