"""The reading of database rows: damaged rows are replaced, and unfinished work is completed.

A damaged row becomes a value that names it, and does not hide other rows. Unfinished work of a
process that has died, or could not write the end, ends with an error.
"""

import codecs
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.schema.event import (
    TYPES,
    Custom,
    PermissionAsked,
    ProjectUpdated,
    Properties,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.message import (
    AssistantMessage,
    Message,
    MessagePath,
    MessageTime,
    TextData,
    Turn,
    UnknownFailure,
    UserMessage,
)
from pegboard.schema.part import (
    Failed,
    ModelChoice,
    Part,
    Pending,
    ReasoningPart,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
)
from pegboard.schema.session import (
    Approval,
    Idle,
    PermissionRequest,
    Project,
    Rule,
    Session,
    SessionTime,
    Todo,
    Tokens,
)
from pegboard.schema.wire import encode
from pegboard.storage.changes import (
    Change,
    PublishEvent,
    PutMessage,
    PutPart,
    SettlePermissionRequest,
)

INTERRUPTED_CALL = (
    "interrupted: the program ended while this call was running. What it had done by then is "
    "done; look before you do it again."
)
"""The error of a call that ran when its process died: the model learns that it may have acted."""
NEVER_RAN = "interrupted: the program ended before this call ran"
"""The error of a call that was pending when its process died."""
INTERRUPTED_ANSWER = "interrupted: Pegboard was closed during this answer"
"""The error of an answer that a model had not ended when its process died."""
_UNSTORED_CALL = (
    "interrupted: the database could not store the end of this call. What it had done by then is "
    "done; look before you do it again."
)
INTERRUPTED_CALLS = (INTERRUPTED_CALL, _UNSTORED_CALL)
"""The errors of calls that ran and may have acted."""
_UNSTORED_ANSWER = "interrupted: the database could not store the end of this answer"
INTERRUPTED_ANSWERS = (INTERRUPTED_ANSWER, _UNSTORED_ANSWER)
"""The errors of answers that a model had not ended."""

_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PROPERTIES = {name: kind for kind, name in TYPES.items()}
_BEGINNING = b'{"id":"'  # of each session, so that a row of other JSON does not pass for one
_NO_JSON = b"!"  # for an empty row, which would be invisible in a list

_decode_session = msgspec.json.Decoder(Session).decode
_decode_message: Callable[[bytes], Message] = msgspec.json.Decoder(Message).decode
_decode_part: Callable[[bytes], Part] = msgspec.json.Decoder(Part).decode
_decode_todos = msgspec.json.Decoder(tuple[Todo, ...]).decode
_skip = msgspec.json.Decoder(msgspec.Raw).decode
_DECODERS: dict[str, Callable[[bytes], object]] = {
    "session": _decode_session,
    "message": _decode_message,
    "part": _decode_part,
}

SessionRow = tuple[bytes, str, str, str, int]
"""The JSON of a session, its id, project, directory, and `updated` in ms since the epoch."""
_Value = TypeVar("_Value")


def read_session(data: bytes, id_: str, project_id: str, directory: str, updated: int) -> Session:
    """Return the session of a row; rebuild a damaged session from the other columns of its row."""
    try:
        return _decode_session(data)
    except _DAMAGE:
        return Session(
            id=id_,
            slug=id_,
            project_id=project_id,
            directory=directory,
            title=f"damaged session {id_}",
            version="",
            time=SessionTime(created=updated, updated=updated),
        )


def join_sessions(rows: Sequence[SessionRow]) -> bytes:
    """Return the sessions of rows as a JSON array."""
    joined = b"[%b]" % b",".join([data for data, *_ in rows])
    if all(data.startswith(_BEGINNING) for data, *_ in rows) and _is_json(joined):
        return joined
    return encode(tuple(read_session(*row) for row in rows))


def read_approval(row: Sequence[Any]) -> Approval:
    """Return the approval of a row: number, key, permission, pattern, action, agent, time."""
    id_, key, permission, pattern, action, agent, at = row
    rule = Rule(permission=permission, pattern=pattern, action=action)
    return Approval(id=id_, key=key, rule=rule, agent=agent or None, at=at)


def read_message(data: bytes, session_id: str, id_: str, role: str) -> Message:
    """Return the message of a row; a damaged message keeps its role, an answer gets an error."""
    try:
        return _decode_message(data)
    except _DAMAGE:
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


def read_part(
    data: bytes, session_id: str, message_id: str, id_: str, *, added: bytes = b""
) -> Part:
    """Return the part of a row; a damaged part becomes a text part.

    `added` is streamed text that is stored outside of the row and appended to the row's text. An
    incomplete UTF-8 character at its end is dropped.
    """
    try:
        part = _decode_part(data)
    except _DAMAGE:
        return TextPart(
            id=id_,
            session_id=session_id,
            message_id=message_id,
            text=f"damaged part {id_}",
            synthetic=True,
        )
    if added and isinstance(part, TextPart | ReasoningPart):
        return replace(part, text=part.text + codecs.utf_8_decode(added, "replace")[0])
    return part


class TurnRows(msgspec.Struct, frozen=True):
    """The rows of messages, in order, and the rows of their parts.

    A message row has id, role and JSON. A part row has id and JSON, and is found by its message's
    id.
    """

    session_id: str
    messages: Sequence[tuple[str, str, bytes]]
    parts: Mapping[str, Sequence[tuple[str, bytes]]]

    def values(self) -> tuple[Turn, ...]:
        """Return the messages with their parts."""
        return tuple(
            Turn(
                info=read_message(data, self.session_id, id_, role),
                parts=tuple(
                    read_part(part, self.session_id, id_, part_id)
                    for part_id, part in self.parts.get(id_, ())
                ),
            )
            for id_, role, data in self.messages
        )

    def json(self) -> bytes:
        """Return the messages with their parts as a JSON array."""
        joined = b",".join(
            b'{"info":%b,"parts":[%b]}'
            % (data, b",".join([part or _NO_JSON for _, part in self.parts.get(id_, ())]))
            for id_, _, data in self.messages
        )
        # One check of the whole costs a sixth of one for each row; damage takes the slow way.
        listed = b"[%b]" % joined
        return listed if _is_json(listed) else encode(self.values())


def read_todos(data: bytes) -> tuple[Todo, ...]:
    """Return the to-do items of a row; a damaged list becomes a single item."""
    try:
        return _decode_todos(data)
    except _DAMAGE:
        return (Todo(content="damaged list", status="cancelled"),)


def read_json(data: bytes, kind: type[_Value]) -> _Value | None:
    """Return the JSON value of a row as a `kind`, or None if the row is damaged."""
    try:
        return msgspec.json.decode(data, type=kind)
    except _DAMAGE:
        return None


def read_properties(name: str, data: bytes) -> Properties:
    """Return the properties of an event; damaged properties become an empty `Custom`."""
    kind = _PROPERTIES.get(name)
    try:
        if kind is None:
            return Custom(name=name, data=msgspec.json.decode(data, type=dict))
        if kind is PermissionAsked:
            return PermissionAsked(request=msgspec.json.decode(data, type=PermissionRequest))
        if kind is ProjectUpdated:
            return ProjectUpdated(info=msgspec.json.decode(data, type=Project))
        properties: Properties = msgspec.json.decode(data, type=kind)
    except _DAMAGE:
        return Custom(name=name, data={})
    return properties


def damage_of(kind: Literal["session", "message", "part"], id_: str, data: bytes) -> str | None:
    """Return a sentence about the damage of a row of this `kind`, or None for a readable row."""
    try:
        _DECODERS[kind](data)
    except _DAMAGE as error:
        return f"{kind} {id_} cannot be read: {error}"
    return None


def _is_json(data: bytes) -> bool:
    """Return whether the bytes are exactly one JSON value."""
    try:
        _skip(data)
    except _DAMAGE:
        return False
    return True


def unfinished_state(part: Part) -> Literal["pending", "running", "open"] | None:
    """Return "pending" or "running" for an unfinished call, "open" for an open text, or None."""
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


def end_unfinished(
    session_id: str,
    *,
    parts: Iterable[Part],
    messages: Iterable[Message],
    requests: Iterable[str],
    died: bool = True,
) -> Iterator[Change]:
    """Yield the changes that end the unfinished work of a session.

    `parts` and `messages` are the ones that are stored as unfinished. `requests` are the ids of
    open permission requests. `died` is false if the process lives but could not write the end.
    """
    end = time.time_ns() // 1_000_000
    call, answer = INTERRUPTED_CALL, INTERRUPTED_ANSWER
    if not died:
        call, answer = _UNSTORED_CALL, _UNSTORED_ANSWER
    for part in parts:
        yield PutPart(_ended_call(part, call, end) if isinstance(part, ToolPart) else part)
    for message in messages:
        if isinstance(message, AssistantMessage) and is_unfinished(message):
            error = message.error or UnknownFailure(data=TextData(message=answer))
            ended = replace(message.time, completed=end)
            yield PutMessage(replace(message, error=error, time=ended))
    for id_ in requests:
        yield SettlePermissionRequest(session_id, id_, "reject")
    yield PublishEvent(SessionStatusChanged(session_id=session_id, status=Idle()))
    yield PublishEvent(SessionIdle(session_id=session_id))


def _ended_call(part: ToolPart, error: str, end: int) -> ToolPart:
    """Return an unfinished call as failed; `error` is the message for a call that already ran."""
    match part.state:
        case Running(input=arguments, time=TimeSpan(start=start), metadata=metadata):
            pass
        case Pending(input=arguments):
            start, metadata, error = end, None, NEVER_RAN
        case _:
            return part
    span = TimeSpan(start=start, end=end)
    return replace(part, state=Failed(input=arguments, error=error, time=span, metadata=metadata))
