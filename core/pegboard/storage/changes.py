"""The changes of the storage; each class writes one kind of change and names its event.

A change and its event are written in one transaction. `session_id` is the id of the session that
the change belongs to. `properties` are the properties of its event. The classes are msgspec structs
because they are imported at the start of every program.
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
    """A change that inserts or updates a project; its event is `project.updated`."""

    project: Project

    @property
    def properties(self) -> ProjectUpdated:
        """The properties of the event."""
        return ProjectUpdated(info=self.project)


class CreateSession(msgspec.Struct, frozen=True):
    """A change that inserts a session; its event is `session.created`.

    The id must be new (else `InvalidInputError`). A parent must exist (else `NotFoundError`).
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
    """A change of a session's fields; its event `session.updated` has the whole record.

    The record is read and written in one transaction, so changes of different fields by several
    writers do not undo each other. Unset fields stay unchanged. A session that does not exist
    raises `NotFoundError`.

    If `title_was` is given, `title` is set only while the title equals `title_was`. `cost` (in US
    dollars), `tokens` and `estimate` are added to the stored values. `updated`, `archived` and
    `compacting` are times in milliseconds since the epoch; `updated` never decreases.
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
    """Return a session record with a change applied; a storage does this in its transaction."""
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
    """A change that deletes a session with its children and all their data.

    Each deleted session has an event `session.deleted`, the deepest first. A session that does not
    exist is ignored.
    """

    session_id: str


class PutMessage(msgspec.Struct, frozen=True):
    """A change that inserts or updates a message; its event is `message.updated`."""

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
    """A change that deletes a message with its parts, if it exists; event: `message.removed`."""

    session_id: str
    message_id: str

    @property
    def properties(self) -> MessageRemoved:
        """The properties of the event."""
        return MessageRemoved(session_id=self.session_id, message_id=self.message_id)


class PutPart(msgspec.Struct, frozen=True):
    """A change that inserts or updates a part; its event is `message.part.updated`.

    If `publish` is false, an update has no event, because clients count some events. Updates of a
    pending or running call are published but not stored as events.
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
    """A change that appends text to a text or reasoning part without an event, if the part exists.

    Readers of the part get the text at once. A `PutPart` with the whole text ends the stream, so
    each byte of streamed text is stored only twice.
    """

    session_id: str
    part_id: str
    text: str


class DropPart(msgspec.Struct, frozen=True):
    """A change that deletes a part, if the part exists; its event is `message.part.removed`."""

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
    """A change that replaces a session's to-do list; its event is `todo.updated`."""

    session_id: str
    todos: tuple[Todo, ...]

    @property
    def properties(self) -> TodoUpdated:
        """The properties of the event."""
        return TodoUpdated(session_id=self.session_id, todos=self.todos)


class PutState(msgspec.Struct, frozen=True):
    """A change that stores or (None) deletes a tool's JSON value for the session; no event."""

    session_id: str
    key: str
    value: object


class PutApproval(msgspec.Struct, frozen=True):
    """A change that stores rules that the user has approved permanently, without an event.

    `key` is the id of the session or project for which the rules hold, or `USER_KEY`. `agent` is
    the only agent for which they hold, None for all. `at` is in milliseconds since the epoch. An
    approval with the same permission, pattern, key and agent is replaced.
    """

    key: str
    rules: tuple[Rule, ...]
    agent: str | None = None
    at: int = 0

    @property
    def session_id(self) -> str | None:
        """The session's id, or None for a project and for the user."""
        return self.key if self.key.startswith("ses_") else None


class DropApproval(msgspec.Struct, frozen=True):
    """A change that deletes the approvals with these numbers, without an event."""

    ids: tuple[int, ...]


class PutPermissionRequest(msgspec.Struct, frozen=True):
    """A change that stores a permission request; its event is `permission.asked`."""

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
    """A change that deletes an answered permission request; its event is `permission.replied`."""

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
    """A change that stores an event which belongs to no other change."""

    properties: Properties

    @property
    def session_id(self) -> str | None:
        """The session's id, or None for an event of the project."""
        return Event(properties=self.properties).session_id


class Tell(msgspec.Struct, frozen=True):
    """A change that publishes an event without storing anything.

    The event is published in its place among the events of the other changes.
    """

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
