"""What the file of lines holds, in memory: tables that commits change, and what is told of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from typing import Any

from msgspec.structs import replace

from pegboard import InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.schema import event as events
from pegboard.schema.event import Event, Properties
from pegboard.schema.message import Turn
from pegboard.schema.part import Part, ReasoningPart, TextPart
from pegboard.schema.session import Approval, PermissionRequest, Project, Session, Todo
from pegboard.storage import (
    AddText,
    Change,
    ChangeSession,
    CreateSession,
    DropApproval,
    DropMessage,
    DropPart,
    DropSession,
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
)

MOST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Kept:
    """All that belongs to one session; a change makes another one."""

    session: Session
    turns: dict[str, Turn] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    state: dict[str, object] = field(default_factory=dict)
    asked: dict[str, PermissionRequest] = field(default_factory=dict)


@dataclass(slots=True)
class Tables:
    """Everything; a commit works on a copy, and what fails leaves nothing behind."""

    projects: dict[str, Project] = field(default_factory=dict)
    sessions: dict[str, Kept] = field(default_factory=dict)
    approvals: tuple[Approval, ...] = ()
    events: tuple[Event, ...] = ()
    seq: int = 0
    given: int = 0

    def copy(self) -> "Tables":
        """Tables that can be changed without these."""
        return with_fields(self, projects={**self.projects}, sessions={**self.sessions})

    def kept(self, session_id: str) -> Kept:
        """The session.

        :raises NotFoundError: when there is none.
        """
        if session_id not in self.sessions:
            raise NotFoundError("session", session_id)
        return self.sessions[session_id]

    def store(self, properties: Properties) -> Event:
        """The event, with the next number."""
        self.seq += 1
        stored = Event(properties=properties, seq=self.seq)
        self.events = (*self.events, stored)[-MOST_EVENTS:]
        return stored

    def apply(self, change: Change, at: int) -> Iterator[Event]:  # noqa: C901 - one case a change
        """Do what a change says, and give its events."""
        match change:
            case PutProject(project):
                self.projects[project.id] = project
                yield self.store(events.ProjectUpdated(info=project))
            case CreateSession(session):
                if session.id in self.sessions:
                    raise InvalidInputError(f"there is a session {session.id} already")
                if session.parent_id is not None:
                    self.kept(session.parent_id)
                self.sessions[session.id] = Kept(session)
                yield self.store(events.SessionCreated(session_id=session.id, info=session))
            case ChangeSession(session_id=session_id):
                kept = self.kept(session_id)
                session = apply_change(kept.session, change)
                self.sessions[session_id] = with_fields(kept, session=session)
                yield self.store(events.SessionUpdated(session_id=session_id, info=session))
            case DropSession(session_id):
                yield from self._dropped(session_id)
            case PutApproval() | DropApproval():
                self._approve(change)
            case PublishEvent(properties):
                if (owner := Event(properties=properties).session_id) is not None:
                    self.kept(owner)
                yield self.store(properties)
            case Tell(properties):
                yield Event(properties=properties)
            case _:
                yield from self._applied_to_session(change, at)

    def _dropped(self, session_id: str) -> Iterator[Event]:
        children = [
            each.session.id
            for each in self.sessions.values()
            if each.session.parent_id == session_id
        ]
        for child in reversed(children):
            yield from self._dropped(child)
        if (gone := self.sessions.pop(session_id, None)) is not None:
            self.events = tuple(each for each in self.events if each.session_id != session_id)
            self.approvals = tuple(each for each in self.approvals if each.key != session_id)
            yield self.store(events.SessionDeleted(session_id=session_id, info=gone.session))

    def _approve(self, change: PutApproval | DropApproval) -> None:
        if isinstance(change, DropApproval):
            self.approvals = tuple(each for each in self.approvals if each.id not in change.ids)
            return
        if change.key.startswith("ses_"):
            self.kept(change.key)
        for rule in change.rules:
            self.given += 1
            new = Approval(
                id=self.given, key=change.key, rule=rule, agent=change.agent, at=change.at
            )
            others = (each for each in self.approvals if not _same(each, new))
            self.approvals = (*others, new)

    def _applied_to_session(self, change: Change, at: int) -> Iterator[Event]:
        session_id = _session_of(change)
        if isinstance(change, AddText | DropMessage | DropPart | SettlePermissionRequest) and (
            session_id not in self.sessions
        ):
            return
        kept, told = _changed(self.kept(session_id), change, at)
        self.sessions[session_id] = kept
        if told is not None:
            is_news = not isinstance(change, PutPart) or change.told
            yield self.store(told) if is_news else Event(properties=told)


def _same(one: Approval, other: Approval) -> bool:
    return (one.key, one.agent, one.rule.permission, one.rule.pattern) == (
        other.key,
        other.agent,
        other.rule.permission,
        other.rule.pattern,
    )


def _session_of(change: Any) -> str:  # noqa: ANN401 - each change has it elsewhere
    held = getattr(change, "message", None) or getattr(change, "part", None)
    held = held or getattr(change, "request", None) or change
    return str(held.session_id)


def _changed(  # noqa: C901, PLR0911 - one case a change
    kept: Kept, change: Change, at: int
) -> tuple[Kept, Properties | None]:
    """The session after a change, with what is told of it."""
    session_id = kept.session.id
    match change:
        case PutMessage(message):
            before = kept.turns.get(message.id, Turn(info=message, parts=()))
            turns = {**kept.turns, message.id: replace(before, info=message)}
            told: Properties | None = events.MessageUpdated(session_id=session_id, info=message)
            return with_fields(kept, turns=turns), told
        case DropMessage(message_id=message_id):
            turns = {name: turn for name, turn in kept.turns.items() if name != message_id}
            told = events.MessageRemoved(session_id=session_id, message_id=message_id)
            return with_fields(kept, turns=turns), told if message_id in kept.turns else None
        case PutPart(part):
            told = events.PartUpdated(session_id=session_id, part=part, time=at)
            return _with_part(kept, part), told
        case AddText(part_id=part_id, text=text):
            for part in parts_of(kept):
                if part.id == part_id and isinstance(part, TextPart | ReasoningPart):
                    return _with_part(kept, replace(part, text=part.text + text)), None
        case DropPart(message_id=message_id, part_id=part_id) if message_id in kept.turns:
            turn = kept.turns[message_id]
            left = tuple(part for part in turn.parts if part.id != part_id)
            told = events.PartRemoved(session_id=session_id, message_id=message_id, part_id=part_id)
            turns = {**kept.turns, message_id: replace(turn, parts=left)}
            return with_fields(kept, turns=turns), told if left != turn.parts else None
        case PutTodos(todos=todos):
            told = events.TodoUpdated(session_id=session_id, todos=todos)
            return with_fields(kept, todos=todos), told
        case PutState(key=key, value=value):
            state = {name: kept.state[name] for name in kept.state if name != key}
            return with_fields(kept, state=state if value is None else {**state, key: value}), None
        case PutPermissionRequest(request):
            asked = {**kept.asked, request.id: request}
            return with_fields(kept, asked=asked), events.PermissionAsked(request=request)
        case SettlePermissionRequest(request_id=request_id, reply=reply) if (
            request_id in kept.asked
        ):
            asked = {name: kept.asked[name] for name in kept.asked if name != request_id}
            told = events.PermissionReplied(
                session_id=session_id, request_id=request_id, reply=reply
            )
            return with_fields(kept, asked=asked), told
    return kept, None


def parts_of(kept: Kept) -> Iterator[Part]:
    """All parts of a session, in order."""
    return (part for turn in kept.turns.values() for part in turn.parts)


def _with_part(kept: Kept, part: Part) -> Kept:
    if part.message_id not in kept.turns:
        raise NotFoundError("message", part.message_id)
    if any(each.id == part.id and each.message_id != part.message_id for each in parts_of(kept)):
        raise InvalidInputError(f"part {part.id} belongs to another message already")
    turn = kept.turns[part.message_id]
    if any(each.id == part.id for each in turn.parts):
        parts = tuple(part if each.id == part.id else each for each in turn.parts)
    else:
        parts = (*turn.parts, part)
    return with_fields(kept, turns={**kept.turns, part.message_id: replace(turn, parts=parts)})
