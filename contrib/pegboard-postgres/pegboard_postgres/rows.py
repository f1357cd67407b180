"""Rows to values: an unreadable row becomes a value that says so, and hides no other."""

import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from pegboard.errors import InvalidInputError
from pegboard.schema.event import TYPES, Custom, PermissionAsked, ProjectUpdated, Properties
from pegboard.schema.message import (
    AssistantMessage,
    Message,
    MessagePath,
    MessageTime,
    TextData,
    UnknownFailure,
    UserMessage,
)
from pegboard.schema.part import (
    ModelChoice,
    Part,
    Pending,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
)
from pegboard.schema.session import PermissionRequest, Project, Session, SessionTime, Todo, Tokens
from pegboard.schema.wire import not_utf8

DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of reading a row whose content is damaged."""
SESSION = "data, id, project_id, directory, updated"
"""The columns of a session that `to_session` reads."""
_PROPERTIES = {name: kind for kind, name in TYPES.items()}

_decode_session = msgspec.json.Decoder(Session).decode
_decode_message: Callable[[bytes], Message] = msgspec.json.Decoder(Message).decode
_decode_part: Callable[[bytes], Part] = msgspec.json.Decoder(Part).decode
_decode_project = msgspec.json.Decoder(Project).decode
_decode_todos = msgspec.json.Decoder(tuple[Todo, ...]).decode
_decode_any = msgspec.json.Decoder().decode
_skip = msgspec.json.Decoder(msgspec.Raw).decode


def now_ms() -> int:
    """Return the instant, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def as_utf8(text: str) -> bytes:
    """Return the text as bytes.

    :raises InvalidInputError: when something in it has no UTF-8 form, as half of a pair has none.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"cannot be stored: {not_utf8(error)}") from error


def to_session(data: bytes, id_: str, project_id: str, directory: str, updated: int) -> Session:
    """Return the session; a damaged one says so, and is made from the row's columns."""
    try:
        return _decode_session(data)
    except DAMAGE:
        return Session(
            id=id_,
            slug=id_,
            project_id=project_id,
            directory=directory,
            title=f"damaged session {id_}",
            version="",
            time=SessionTime(created=updated, updated=updated),
        )


def to_message(data: bytes, session_id: str, id_: str, role: str) -> Message:
    """Return the message, or one of the same role that says that it is damaged."""
    try:
        return _decode_message(data)
    except DAMAGE:
        pass
    if role == "user":
        return UserMessage(
            id=id_,
            session_id=session_id,
            time=MessageTime(created=0),
            agent="",
            model=ModelChoice(provider_id="", model_id=""),
        )
    return AssistantMessage(
        id=id_,
        session_id=session_id,
        parent_id="",
        model_id="",
        provider_id="",
        mode="",
        agent="",
        path=MessagePath(cwd="", root=""),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=0, completed=0),
        error=UnknownFailure(data=TextData(message=f"damaged message {id_}")),
    )


def to_part(
    data: bytes, session_id: str, message_id: str, id_: str, added: bytes | None = None
) -> Part:
    """Return the part with the text that was added to it, or a text that says it is damaged."""
    try:
        part = _decode_part(data)
    except DAMAGE:
        return TextPart(
            id=id_,
            session_id=session_id,
            message_id=message_id,
            text=f"damaged part {id_}",
            synthetic=True,
        )
    if added is not None and isinstance(part, TextPart | ReasoningPart):
        return replace(part, text=part.text + added.decode(errors="replace"))
    return part


def to_project(data: bytes) -> Project | None:
    """Return the project, None when the row is damaged: its next start writes it again."""
    try:
        return _decode_project(data)
    except DAMAGE:
        return None


def to_todos(data: bytes) -> tuple[Todo, ...]:
    """Return the list, or one entry that says that it is damaged."""
    try:
        return _decode_todos(data)
    except DAMAGE:
        return (Todo(content="damaged list", status="cancelled"),)


def to_value(data: bytes) -> object:
    """Return any JSON, None when it is damaged."""
    try:
        return _decode_any(data)
    except DAMAGE:
        return None


def to_properties(name: str, data: bytes) -> Properties:
    """Return the properties of an event; a damaged one has only its name."""
    kind = _PROPERTIES.get(name)
    try:
        if kind is None:
            return Custom(name=name, data=msgspec.json.decode(data, type=dict))
        if kind is PermissionAsked:
            return PermissionAsked(request=msgspec.json.decode(data, type=PermissionRequest))
        if kind is ProjectUpdated:
            return ProjectUpdated(info=_decode_project(data))
        properties: Properties = msgspec.json.decode(data, type=kind)
    except DAMAGE:
        return Custom(name=name, data={})
    return properties


def is_json(data: bytes) -> bool:
    """Return whether this is one JSON value from end to end."""
    try:
        _skip(data)
    except DAMAGE:
        return False
    return True


def state_of(part: Part) -> str | None:
    """Return the state of a part that has not ended: `open` for a text; None at its end."""
    match part:
        case ToolPart(state=Pending()):
            return "pending"
        case ToolPart(state=Running()):
            return "running"
        case TextPart(time=TimeSpan(end=None)) | ReasoningPart(time=TimeSpan(end=None)):
            return "open"
        case _:
            return None


def is_unfinished(message: Message) -> bool:
    """Return whether this is an answer that the model has not ended."""
    return isinstance(message, AssistantMessage) and message.time.completed is None
