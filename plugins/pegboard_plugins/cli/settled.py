"""The texts of an answer in the order of time, each once no failed attempt can take it back."""

from collections.abc import Iterator

from pegboard.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import Pending, ReasoningPart, StepFinishPart, TextPart, ToolPart


class SettledTexts:
    """Holds complete texts and thoughts back until the attempt that wrote them counts.

    An attempt counts once a tool runs for it, or its step or its message has ended. The engine
    removes the parts of one that failed before, and their events are dropped here.
    """

    def __init__(self) -> None:
        self._held: dict[str, Event] = {}

    def settle(self, event: Event) -> Iterator[Event]:
        """Give the events that count now, in order."""
        match event.properties:
            case PartUpdated(part=TextPart() | ReasoningPart() as part):
                if part.time is None or part.time.end is None:
                    yield event
                else:
                    self._held[part.id] = event
                return
            case PartRemoved(part_id=part_id):
                self._held.pop(part_id, None)
            case PartUpdated(part=ToolPart(state=Pending())):
                pass
            case PartUpdated(part=ToolPart() | StepFinishPart() as part):
                yield from self._of(part.message_id)
            case MessageUpdated(info=AssistantMessage() as info) if info.time.completed:
                yield from self._of(info.id)
            case _:
                pass
        yield event

    def rest(self) -> Iterator[Event]:
        """Give what is held, when no event follows."""
        yield from self._held.values()
        self._held.clear()

    def _of(self, message_id: str) -> Iterator[Event]:
        for part_id, event in list(self._held.items()):
            held = event.properties
            if isinstance(held, PartUpdated) and held.part.message_id == message_id:
                yield self._held.pop(part_id)
