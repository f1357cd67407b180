"""The output of a turn as JSON lines for programs, one record per line."""

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any, TextIO

from msgspec import UNSET

from pegboard.display import Block
from pegboard.schema.event import (
    Event,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    PluginFailed,
    QuestionAsked,
    SessionFailed,
    SessionStatusChanged,
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
from pegboard.schema.session import Retry
from pegboard.schema.wire import to_json
from pegboard_plugins.cli.jsontext import as_json
from pegboard_plugins.cli.render import Line, open_screen
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.views import RunResult, TextView

_MS_PER_S = 1000


class Records:
    """A writer of records `{type, timestamp, sessionID, …}`; `timestamp` is in milliseconds."""

    def __init__(self, out: TextIO, tally: Tally) -> None:
        self._out = out
        self._tally = tally
        self._written: set[str] = set()

    def show(self, event: Event) -> None:
        """Write the records of an event; of a subagent's events, only warnings and retries."""
        depth = self._tally.depth(event.session_id)
        warning = isinstance(event.properties, SessionWarned | SessionStatusChanged)
        warned = warning and depth is not None
        if warned or isinstance(event.properties, PluginFailed) or depth == 0:
            for kind, facts in record_of(event, self._tally):
                if self._is_new(event):
                    self.write(kind, facts)

    def _is_new(self, event: Event) -> bool:
        """Return whether the event's part has no record yet; a snapshot may change a part later."""
        if not isinstance(event.properties, PartUpdated):
            return True
        part_id = event.properties.part.id
        known = part_id in self._written
        self._written.add(part_id)
        return not known

    def write(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Write one record, and flush the output."""
        envelope = {
            "type": kind,
            "timestamp": int(time() * _MS_PER_S),
            "sessionID": self._tally.session_id,
        }
        self._out.write(as_json({**envelope, **facts}) + "\n")
        self._out.flush()


class JsonView:
    """The view for programs: one JSON record per event, and a `result` record at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._tally = Tally("")
        self._records = Records(out, self._tally)

    def begin(self, tally: Tally, directory: Path) -> None:  # noqa: ARG002 - the protocol's
        """Begin to write records of this session."""
        self._tally = tally
        self._records = Records(self._out, tally)

    @property
    def width(self) -> int:
        """The width 0, so that no tool call is formatted for display."""
        return 0

    @property
    def is_live(self) -> bool:
        """False: each record is written once, when its part of the answer is complete."""
        return False

    def take_block(self, part_id: str, block: Block) -> None:
        """Do nothing, because programs read a tool's unformatted result."""

    def show(self, event: Event) -> None:
        """Write the event's records."""
        self._records.show(event)

    def show_quiet(self) -> None:
        """Do nothing: JSON output has no spinner."""

    def warn(self, text: str) -> None:
        """Write a `warning` record."""
        self._records.write("warning", {"message": text})

    def note(self, line: Line) -> None:
        """Write a `note` record."""
        self._records.write("note", {"message": line.plain().strip()})

    def has_shown(self, error: str) -> bool:  # noqa: ARG002 - the protocol's
        """Return False, because a program reads errors in the `result` record."""
        return False

    def end(self, result: RunResult) -> None:
        """Write the `result` record."""
        self._records.write("result", result_facts(result, self._tally))


class ValueView(TextView):
    """The view of a run with `--schema`: the JSON value on `out`, everything else on stderr."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(open_screen(io.StringIO(), sys.stderr, os.environ))
        self._out = out

    def end(self, result: RunResult) -> None:
        """Write the answer's JSON value, if the answer matches the schema."""
        super().end(result)
        if result.structured is not UNSET:
            self._out.write(f"{as_json(result.structured)}\n")


class ResultView(TextView):
    """The view that writes only the `result` record on `out`, and everything else on stderr."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(open_screen(io.StringIO(), sys.stderr, os.environ))
        self._records = JsonView(out)

    def begin(self, tally: Tally, directory: Path) -> None:
        """Begin to show events and to count usage."""
        super().begin(tally, directory)
        self._records.begin(tally, directory)

    def end(self, result: RunResult) -> None:
        """Write the `result` record, however the run ended."""
        super().end(result)
        self._records.end(result)


def result_facts(result: RunResult, tally: Tally) -> Mapping[str, Any]:
    """Return the fields of a `result` record; `error` is included if something failed."""
    facts: dict[str, Any] = {
        "outcome": result.exit.outcome,
        "exit_code": int(result.exit),
        "cost": tally.cost,
        "tokens": to_json(tally.tokens),
        "text": result.text,
    }
    if result.structured is not UNSET:
        facts["structured"] = result.structured
    if result.sandbox:
        facts["sandbox"] = result.sandbox
    if result.hosts:
        facts["sandbox_hosts"] = result.hosts
    if tally.failure is not None:
        facts["error"] = to_json(tally.failure)
    elif result.error:
        facts["error"] = {"name": "Error", "data": {"message": result.error}}
    return facts


def record_of(event: Event, tally: Tally) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the type and the fields of an event's record; () if the event has no record."""
    kind, facts = "", dict[str, Any]()
    match event.properties:
        case PartUpdated(part=part) if _is_complete(part, tally):
            kind, facts = part_type(part), {"part": to_json(part)}
        case SessionFailed(error=error) if error is not None:
            kind, facts = "error", {"error": to_json(error)}
        case SessionStatusChanged(session_id=waiting, status=Retry() as status):
            facts = {"attempt": status.attempt, "message": status.message, "next": status.next}
            kind, facts = "retry", {**facts, "waiting": waiting}
        case PermissionAsked() | QuestionAsked() as asked:
            kind = "permission_asked" if isinstance(asked, PermissionAsked) else "question_asked"
            facts = {"request": to_json(asked.request)}
        case PermissionReplied(request_id=request_id, reply=reply):
            kind, facts = "permission_replied", {"requestID": request_id, "reply": reply}
        case PluginFailed() | SessionWarned() as warned:
            kind = "plugin_error" if isinstance(warned, PluginFailed) else "warning"
            facts = to_json(warned)
        case _:
            pass
    return ((kind, facts),) if kind else ()


def part_type(part: Part) -> str:
    """Return the record type of a part, such as `tool_use`, `step_start` or `text`."""
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
