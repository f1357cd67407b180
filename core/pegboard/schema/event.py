"""What happened: the events of the bus, in the protocol's names and shapes.

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


class SessionCreated(Wire, frozen=True):
    """A session was made."""

    session_id: str
    info: Session


class SessionUpdated(Wire, frozen=True):
    """Something about a session is different."""

    session_id: str
    info: Session


class SessionDeleted(Wire, frozen=True):
    """A session and all that belongs to it is gone."""

    session_id: str
    info: Session


class SessionStatusChanged(Wire, frozen=True):
    """A session runs, waits for a retry, or rests."""

    session_id: str
    status: SessionStatus


class SessionIdle(Wire, frozen=True):
    """A session rests."""

    session_id: str


class SessionFailed(Wire, frozen=True):
    """A turn, or the preparation of one, failed."""

    session_id: str | None = None
    error: Failure | None = None


class SessionWarned(Wire, frozen=True):
    """Something about a turn that people should know, and that ends nothing."""

    session_id: str
    message: str


class SessionDiffed(Wire, frozen=True):
    """What a session changed in files."""

    session_id: str
    diff: tuple[FileDiff, ...]


class SessionCompacted(Wire, frozen=True):
    """A session's history was summarised."""

    session_id: str


class MessageUpdated(Wire, frozen=True):
    """A message is new or different."""

    session_id: str
    info: Message


class MessageRemoved(Wire, frozen=True):
    """A message is gone."""

    session_id: str
    message_id: str


class PartUpdated(Wire, frozen=True):
    """A part is new or different; it is always whole. `time` is in milliseconds.

    Text that is added to it while the model writes comes as `PartDelta`, and the whole at its end.
    """

    session_id: str
    part: Part
    time: int


class PartDelta(Wire, frozen=True):
    """Text was added at the end of a part's `field`."""

    session_id: str
    message_id: str
    part_id: str
    field: str
    delta: str


class PartRemoved(Wire, frozen=True):
    """A part is gone."""

    session_id: str
    message_id: str
    part_id: str


class PermissionAsked(Wire, frozen=True):
    """Somebody has to answer a permission request."""

    request: PermissionRequest


class PermissionReplied(Wire, frozen=True):
    """A permission request is answered."""

    session_id: str
    request_id: str
    reply: Reply


class QuestionAsked(Wire, frozen=True):
    """Somebody has to answer questions of the model."""

    request: QuestionRequest


class QuestionReplied(Wire, frozen=True):
    """Questions are answered: for each of them the labels, or what the user wrote."""

    session_id: str
    request_id: str
    answers: Answers


class QuestionRejected(Wire, frozen=True):
    """Questions will not be answered."""

    session_id: str
    request_id: str


class TodoUpdated(Wire, frozen=True):
    """A session's list is different."""

    session_id: str
    todos: tuple[Todo, ...]


class CommandExecuted(Wire, frozen=True):
    """A slash command's turn ended."""

    name: str
    session_id: str
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
    """An event of a plugin's own; `name` is its type."""

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
    SessionCreated
    | SessionUpdated
    | SessionDeleted
    | SessionStatusChanged
    | SessionIdle
    | SessionFailed
    | SessionWarned
    | SessionDiffed
    | SessionCompacted
    | MessageUpdated
    | MessageRemoved
    | PartUpdated
    | PartDelta
    | PartRemoved
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | TodoUpdated
    | CommandExecuted
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
        """The session that the event is about, None for the project's own."""
        match self.properties:
            case PermissionAsked(request=asked):
                return asked.session_id
            case QuestionAsked(request=question):
                return question.session_id
            case FileEdited() | ProjectUpdated() | PluginFailed() | Custom():
                return None
            case properties:
                return properties.session_id

    def payload(self) -> object:
        """The `properties` as the protocol has them."""
        match self.properties:
            case PermissionAsked(request=asked):
                return asked
            case QuestionAsked(request=question):
                return question
            case ProjectUpdated(info=info):
                return info
            case Custom(data=data):
                return data
            case properties:
                return properties
