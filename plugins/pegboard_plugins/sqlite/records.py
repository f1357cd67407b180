"""Rows to values and back, events among them; an unreadable row becomes a value that says so."""

import time
from collections.abc import Callable, Mapping

import apsw
import msgspec

from pegboard.errors import InvalidInputError
from pegboard.schema.event import (
    TYPES,
    Custom,
    Event,
    PartUpdated,
    PermissionAsked,
    ProjectUpdated,
    Properties,
)
from pegboard.schema.message import (
    AssistantMessage,
    Message,
    MessagePath,
    MessageTime,
    TextData,
    UnknownFailure,
    UserMessage,
)
from pegboard.schema.part import ModelChoice, Part, Pending, Running, TextPart, ToolPart
from pegboard.schema.session import PermissionRequest, Project, Session, SessionTime, Todo, Tokens
from pegboard.schema.wire import encode_checked, not_utf8

DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading a row raises whose content is not what was written."""
_PROPERTIES = {name: kind for kind, name in TYPES.items()}

_decode_session = msgspec.json.Decoder(Session).decode
_decode_message: Callable[[bytes], Message] = msgspec.json.Decoder(Message).decode
_decode_part: Callable[[bytes], Part] = msgspec.json.Decoder(Part).decode
_decode_project = msgspec.json.Decoder(Project).decode
_decode_request = msgspec.json.Decoder(PermissionRequest).decode
_decode_todos = msgspec.json.Decoder(tuple[Todo, ...]).decode
_decode_any = msgspec.json.Decoder().decode
_skip = msgspec.json.Decoder(msgspec.Raw).decode


def as_utf8(text: str) -> bytes:
    """The text as bytes.

    :raises InvalidInputError: when something in it has no UTF-8 form, as half of a pair has none.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"cannot be stored: {not_utf8(error)}") from error


def to_session(data: bytes, id_: str, project_id: str, directory: str, updated: int) -> Session:
    """The session; a damaged one says so, and is made from the row's columns."""
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
    """The message, or one of the same role that says that it is damaged."""
    try:
        return _decode_message(data)
    except DAMAGE:
        return _damaged_message(session_id, id_, role)


def to_part(data: bytes, session_id: str, message_id: str, id_: str) -> Part:
    """The part, or a text that says that it is damaged."""
    try:
        return _decode_part(data)
    except DAMAGE:
        return TextPart(
            id=id_,
            session_id=session_id,
            message_id=message_id,
            text=f"damaged part {id_}",
            synthetic=True,
        )


def to_project(data: bytes) -> Project | None:
    """The project, None when the row is damaged: its next start writes it again."""
    try:
        return _decode_project(data)
    except DAMAGE:
        return None


def to_request(data: bytes) -> PermissionRequest | None:
    """The request, None when the row is damaged: nobody could answer it."""
    try:
        return _decode_request(data)
    except DAMAGE:
        return None


def to_todos(data: bytes) -> tuple[Todo, ...]:
    """The list, or one entry that says that it is damaged."""
    try:
        return _decode_todos(data)
    except DAMAGE:
        return (Todo(content="damaged list", status="cancelled"),)


def to_value(data: bytes) -> object:
    """Any JSON, None when it is damaged."""
    try:
        return _decode_any(data)
    except DAMAGE:
        return None


def to_event(seq: int, name: str, data: bytes) -> Event:
    """The event; a damaged one has only its name and number."""
    try:
        return Event(properties=_to_properties(name, data), seq=seq)
    except DAMAGE:
        return Event(properties=Custom(name=name, data={}), seq=seq)


def now_ms() -> int:
    """The instant, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def store(
    db: apsw.Connection,
    properties: Properties,
    payload: Mapping[str, object] | None = None,
    *,
    name: str = "",
) -> Event:
    """Stores an event; `payload` is its JSON, where a part of it is encoded already.

    `name` is given for an event that is not stored in the protocol's form.
    """
    event = Event(properties=properties)
    db.execute(
        "INSERT INTO event(session_id, type, data) VALUES(?, ?, ?)",
        (event.session_id, name or event.type, encode_checked(payload or event.payload())),
    )
    return Event(properties=properties, seq=db.last_insert_rowid())


def store_update(db: apsw.Connection, told: PartUpdated, data: bytes) -> Event:
    """Stores the event of a part's update; `data` is the part's JSON."""
    payload = {"sessionID": told.session_id, "part": msgspec.Raw(data), "time": told.time}
    return store(db, told, payload)


def supersede(db: apsw.Connection, seq: int | None) -> None:
    """Removes the event of an earlier update: each update carries the whole value."""
    if seq is not None:
        db.execute("DELETE FROM event WHERE seq = ?", (seq,))


def is_json(data: bytes) -> bool:
    """Whether this is one JSON value from end to end."""
    try:
        _skip(data)
    except DAMAGE:
        return False
    return True


def running_state(part: Part) -> str | None:
    """`pending` or `running` for a tool call that has not ended."""
    match part:
        case ToolPart(state=Pending()):
            return "pending"
        case ToolPart(state=Running()):
            return "running"
        case _:
            return None


def is_unfinished(message: Message) -> bool:
    """Whether this is an answer that the model has not ended."""
    return isinstance(message, AssistantMessage) and message.time.completed is None


def _to_properties(name: str, data: bytes) -> Properties:
    kind = _PROPERTIES.get(name)
    if kind is None:
        return Custom(name=name, data=msgspec.json.decode(data, type=dict))
    if kind is PermissionAsked:
        return PermissionAsked(request=_decode_request(data))
    if kind is ProjectUpdated:
        return ProjectUpdated(info=_decode_project(data))
    properties: Properties = msgspec.json.decode(data, type=kind)
    return properties


def _damaged_message(session_id: str, id_: str, role: str) -> Message:
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
