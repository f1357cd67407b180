"""What a listener knows that takes one event after the other."""

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.schema.event import (
    Event,
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    SessionCreated,
    SessionDeleted,
    SessionUpdated,
    TodoUpdated,
)
from pegboard.schema.message import AssistantMessage, UserMessage
from pegboard.schema.part import Part
from pegboard.schema.session import Session, Todo
from support.models.played import as_told


@dataclass(frozen=True, slots=True)
class Replayed:
    """What events tell of, each as it was last, in the order of the first time."""

    sessions: dict[str, Session]
    messages: dict[str, UserMessage | AssistantMessage]
    parts: dict[str, Part]
    todos: dict[str, tuple[Todo, ...]]


def replayed(events: Iterable[Event]) -> Replayed:
    """What remains when one event after the other is done."""
    found = Replayed({}, {}, {}, {})
    for event in events:
        match event.properties:
            case SessionCreated(info=session) | SessionUpdated(info=session):
                found.sessions[session.id] = session
            case SessionDeleted(session_id=session_id):
                found.sessions.pop(session_id, None)
            case MessageUpdated(info=message):
                found.messages[message.id] = message
            case MessageRemoved(message_id=message_id):
                found.messages.pop(message_id, None)
            case PartUpdated(part=part):
                found.parts[part.id] = as_told(part)
            case PartRemoved(part_id=part_id):
                found.parts.pop(part_id, None)
            case TodoUpdated(session_id=session_id, todos=todos):
                found.todos[session_id] = todos
            case _:
                pass
    return found
