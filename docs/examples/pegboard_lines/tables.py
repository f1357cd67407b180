"""The content of a file of lines, in memory: tables that commits change."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

from msgspec.structs import replace

from pegboard import InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.schema.event import Event, Properties, SessionDeleted, SessionUpdated
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
class SessionContent:
    """All that belongs to one session; a change makes another one."""

    session: Session
    turns: dict[str, Turn] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    state: dict[str, object] = field(default_factory=dict)
    requests: dict[str, PermissionRequest] = field(default_factory=dict)

    def parts(self) -> Iterator[Part]:
        """Yield all parts, in order."""
        return (part for turn in self.turns.values() for part in turn.parts)

    def with_part(self, part: Part) -> "SessionContent":
        """Return the content with a part that is new, or that replaces the one with its id.

        :raises NotFoundError: when there is no such message.
        :raises InvalidInputError: when the id belongs to another message.
        """
        if part.message_id not in self.turns:
            raise NotFoundError("message", part.message_id)
        same = [each for each in self.parts() if each.id == part.id]
        if any(each.message_id != part.message_id for each in same):
            raise InvalidInputError(f"part {part.id} belongs to another message already")
        turn = self.turns[part.message_id]
        parts = {**{each.id: each for each in turn.parts}, part.id: part}
        return self.with_turn(replace(turn, parts=tuple(parts.values())))

    def with_turn(self, turn: Turn) -> "SessionContent":
        """Return the content with a message and its parts."""
        return with_fields(self, turns={**self.turns, turn.info.id: turn})


@dataclass(slots=True)
class Tables:
    """All sessions; a commit changes a copy, so that one that fails leaves nothing behind."""

    projects: dict[str, Project] = field(default_factory=dict)
    sessions: dict[str, SessionContent] = field(default_factory=dict)
    approvals: tuple[Approval, ...] = ()
    events: tuple[Event, ...] = ()
    last_seq: int = 0
    last_approval: int = 0

    def copy(self) -> "Tables":
        """Return tables that can be changed without these."""
        return with_fields(self, projects={**self.projects}, sessions={**self.sessions})

    def content(self, session_id: str) -> SessionContent:
        """Return the content of a session.

        :raises NotFoundError: when there is no such session.
        """
        if session_id not in self.sessions:
            raise NotFoundError("session", session_id)
        return self.sessions[session_id]

    def store(self, properties: Properties) -> Event:
        """Store an event with the next number."""
        self.last_seq += 1
        event = Event(properties=properties, seq=self.last_seq)
        self.events = (*self.events, event)[-MOST_EVENTS:]
        return event

    def apply(self, change: Change, at: int) -> Iterator[Event]:  # noqa: C901, PLR0912 - one case a change
        """Write a change, and yield its events; `at` is in milliseconds since the epoch."""
        match change:
            case PutProject(project):
                self.projects[project.id] = project
                yield self.store(change.properties)
            case CreateSession(session):
                if session.id in self.sessions:
                    raise InvalidInputError(f"there is a session {session.id} already")
                if session.parent_id is not None:
                    self.content(session.parent_id)
                self.sessions[session.id] = SessionContent(session)
                yield self.store(change.properties)
            case ChangeSession(session_id=session_id):
                content = self.content(session_id)
                session = apply_change(content.session, change)
                self.sessions[session_id] = with_fields(content, session=session)
                yield self.store(SessionUpdated(session_id=session_id, info=session))
            case DropSession(session_id):
                yield from self._drop(session_id)
            case DropApproval(ids):
                self.approvals = tuple(each for each in self.approvals if each.id not in ids)
            case PutApproval():
                self._approve(change)
            case PublishEvent(properties):
                if change.session_id is not None:
                    self.content(change.session_id)
                yield self.store(properties)
            case Tell(properties):
                yield Event(properties=properties)
            case AddText() | DropMessage() | DropPart() | SettlePermissionRequest() if (
                change.session_id not in self.sessions
            ):
                pass
            case _:
                content, about = _change_content(self.content(change.session_id), change, at)
                self.sessions[change.session_id] = content
                if about is not None:
                    is_stored = not isinstance(change, PutPart) or change.publish
                    yield self.store(about) if is_stored else Event(properties=about)

    def _drop(self, session_id: str) -> Iterator[Event]:
        every = [content.session for content in self.sessions.values()]
        for child in reversed([each.id for each in every if each.parent_id == session_id]):
            yield from self._drop(child)
        if (content := self.sessions.pop(session_id, None)) is not None:
            self.events = tuple(each for each in self.events if each.session_id != session_id)
            self.approvals = tuple(each for each in self.approvals if each.key != session_id)
            yield self.store(SessionDeleted(session_id=session_id, info=content.session))

    def _approve(self, change: PutApproval) -> None:
        if change.session_id is not None:
            self.content(change.session_id)
        for rule in change.rules:
            same = (change.key, change.agent, rule.permission, rule.pattern)
            others = [
                each
                for each in self.approvals
                if (each.key, each.agent, each.rule.permission, each.rule.pattern) != same
            ]
            self.last_approval += 1
            new = Approval(
                id=self.last_approval, key=change.key, rule=rule, agent=change.agent, at=change.at
            )
            self.approvals = (*others, new)


def _change_content(  # noqa: C901, PLR0911 - one case a change
    content: SessionContent, change: Change, at: int
) -> tuple[SessionContent, Properties | None]:
    """Return a session after a change, and the properties of its event, None without one."""
    match change:
        case PutMessage(message):
            before = content.turns.get(message.id, Turn(info=message, parts=()))
            return content.with_turn(replace(before, info=message)), change.properties
        case DropMessage(message_id=id_) if id_ in content.turns:
            turns = {name: turn for name, turn in content.turns.items() if name != id_}
            return with_fields(content, turns=turns), change.properties
        case PutPart(part):
            return content.with_part(part), change.properties_at(at)
        case AddText(part_id=id_, text=text):
            for part in content.parts():
                if part.id == id_ and isinstance(part, TextPart | ReasoningPart):
                    return content.with_part(replace(part, text=part.text + text)), None
        case DropPart(message_id=message_id, part_id=id_) if message_id in content.turns:
            turn = content.turns[message_id]
            left = tuple(part for part in turn.parts if part.id != id_)
            properties = change.properties if left != turn.parts else None
            return content.with_turn(replace(turn, parts=left)), properties
        case PutTodos(todos=todos):
            return with_fields(content, todos=todos), change.properties
        case PutState(key=key, value=value):
            state = {name: each for name, each in content.state.items() if name != key}
            return with_fields(
                content, state=state if value is None else {**state, key: value}
            ), None
        case PutPermissionRequest(request):
            requests = {**content.requests, request.id: request}
            return with_fields(content, requests=requests), change.properties
        case SettlePermissionRequest(request_id=id_) if id_ in content.requests:
            requests = {name: each for name, each in content.requests.items() if name != id_}
            return with_fields(content, requests=requests), change.properties
    return content, None
