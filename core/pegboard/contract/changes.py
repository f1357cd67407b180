"""What can be written: each change names its rows, and says which event tells of it.

A change and its event are written in one transaction. Structs come from msgspec for the same
reason as the schema's: they stand on the start path.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pegboard.schema.event import Properties
from pegboard.schema.message import Message
from pegboard.schema.part import Part
from pegboard.schema.permission import PermissionRequest, Reply, Rule
from pegboard.schema.session import (
    Project,
    Revert,
    Session,
    SessionModel,
    SessionSummary,
    Todo,
    Tokens,
    added,
)


class PutProject(msgspec.Struct, frozen=True):
    """A project's record is new or different: `project.updated`."""

    project: Project


class CreateSession(msgspec.Struct, frozen=True):
    """A session is new: `session.created`.

    Its id must be new (`InvalidInputError`), and its parent, if it has one, be there
    (`NotFoundError`).
    """

    session: Session


class ChangeSession(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a session are different: `session.updated`, with the record as it is then.

    The record is read and written in the transaction, so changes of different fields by
    whomever do not undo each other. What is not set stays; a session that is gone is
    `NotFoundError` and is never made anew.

    `title` is taken only while the title is `title_was`, if that is given. `cost` in US dollars
    and `tokens` are added to what is there. `updated`, `archived` and `compacting` are instants
    in milliseconds since the epoch; `updated` never goes back.
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


_REPLACED = ("agent", "model", "summary", "permission", "revert", "metadata")
_INSTANTS = ("archived", "compacting")


def changed(session: Session, change: ChangeSession) -> Session:
    """The session with the change; what every storage does to the row inside its transaction."""
    fields = _given(change, _REPLACED)
    if change.title is not UNSET and change.title_was in (UNSET, session.title):
        fields["title"] = change.title
    if change.cost:
        fields["cost"] = (session.cost or 0.0) + change.cost
    if change.tokens is not None:
        fields["tokens"] = added(session.tokens, change.tokens)
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
    """A session goes, with its children and all that belongs to them.

    One `session.deleted` each, the deepest first. Nothing happens when it is not there.
    """

    session_id: str


class PutMessage(msgspec.Struct, frozen=True):
    """A message is new or different: `message.updated`."""

    message: Message


class DropMessage(msgspec.Struct, frozen=True):
    """A message goes with its parts: `message.removed`; nothing when it is not there."""

    session_id: str
    message_id: str


class PutPart(msgspec.Struct, frozen=True):
    """A part is new or different: `message.part.updated`.

    No event tells of it when it is not `told`, unless the part is new: for a fact that nobody
    follows, where clients count the events. While a call is pending or running its updates are
    told and not stored as events.
    """

    part: Part
    told: bool = True


class AddText(msgspec.Struct, frozen=True):
    """Text is stored at the end of a text or a reasoning part; nothing when it is not there.

    No event tells of it. What reads the part has it at once, and `PutPart` with the whole text
    ends the writing: each byte of a streamed text is stored twice and no more.
    """

    session_id: str
    part_id: str
    text: str


class DropPart(msgspec.Struct, frozen=True):
    """A part goes: `message.part.removed`; nothing when it is not there."""

    session_id: str
    message_id: str
    part_id: str


class PutTodos(msgspec.Struct, frozen=True):
    """A session's list is replaced: `todo.updated`."""

    session_id: str
    todos: tuple[Todo, ...]


class PutState(msgspec.Struct, frozen=True):
    """A tool remembers a JSON value for the session, None to forget it; no event."""

    session_id: str
    key: str
    value: object


class PutApproval(msgspec.Struct, frozen=True):
    """The user approved rules for good; no event.

    `key` is the id of the session or project that they are for, or `USER_KEY`; `agent` the only
    agent that they hold for, None for all; `at` is in milliseconds since the epoch. One with the
    same permission, pattern, key and agent is replaced.
    """

    key: str
    rules: tuple[Rule, ...]
    agent: str | None = None
    at: int = 0


class DropApproval(msgspec.Struct, frozen=True):
    """The approvals with these numbers are taken back; no event."""

    ids: tuple[int, ...]


class PutPermissionRequest(msgspec.Struct, frozen=True):
    """Somebody has to answer: `permission.asked`."""

    request: PermissionRequest


class SettlePermissionRequest(msgspec.Struct, frozen=True):
    """A permission request is answered: `permission.replied`; nothing when it is not there."""

    session_id: str
    request_id: str
    reply: Reply


class Emit(msgspec.Struct, frozen=True):
    """An event that is stored without a row of its own."""

    properties: Properties


class Tell(msgspec.Struct, frozen=True):
    """An event that is not stored, told in its place among those of the other changes."""

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
    | Emit
    | Tell
)
