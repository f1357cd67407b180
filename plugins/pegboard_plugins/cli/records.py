"""A turn as JSON: one record a line, for programs."""

from collections.abc import Mapping
from time import time
from typing import Any, TextIO

from pegboard.schema.event import (
    Event,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    PluginFailed,
    QuestionAsked,
    SessionFailed,
    SessionWarned,
)
from pegboard.schema.part import (
    Completed,
    Failed,
    Part,
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.wire import to_json
from pegboard_plugins.cli.jsontext import as_json
from pegboard_plugins.cli.tally import Tally

_MS_PER_S = 1000


class Records:
    """Writes `{type, timestamp, sessionID, …}` records; `timestamp` is in milliseconds."""

    def __init__(self, out: TextIO, tally: Tally) -> None:
        self._out = out
        self._tally = tally
        self._written: set[str] = set()

    def show(self, event: Event) -> None:
        """Write the record of the event, if it has one; of subagents only warnings have."""
        depth = self._tally.depth(event.session_id)
        warned = isinstance(event.properties, SessionWarned) and depth is not None
        if warned or isinstance(event.properties, PluginFailed) or depth == 0:
            for kind, facts in record_of(event, self._tally):
                if self._is_new(event):
                    self.write(kind, facts)

    def _is_new(self, event: Event) -> bool:
        """Whether it is the first record of its part: a snapshot may change one later."""
        if not isinstance(event.properties, PartUpdated):
            return True
        part_id = event.properties.part.id
        known = part_id in self._written
        self._written.add(part_id)
        return not known

    def write(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Write one record and let it out at once."""
        envelope = {
            "type": kind,
            "timestamp": int(time() * _MS_PER_S),
            "sessionID": self._tally.session_id,
        }
        self._out.write(as_json({**envelope, **facts}) + "\n")
        self._out.flush()


def record_of(event: Event, tally: Tally) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The type and the facts of an event's record; nothing when it has none."""
    match event.properties:
        case PartUpdated(part=part) if _is_complete(part, tally):
            return ((part_type(part), {"part": to_json(part)}),)
        case SessionFailed(error=error) if error is not None:
            return (("error", {"error": to_json(error)}),)
        case PermissionAsked() | QuestionAsked() as asked:
            kind = "permission_asked" if isinstance(asked, PermissionAsked) else "question_asked"
            return ((kind, {"request": to_json(asked.request)}),)
        case PermissionReplied(request_id=request_id, reply=reply):
            return (("permission_replied", {"requestID": request_id, "reply": reply}),)
        case PluginFailed() | SessionWarned() as told:
            kind = "plugin_error" if isinstance(told, PluginFailed) else "warning"
            return ((kind, to_json(told)),)
        case _:
            return ()


def part_type(part: Part) -> str:
    """The record's type for a part: `tool_use`, `step_start`, `text` and so on."""
    match part:
        case ToolPart():
            return "tool_use"
        case StepStartPart():
            return "step_start"
        case StepFinishPart():
            return "step_finish"
        case ReasoningPart():
            return "reasoning"
        case _:
            return "text"


def _is_complete(part: Part, tally: Tally) -> bool:
    match part:
        case ToolPart(state=state):
            return isinstance(state, Completed | Failed)
        case StepStartPart() | StepFinishPart():
            return True
        case TextPart(time=span, message_id=message_id):
            return span is not None and span.end is not None and tally.is_answer(message_id)
        case ReasoningPart(time=span):
            return span.end is not None
        case _:
            return False
