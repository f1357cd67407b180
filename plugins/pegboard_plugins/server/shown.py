"""Values as clients of the protocol know them, without what only Pegboard has."""

from typing import Any

from msgspec.structs import replace

from pegboard.schema.event import Event, MessageUpdated
from pegboard.schema.message import AssistantMessage, Message

_OWN_FACTS = ("reasoningStyle", "effortNames", "cacheStyle", "wire", "smallModel")


def model_as_shown(model: dict[str, Any]) -> dict[str, Any]:
    """The model, in its JSON form, without what clients of the protocol do not know."""
    return {name: value for name, value in model.items() if name not in _OWN_FACTS}


def as_shown(message: Message) -> Message:
    """The message without Pegboard's own notes about it."""
    if isinstance(message, AssistantMessage) and message.metadata is not None:
        return replace(message, metadata=None)
    return message


def event_as_shown(event: Event) -> Event:
    """The event with its message as clients know it; the very same where there is no difference."""
    match event.properties:
        case MessageUpdated(info=info) as told:
            shown = as_shown(info)
            if shown is not info:
                return replace(event, properties=replace(told, info=shown))
    return event
