"""The events of the event bus, with the protocol's names and fields.

Each class has the `properties` of one kind of event; `TYPES` maps the class to the `type`.
"""

from typing import Any

from pegboard.schema.message import Failure, Message
from pegboard.schema.part import Part
from pegboard.schema.session import (
    Answers,
    FileDiff,
    PermissionRequest,
    Project,
    QuestionRequest,
    Reply,
    Session,
    SessionStatus,
    Todo,
)
from pegboard.schema.wire import Wire


class SessionEvent(Wire, frozen=True):
    """The fields that every event about a single session has."""

    session_id: str


class SessionCreated(SessionEvent, frozen=True):
    """The event that a session was created."""

    info: Session


class SessionUpdated(SessionEvent, frozen=True):
    """The event that a session's record changed."""

    info: Session


class SessionDeleted(SessionEvent, frozen=True):
    """The event that a session was deleted, with its subagents' sessions and all their data."""

    info: Session


class SessionStatusChanged(SessionEvent, frozen=True):
    """The event that a session became busy, idle, or waits for a retry."""

    status: SessionStatus


class SessionIdle(SessionEvent, frozen=True):
    """The event that a session became idle."""


class SessionFailed(Wire, frozen=True):
    """The event that a turn failed, or that the preparation of a turn failed."""

    session_id: str | None = None
    error: Failure | None = None


class SessionWarned(SessionEvent, frozen=True):
    """The event of a warning about a turn that continues."""

    message: str


class SessionDiffed(SessionEvent, frozen=True):
    """The event with all file changes of a session."""

    diff: tuple[FileDiff, ...]


class SessionCompacted(SessionEvent, frozen=True):
    """The event that a session's history was summarised."""


class MessageUpdated(SessionEvent, frozen=True):
    """The event that a message was added or changed."""

    info: Message


class MessageRemoved(SessionEvent, frozen=True):
    """The event that a message was removed."""

    message_id: str


class PartUpdated(SessionEvent, frozen=True):
    """The event that a message part was added or changed, with the complete part.

    `time` is in milliseconds since the epoch. While the model writes, added text is sent as
    `PartDelta`; the complete part follows at its end.
    """

    part: Part
    time: int


class PartDelta(SessionEvent, frozen=True):
    """The event that text was added at the end of a part's `field`."""

    message_id: str
    part_id: str
    field: str
    delta: str


class PartRemoved(SessionEvent, frozen=True):
    """The event that a part was removed."""

    message_id: str
    part_id: str


class PermissionAsked(Wire, frozen=True):
    """The event that a permission request waits for an answer."""

    request: PermissionRequest


class PermissionReplied(SessionEvent, frozen=True):
    """The event that a permission request was answered."""

    request_id: str
    reply: Reply


class QuestionAsked(Wire, frozen=True):
    """The event that questions of the model wait for an answer."""

    request: QuestionRequest


class QuestionReplied(SessionEvent, frozen=True):
    """The event that questions were answered.

    `answers` has one item for each question: the chosen labels, or the text that the user wrote.
    """

    request_id: str
    answers: Answers


class QuestionRejected(SessionEvent, frozen=True):
    """The event that questions were dismissed."""

    request_id: str


class TodoUpdated(SessionEvent, frozen=True):
    """The event that a session's to-do list changed."""

    todos: tuple[Todo, ...]


class CommandExecuted(SessionEvent, frozen=True):
    """The event that a slash command's turn ended."""

    name: str
    arguments: str
    message_id: str


class FileEdited(Wire, frozen=True):
    """The event that a tool changed a file; the path is absolute."""

    file: str


class ProjectUpdated(Wire, frozen=True):
    """The event that a project's record was added or changed."""

    info: Project


class PluginFailed(Wire, frozen=True):
    """The event that a plugin raised, hung or returned a value of the wrong type."""

    plugin: str
    hook: str
    message: str
    quarantined: bool = False


class Custom(Wire, frozen=True):
    """An event that a plugin defines; `name` is the event's type."""

    name: str
    data: dict[str, Any]


TYPES: dict[type, str] = {
    SessionCreated: "session.created",
    SessionUpdated: "session.updated",
    SessionDeleted: "session.deleted",
    SessionStatusChanged: "session.status",
    SessionIdle: "session.idle",
    SessionFailed: "session.error",
    SessionWarned: "session.warning",
    SessionDiffed: "session.diff",
    SessionCompacted: "session.compacted",
    MessageUpdated: "message.updated",
    MessageRemoved: "message.removed",
    PartUpdated: "message.part.updated",
    PartDelta: "message.part.delta",
    PartRemoved: "message.part.removed",
    PermissionAsked: "permission.asked",
    PermissionReplied: "permission.replied",
    QuestionAsked: "question.asked",
    QuestionReplied: "question.replied",
    QuestionRejected: "question.rejected",
    TodoUpdated: "todo.updated",
    CommandExecuted: "command.executed",
    FileEdited: "file.edited",
    ProjectUpdated: "project.updated",
    PluginFailed: "plugin.error",
}

Properties = (
    SessionEvent
    | SessionFailed
    | PermissionAsked
    | QuestionAsked
    | FileEdited
    | ProjectUpdated
    | PluginFailed
    | Custom
)


class Event(Wire, frozen=True):
    """An event of the event bus.

    `seq` is its number in the database, 0 for events that are not stored (deltas, status).
    """

    properties: Properties
    seq: int = 0

    @property
    def type(self) -> str:
        """The name of the event in the protocol."""
        if isinstance(self.properties, Custom):
            return self.properties.name
        return TYPES[type(self.properties)]

    @property
    def session_id(self) -> str | None:
        """The id of the session that the event is about, or None for events of the project."""
        match self.properties:
            case PermissionAsked(request=asked) | QuestionAsked(request=asked):
                return asked.session_id
            case SessionEvent(session_id=about) | SessionFailed(session_id=about):
                return about
            case _:
                return None

    def payload(self) -> object:
        """Return the `properties` in the protocol's form."""
        inner: object
        match self.properties:
            case PermissionAsked(request=inner) | QuestionAsked(request=inner):
                return inner
            case ProjectUpdated(info=inner) | Custom(data=inner):
                return inner
            case properties:
                return properties
