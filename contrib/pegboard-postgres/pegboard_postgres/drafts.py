"""The content of a transaction: changes as arguments of the SQL function `write_changes`."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from pegboard.errors import InvalidInputError, NotFoundError, SessionBusyError
from pegboard.schema.event import Event, Properties, SessionDeleted, SessionUpdated
from pegboard.schema.message import UserMessage
from pegboard.schema.session import Session
from pegboard.schema.wire import encode_checked, encode_text
from pegboard.storage import (
    AddText,
    Change,
    ChangeSession,
    CreateSession,
    DropApproval,
    DropMessage,
    DropPart,
    DropSession,
    Fence,
    PublishEvent,
    PutApproval,
    PutMessage,
    PutPart,
    PutPermissionRequest,
    PutProject,
    PutState,
    PutTodos,
    SettlePermissionRequest,
    Tell,
    apply_change,
    is_unfinished,
    unfinished_state,
)

MOST_CHANGES = 0xFFFF
"""How many rows a transaction may write: the numbers of its events share one number."""
_NO_NUL = str.maketrans({"\x00": "\ufffd"})


class HeldSession(msgspec.Struct, frozen=True):
    """A session that a transaction has locked, with its owner's id and its fencing epoch."""

    session: Session
    owner: str | None = None
    epoch: int = 0


def is_held(held: Mapping[str, HeldSession], fence: Fence) -> bool:
    """Return whether the session of a fence still has the fence's owner and epoch."""
    found = held.get(fence.session_id)
    return found is not None and (found.owner, found.epoch) == (fence.owner, fence.epoch)


class SessionTakenError(SessionBusyError):
    """Another process took over the session after the lease of this process had expired."""

    def __str__(self) -> str:
        return (
            f"session {self.session_id} goes on in another process: this one did not renew its "
            "lease in time, as when it is stopped; read the session's messages for the answer"
        )


class Written(msgspec.Struct, frozen=True):
    """A row of arguments for the SQL function `write_changes`; `properties` is the row's event."""

    kind: str
    session_id: str | None = None
    id: str | None = None
    parent: str | None = None
    word: str | None = None
    label: str | None = None
    number: int | None = None
    data: bytes | None = None
    properties: Properties | None = None

    def columns(self) -> tuple[object, ...]:
        """Return the values of the row in the order of the SQL function's arguments."""
        event = None if self.properties is None else Event(properties=self.properties).type
        return (
            self.kind,
            self.session_id,
            self.id,
            self.parent,
            self.word,
            self.label,
            self.number,
            self.data,
            event,
        )


def sessions_of(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the ids of the sessions that the changes use or create."""
    for change in changes:
        match change:
            case CreateSession(session=session):
                yield from filter(None, (session.id, session.parent_id))
            case PutProject() | DropApproval() | Tell():
                pass
            case _:
                yield from filter(None, [change.session_id])


class RowDraft:
    """The rows that a transaction will write, built from changes to locked sessions.

    `held` contains the locked sessions by id. For each session to delete, `families` lists the
    session and its descendants, the deepest first.
    """

    def __init__(
        self, held: dict[str, HeldSession], families: dict[str, tuple[Session, ...]]
    ) -> None:
        self._held = held
        self._families = families
        self.written: list[Written | Tell] = []

    def add(self, changes: Sequence[Change], fence: Fence | None) -> None:
        """Add the changes of a commit; if any change is refused, the draft stays unchanged.

        :raises SessionBusyError: when another owner has claimed the session since.
        :raises NotFoundError: when a session does not exist.
        :raises InvalidInputError: when a value cannot be stored.
        """
        held, length = dict(self._held), len(self.written)
        try:
            if fence is not None:
                self._check(fence)
            for change in changes:
                self.written.extend(self._rows(change))
        except BaseException:
            self._held = held
            del self.written[length:]
            raise

    def _check(self, fence: Fence) -> None:
        found = self._need(fence.session_id)
        if not is_held(self._held, fence):
            raise SessionTakenError(fence.session_id, owner=found.owner)

    def _need(self, session_id: str) -> HeldSession:
        if session_id not in self._held:
            raise NotFoundError("session", session_id)
        return self._held[session_id]

    def _rows(self, change: Change) -> Iterator[Written | Tell]:
        match change:
            case Tell():
                yield change
            case ChangeSession():
                yield self._change(change)
            case CreateSession():
                yield self._create(change)
            case DropSession(session_id=session_id):
                yield from self._drop(session_id)
            case PutState(session_id=session_id, key=key, value=None):
                yield Written("drop_state", session_id, key)
            case PutPart() | PutMessage() | PutTodos() | PutState() | PutPermissionRequest():
                self._need(change.session_id)
                yield from _of_session(change)
            case PublishEvent(session_id=session_id) | PutApproval(session_id=session_id):
                if session_id is not None:
                    self._need(session_id)
                yield from _of_session(change)
            case _:
                yield from _of_any(change)

    def _change(self, change: ChangeSession) -> Written:
        held = self._need(change.session_id)
        session = apply_change(held.session, change)
        self._held[session.id] = HeldSession(session, held.owner, held.epoch)
        return Written(
            "change",
            session.id,
            label=session.title.translate(_NO_NUL),
            number=session.time.updated,
            data=encode_checked(session),
            properties=SessionUpdated(session_id=session.id, info=session),
        )

    def _create(self, change: CreateSession) -> Written:
        session = change.session
        if session.id in self._held:
            raise InvalidInputError(f"there is a session {session.id} already")
        if session.parent_id is not None:
            self._need(session.parent_id)
        data = encode_checked(session)
        self._held[session.id] = HeldSession(session)
        return Written(
            "session",
            session.id,
            session.project_id,
            session.parent_id,
            session.directory.translate(_NO_NUL),
            session.title.translate(_NO_NUL),
            session.time.updated,
            data,
            change.properties,
        )

    def _drop(self, session_id: str) -> Iterator[Written]:
        family = self._families.get(session_id, ())
        if not family and session_id in self._held:
            family = (self._held[session_id].session,)  # this transaction has made it
        for session in family:
            self._held.pop(session.id, None)
            yield Written("drop_session", session.id)
            deleted = SessionDeleted(session_id=session.id, info=session)
            yield _event("event", session.id, None, deleted)


def _of_session(change: Change) -> Iterator[Written]:
    """Yield the rows for a change to an existing session."""
    match change:
        case PutPart(part=part):
            yield Written(
                "part",
                part.session_id,
                part.id,
                part.message_id,
                unfinished_state(part),
                number=int(change.publish),
                data=encode_checked(part),
                properties=change.properties_at(time.time_ns() // 1_000_000),
            )
        case PutMessage(message=message):
            yield Written(
                "message",
                message.session_id,
                message.id,
                word="user" if isinstance(message, UserMessage) else "assistant",
                number=int(is_unfinished(message)),
                data=encode_checked(message),
                properties=change.properties,
            )
        case PutTodos(session_id=session_id, todos=todos):
            data = encode_checked(todos)
            yield Written("todos", session_id, data=data, properties=change.properties)
        case PutState(session_id=session_id, key=key, value=value):
            yield Written("state", session_id, key, data=encode_checked(value))
        case PutPermissionRequest(request=request):
            yield _event("request", request.session_id, request.id, change.properties)
        case PublishEvent(properties=properties):
            yield _event("event", change.session_id, None, properties)
        case PutApproval(key=key, rules=rules):
            for rule in rules:
                names = (key, rule.permission, rule.pattern, rule.action, change.agent or "")
                yield Written("approval", *names, number=change.at)


def _of_any(change: Change) -> Iterator[Written]:
    """Yield the rows for a change that the database accepts even without a stored session."""
    match change:
        case PutProject(project=project):
            data = encode_checked(project)
            yield Written("project", id=project.id, data=data, properties=change.properties)
        case AddText(session_id=session_id, part_id=id_, text=text):
            yield Written("text", session_id, id_, data=encode_text(text))
        case DropMessage(session_id=session_id, message_id=id_):
            yield _event("drop_message", session_id, id_, change.properties)
        case DropPart(session_id=session_id, message_id=message_id, part_id=id_):
            yield _event("drop_part", session_id, id_, change.properties, message_id)
        case SettlePermissionRequest(session_id=session_id, request_id=id_):
            yield _event("settle", session_id, id_, change.properties)
        case DropApproval(ids=ids):
            yield from (Written("drop_approval", number=each) for each in ids)
        case _:
            raise InvalidInputError(f"{type(change).__name__} is not a change of this database")


def _event(
    kind: str,
    session_id: str | None,
    id_: str | None,
    properties: Properties,
    parent: str | None = None,
) -> Written:
    """Return a row that contains the data of its event, because nothing else is stored."""
    data = encode_checked(Event(properties=properties).payload())
    return Written(kind, session_id, id_, parent, data=data, properties=properties)
