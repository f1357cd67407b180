"""The events of the bus, in the protocol's names and shapes.

Each class is the `properties` of one event; `TYPES` maps it to the event's `type`.
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
    """The fields of every event about one session."""

    session_id: str


class SessionCreated(SessionEvent, frozen=True):
    """A session was made."""

    info: Session


class SessionUpdated(SessionEvent, frozen=True):
    """Something about a session is different."""

    info: Session


class SessionDeleted(SessionEvent, frozen=True):
    """A session was deleted, with its subagents' sessions and all their data."""

    info: Session


class SessionStatusChanged(SessionEvent, frozen=True):
    """A session runs, waits for a retry, or rests."""

    status: SessionStatus


class SessionIdle(SessionEvent, frozen=True):
    """A session rests."""


class SessionFailed(Wire, frozen=True):
    """A turn, or the preparation of one, failed."""

    session_id: str | None = None
    error: Failure | None = None


class SessionWarned(SessionEvent, frozen=True):
    """A warning about a turn, which goes on."""

    message: str


class SessionDiffed(SessionEvent, frozen=True):
    """The changes of a session in files."""

    diff: tuple[FileDiff, ...]


class SessionCompacted(SessionEvent, frozen=True):
    """A session's history was summarised."""


class MessageUpdated(SessionEvent, frozen=True):
    """A message is new or different."""

    info: Message


class MessageRemoved(SessionEvent, frozen=True):
    """A message is gone."""

    message_id: str


class PartUpdated(SessionEvent, frozen=True):
    """A part is new or changed; it is always complete. `time` is in milliseconds.

    Text that is added to it while the model writes comes as `PartDelta`, and the whole at its end.
    """

    part: Part
    time: int


class PartDelta(SessionEvent, frozen=True):
    """Text was added at the end of a part's `field`."""

    message_id: str
    part_id: str
    field: str
    delta: str


class PartRemoved(SessionEvent, frozen=True):
    """A part is gone."""

    message_id: str
    part_id: str


class PermissionAsked(Wire, frozen=True):
    """Somebody has to answer a permission request."""

    request: PermissionRequest


class PermissionReplied(SessionEvent, frozen=True):
    """A permission request is answered."""

    request_id: str
    reply: Reply


class QuestionAsked(Wire, frozen=True):
    """Somebody has to answer questions of the model."""

    request: QuestionRequest


class QuestionReplied(SessionEvent, frozen=True):
    """Questions are answered: for each of them the labels, or what the user wrote."""

    request_id: str
    answers: Answers


class QuestionRejected(SessionEvent, frozen=True):
    """Questions will not be answered."""

    request_id: str


class TodoUpdated(SessionEvent, frozen=True):
    """A session's list is different."""

    todos: tuple[Todo, ...]


class CommandExecuted(SessionEvent, frozen=True):
    """A slash command's turn ended."""

    name: str
    arguments: str
    message_id: str


class FileEdited(Wire, frozen=True):
    """A tool changed a file; the path is absolute."""

    file: str


class ProjectUpdated(Wire, frozen=True):
    """A project's record is new or different."""

    info: Project


class PluginFailed(Wire, frozen=True):
    """A plugin raised, hung or answered with the wrong type."""

    plugin: str
    hook: str
    message: str
    quarantined: bool = False


class Custom(Wire, frozen=True):
    """A plugin's own event; `name` is its type."""

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
    """Something that happened.

    `seq` is its number in the database, 0 for events that are not stored (deltas, status).
    """

    properties: Properties
    seq: int = 0

    @property
    def type(self) -> str:
        """The protocol's name of the event."""
        if isinstance(self.properties, Custom):
            return self.properties.name
        return TYPES[type(self.properties)]

    @property
    def session_id(self) -> str | None:
        """The session that the event is about, None for events of the project."""
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
