"""Sessions, models and events in the format of OpenCode's protocol, without Pegboard's fields.

Unknown numbers become 0. An additional field for Pegboard's clients names them.
"""

from typing import Any

from msgspec.structs import asdict, replace

from pegboard.schema.event import Event, MessageUpdated, PartUpdated
from pegboard.schema.message import AssistantMessage, Message, Turn
from pegboard.schema.part import Part, StepFinishPart
from pegboard.schema.wire import encode
from pegboard_plugins.shared.frontend import UNKNOWN

_OWN_FACTS = ("reasoningStyle", "effortNames", "cacheStyle", "wire", "smallModel")
_LONG_TOKENS = 200_000
"""The one step of a price that the protocol has a field for."""
UNPRICED = b'"cost":null'
"""The value in the JSON of an answer whose price is unknown."""
_COST = ("cost",)


class _UnpricedAnswer(
    AssistantMessage, frozen=True, kw_only=True, tag_field="role", tag="assistant"
):
    """An answer with an unknown cost, which OpenCode's protocol gives as 0."""

    pegboard_unknown: tuple[str, ...]


class _UnpricedStep(StepFinishPart, frozen=True, kw_only=True, tag_field="type", tag="step-finish"):
    """A request to a model with an unknown cost, which OpenCode's protocol gives as 0."""

    pegboard_unknown: tuple[str, ...]


def wire_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model's JSON with only the fields that OpenCode's clients know."""
    known = {name: value for name, value in model.items() if name not in _OWN_FACTS}
    cost = model["cost"] or {}
    tiers = [each for each in cost.get("tiers", ()) if each["overTokens"] == _LONG_TOKENS]
    long = {"experimentalOver200K": _price(tiers[0])} if tiers else {}
    limit = _numbers(model["limit"], "context", "output")
    told = {**known, "cost": {**_price(cost), **long}, "limit": limit}
    return told if cost else told | {UNKNOWN: _COST}


def _price(cost: dict[str, Any]) -> dict[str, Any]:
    told = {name: cost.get(name, 0) for name in ("input", "output")}
    return {**told, "cache": _numbers(cost.get("cache", {}), "read", "write")}


def _numbers(facts: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the facts with 0 for names without a value, which are listed under `UNKNOWN`."""
    unknown = [name for name in names if facts.get(name) is None]
    told = {**facts, **dict.fromkeys(unknown, 0)}
    return told | {UNKNOWN: unknown} if unknown else told


def wire_turn(turn: Turn) -> Turn:
    """Return a message and its parts in the format of OpenCode's protocol."""
    return replace(turn, info=wire_message(turn.info), parts=tuple(map(wire_part, turn.parts)))


def wire_message(message: Message) -> Message:
    """Return the message without Pegboard's own fields."""
    if not isinstance(message, AssistantMessage):
        return message
    if message.cost is None:
        told = asdict(message) | {"metadata": None, "cost": 0.0}
        return _UnpricedAnswer(**told, pegboard_unknown=_COST)
    return message if message.metadata is None else replace(message, metadata=None)


def wire_part(part: Part) -> Part:
    """Return a message part in the format of OpenCode's protocol."""
    if isinstance(part, StepFinishPart) and part.cost is None:
        return _UnpricedStep(**asdict(part) | {"cost": 0.0}, pegboard_unknown=_COST)
    return part


def wire_event(event: Event) -> Event:
    """Return the event in OpenCode's format; the same object if nothing differs."""
    match event.properties:
        case MessageUpdated(info=info) as told:
            shown = wire_message(info)
            if shown is not info:
                return replace(event, properties=replace(told, info=shown))
        case PartUpdated(part=StepFinishPart(cost=None) as part) as told:
            return replace(event, properties=replace(told, part=wire_part(part)))
    return event


def encode_event(event: Event) -> bytes:
    """Encode an event as JSON for OpenCode's clients; a stored event has its number as `id`."""
    body = {"type": event.type, "properties": event.payload()}
    return encode({"id": f"evt_{event.seq:026d}", **body} if event.seq else body)
