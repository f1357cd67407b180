"""New ids for a conversation that is copied: every place that names an old one follows."""

import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.ids import IdSource
from pegboard.schema.message import AssistantMessage, TextData, Turn, UnknownFailure
from pegboard.schema.part import Failed, Part, Pending, Running, Span, ToolPart
from pegboard.schema.wire import encode

_ID = re.compile(rb"\b(?:ses|msg|prt)_[0-9A-Za-z_-]+")
_UNFINISHED = "interrupted: the session was copied before this had ended"

_Value = TypeVar("_Value")


class Renaming:
    """Old ids and the new ones; text that mentions an old id, as a tool's output may, follows too.

    `ids` makes the new ones, in the order of the turns, so that they sort like them.
    """

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._names: dict[bytes, bytes] = {}
        self._message: str | None = None
        self._part: str | None = None

    def session(self, old: str) -> str:
        """The new id of a session."""
        return self._noted(old, self._ids.new("session"))

    def turns(self, turns: Iterable[Turn]) -> None:
        """Give new ids to these turns and their parts."""
        for turn in turns:
            self._message = self._noted(turn.info.id, self._ids.new("message", after=self._message))
            for part in turn.parts:
                self._part = self._noted(part.id, self._ids.new("part", after=self._part))

    def apply(self, value: _Value, kind: type[_Value]) -> _Value:
        """The value with the new ids."""
        return msgspec.json.decode(_ID.sub(self._name, encode(value)), type=kind)

    def _noted(self, old: str, new: str) -> str:
        self._names[old.encode()] = new.encode()
        return new

    def _name(self, match: re.Match[bytes]) -> bytes:
        return self._names.get(match[0], match[0])


def ended(turn: Turn, now: int) -> Turn:
    """The turn with nothing unfinished in it: what ran in the original does not run in a copy."""
    info = turn.info
    if not isinstance(info, AssistantMessage):
        return turn
    if info.time.completed is None:
        error = info.error or UnknownFailure(data=TextData(message=_UNFINISHED))
        info = replace(info, error=error, time=replace(info.time, completed=now))
    return Turn(info=info, parts=tuple(_ended(part, now) for part in turn.parts))


def _ended(part: Part, now: int) -> Part:
    if not isinstance(part, ToolPart) or not isinstance(part.state, Pending | Running):
        return part
    start = part.state.time.start if isinstance(part.state, Running) else now
    state = Failed(input=part.state.input, error=_UNFINISHED, time=Span(start=start, end=now))
    return replace(part, state=state)
