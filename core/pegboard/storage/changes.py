"""Changes of the storage: each class says what it writes, and which event it publishes.

A change and its event are written in one transaction. `session_id` is the id of the session that
a change belongs to, `properties` are those of its event. Structs come from msgspec for the same
reason as the schema's: they stand on the start path.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pegboard.schema.event import (
    Event,
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    ProjectUpdated,
    Properties,
    SessionCreated,
    TodoUpdated,
)
from pegboard.schema.message import Message
from pegboard.schema.part import Part
from pegboard.schema.session import (
    Estimate,
    PermissionRequest,
    Project,
    Reply,
    Revert,
    Rule,
    Session,
    SessionModel,
    SessionSummary,
    Todo,
    Tokens,
    add_tokens,
)


class PutProject(msgspec.Struct, frozen=True):
    """Insert or update a project: `project.updated`."""

    project: Project

    @property
    def properties(self) -> ProjectUpdated:
        """The properties of the event."""
        return ProjectUpdated(info=self.project)


class CreateSession(msgspec.Struct, frozen=True):
    """Insert a session: `session.created`.

    Its id must be new (else `InvalidInputError`), and its parent, if it has one, must exist
    (else `NotFoundError`).
    """

    session: Session

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.session.id

    @property
    def properties(self) -> SessionCreated:
        """The properties of the event."""
        return SessionCreated(session_id=self.session.id, info=self.session)


class ChangeSession(msgspec.Struct, frozen=True, kw_only=True):
    """Change fields of a session: `session.updated`, with the whole record.

    The record is read and written in the transaction, so that changes of different fields by
    several writers do not undo each other. Fields that are not set stay. A session that does not
    exist is never inserted: `NotFoundError`.

    `title` is set only if the title is still `title_was`, where that is given. `cost` in US
    dollars, `tokens` and `estimate` are added to the stored values. `updated`, `archived` and
    `compacting` are instants in milliseconds since the epoch; `updated` never goes back.
    """

    session_id: str
    title: str | UnsetType = UNSET
    title_was: str | UnsetType = UNSET
    agent: str | UnsetType | None = UNSET
    model: SessionModel | UnsetType | None = UNSET
    summary: SessionSummary | UnsetType | None = UNSET
    permission: tuple[Rule, ...] | UnsetType = UNSET
    revert: Revert | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    updated: int | UnsetType = UNSET
    archived: int | UnsetType | None = UNSET
    compacting: int | UnsetType | None = UNSET
    cost: float = 0.0
    tokens: Tokens | None = None
    estimate: Estimate | None = None


_REPLACED = ("agent", "model", "summary", "permission", "revert", "metadata")
_INSTANTS = ("archived", "compacting")


def apply_change(session: Session, change: ChangeSession) -> Session:
    """Apply a change to a session record; every storage calls this within its transaction."""
    fields = _given(change, _REPLACED)
    if change.title is not UNSET and change.title_was in (UNSET, session.title):
        fields["title"] = change.title
    if change.cost:
        fields["cost"] = (session.cost or 0.0) + change.cost
    if change.tokens is not None:
        fields["tokens"] = add_tokens(session.tokens, change.tokens)
    if change.estimate is not None:
        fields["estimate"] = change.estimate.plus(session.estimate)
    instants = _given(change, _INSTANTS)
    if change.updated is not UNSET:
        instants["updated"] = max(change.updated, session.time.updated)
    if instants:
        fields["time"] = replace(session.time, **instants)
    return replace(session, **fields)


def _given(change: ChangeSession, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: getattr(change, name) for name in names}
    return {name: value for name, value in found.items() if value is not UNSET}


class DropSession(msgspec.Struct, frozen=True):
    """Delete a session, with its children and all that belongs to them.

    One `session.deleted` each, the deepest first. Nothing happens when it does not exist.
    """

    session_id: str


class PutMessage(msgspec.Struct, frozen=True):
    """Insert or update a message: `message.updated`."""

    message: Message

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.message.session_id

    @property
    def properties(self) -> MessageUpdated:
        """The properties of the event."""
        return MessageUpdated(session_id=self.session_id, info=self.message)


class DropMessage(msgspec.Struct, frozen=True):
    """Delete a message with its parts: `message.removed`; nothing when it does not exist."""

    session_id: str
    message_id: str

    @property
    def properties(self) -> MessageRemoved:
        """The properties of the event."""
        return MessageRemoved(session_id=self.session_id, message_id=self.message_id)


class PutPart(msgspec.Struct, frozen=True):
    """Insert or update a part: `message.part.updated`.

    With `publish` false an update publishes no event, because clients count some events. Updates
    of a pending or running call are published, and not stored as events.
    """

    part: Part
    publish: bool = True

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.part.session_id

    def properties_at(self, time: int) -> PartUpdated:
        """Return the properties of the event; `time` is in milliseconds since the epoch."""
        return PartUpdated(session_id=self.session_id, part=self.part, time=time)


class AddText(msgspec.Struct, frozen=True):
    """Append text to a text or a reasoning part, without an event; nothing without the part.

    A reader of the part gets the text at once. A `PutPart` with the whole text ends the stream:
    each byte of a streamed text is stored twice and no more.
    """

    session_id: str
    part_id: str
    text: str


class DropPart(msgspec.Struct, frozen=True):
    """Delete a part: `message.part.removed`; nothing when it does not exist."""

    session_id: str
    message_id: str
    part_id: str

    @property
    def properties(self) -> PartRemoved:
        """The properties of the event."""
        return PartRemoved(
            session_id=self.session_id, message_id=self.message_id, part_id=self.part_id
        )


class PutTodos(msgspec.Struct, frozen=True):
    """Replace a session's list of todos: `todo.updated`."""

    session_id: str
    todos: tuple[Todo, ...]

    @property
    def properties(self) -> TodoUpdated:
        """The properties of the event."""
        return TodoUpdated(session_id=self.session_id, todos=self.todos)


class PutState(msgspec.Struct, frozen=True):
    """Store a JSON value of a tool for the session, None to delete it; no event."""

    session_id: str
    key: str
    value: object


class PutApproval(msgspec.Struct, frozen=True):
    """Store rules that the user has approved for good; no event.

    `key` is the id of the session or project that they are for, or `USER_KEY`; `agent` the only
    agent that they hold for, None for all; `at` is in milliseconds since the epoch. One with the
    same permission, pattern, key and agent is replaced.
    """

    key: str
    rules: tuple[Rule, ...]
    agent: str | None = None
    at: int = 0

    @property
    def session_id(self) -> str | None:
        """The session's id, None for a project and for the user."""
        return self.key if self.key.startswith("ses_") else None


class DropApproval(msgspec.Struct, frozen=True):
    """Delete the approvals with these numbers; no event."""

    ids: tuple[int, ...]


class PutPermissionRequest(msgspec.Struct, frozen=True):
    """Store a permission request: `permission.asked`."""

    request: PermissionRequest

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.request.session_id

    @property
    def properties(self) -> PermissionAsked:
        """The properties of the event."""
        return PermissionAsked(request=self.request)


class SettlePermissionRequest(msgspec.Struct, frozen=True):
    """Delete an answered permission request: `permission.replied`; nothing without it."""

    session_id: str
    request_id: str
    reply: Reply

    @property
    def properties(self) -> PermissionReplied:
        """The properties of the event."""
        return PermissionReplied(
            session_id=self.session_id, request_id=self.request_id, reply=self.reply
        )


class PublishEvent(msgspec.Struct, frozen=True):
    """Store an event that has no row of its own."""

    properties: Properties

    @property
    def session_id(self) -> str | None:
        """The session's id, None for an event of the project."""
        return Event(properties=self.properties).session_id


class Tell(msgspec.Struct, frozen=True):
    """Publish an event without storing it, in its place among those of the other changes."""

    properties: Properties


Change = (
    PutProject
    | CreateSession
    | ChangeSession
    | DropSession
    | PutMessage
    | DropMessage
    | PutPart
    | AddText
    | DropPart
    | PutTodos
    | PutState
    | PutApproval
    | DropApproval
    | PutPermissionRequest
    | SettlePermissionRequest
    | PublishEvent
    | Tell
)
