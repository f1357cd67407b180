"""Streamed text for clients without deltas: the whole text, at growing intervals."""

from dataclasses import dataclass
from time import time_ns

from msgspec.structs import replace

from pegboard.schema.event import Event, PartDelta, PartRemoved, PartUpdated, SessionIdle
from pegboard.schema.part import ReasoningPart, TextPart

GROWTH = 3
"""A text is repeated when it is so many times as long: all repeats are less than 1.5 x the text."""
FIRST_LETTERS = 64
_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class _RepeatedText:
    """A streamed text part, and the length at which its whole text is sent next."""

    part: TextPart | ReasoningPart
    pieces: list[str]
    letters: int = 0
    due: int = FIRST_LETTERS

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.letters += len(text)

    def repeated(self) -> Event:
        """Return an event with the part's whole text so far."""
        self.due = GROWTH * self.letters
        part = replace(self.part, text="".join(self.pieces))
        instant = time_ns() // _NS_PER_MS
        return Event(properties=PartUpdated(session_id=part.session_id, part=part, time=instant))


class Repeats:
    """The streamed text parts of one App, collected for clients that do not understand deltas."""

    def __init__(self) -> None:
        self._texts: dict[str, _RepeatedText] = {}

    def take(self, event: Event) -> Event | None:
        """Return an event with a text's whole content for clients without deltas, if it is due."""
        match event.properties:
            case PartUpdated(part=TextPart() | ReasoningPart() as part):
                self._begin(part)
            case PartRemoved(part_id=part_id):
                self._texts.pop(part_id, None)
            case SessionIdle(session_id=session_id):
                for known in tuple(self._texts.values()):
                    if known.part.session_id == session_id:
                        del self._texts[known.part.id]
            case PartDelta(part_id=part_id, delta=delta) if text := self._texts.get(part_id):
                text.add(delta)
                return text.repeated() if text.letters >= text.due else None
            case _:
                pass
        return None

    def _begin(self, part: TextPart | ReasoningPart) -> None:
        """Start to collect the text of a new part, or stop if the part has ended."""
        if part.time is not None and part.time.end is None:
            self._texts[part.id] = _RepeatedText(part, [part.text], len(part.text))
        else:
            self._texts.pop(part.id, None)
