"""Sessions, models and events in the protocol's form, without the fields that only Pegboard has."""

from typing import Any

from msgspec.structs import replace

from pegboard.schema.event import Event, MessageUpdated, PartUpdated
from pegboard.schema.message import AssistantMessage, Message, Turn
from pegboard.schema.part import Part, StepFinishPart

_OWN_FACTS = ("reasoningStyle", "effortNames", "cacheStyle", "wire", "smallModel")
_LONG_TOKENS = 200_000
"""The one step of a price that the protocol has a field for."""
UNPRICED = b'"cost":null'
"""What stands in the JSON of an answer of which nobody knows the price."""


def wire_model(model: dict[str, Any]) -> dict[str, Any]:
    """The model, in its JSON form, as clients of the protocol know it: 0 is what is not known."""
    known = {name: value for name, value in model.items() if name not in _OWN_FACTS}
    cost = model["cost"] or {}
    tiers = [each for each in cost.get("tiers", ()) if each["overTokens"] == _LONG_TOKENS]
    long = {"experimentalOver200K": _price(tiers[0])} if tiers else {}
    limit = {"context": 0, "output": 0, **model["limit"]}
    return {**known, "cost": {**_price(cost), **long}, "limit": limit}


def _price(cost: dict[str, Any]) -> dict[str, Any]:
    cache = {name: price or 0 for name, price in cost.get("cache", {}).items()}
    told = {name: cost.get(name, 0) for name in ("input", "output")}
    return {**told, "cache": {"read": 0, "write": 0, **cache}}


def wire_turn(turn: Turn) -> Turn:
    """The message and its parts as clients know them."""
    return replace(turn, info=wire_message(turn.info), parts=tuple(map(_wire_part, turn.parts)))


def wire_message(message: Message) -> Message:
    """The message without Pegboard's own notes about it; 0 is a cost that is not known."""
    if not isinstance(message, AssistantMessage):
        return message
    if message.metadata is None and message.cost is not None:
        return message
    return replace(message, metadata=None, cost=message.cost or 0.0)


def _wire_part(part: Part) -> Part:
    if isinstance(part, StepFinishPart) and part.cost is None:
        return replace(part, cost=0.0)
    return part


def wire_event(event: Event) -> Event:
    """The event as clients know it; the very same where there is no difference."""
    match event.properties:
        case MessageUpdated(info=info) as told:
            shown = wire_message(info)
            if shown is not info:
                return replace(event, properties=replace(told, info=shown))
        case PartUpdated(part=StepFinishPart(cost=None) as part) as told:
            return replace(event, properties=replace(told, part=_wire_part(part)))
    return event
