"""A turn as JSON lines, one record per line, for programs."""

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
    """Writes `{type, timestamp, sessionID, …}` records; `timestamp` is in milliseconds."""

    def __init__(self, out: TextIO, tally: Tally) -> None:
        self._out = out
        self._tally = tally
        self._written: set[str] = set()

    def show(self, event: Event) -> None:
        """Write the record of the event, if it has one; of subagents warnings and waits have."""
        depth = self._tally.depth(event.session_id)
        warning = isinstance(event.properties, SessionWarned | SessionStatusChanged)
        warned = warning and depth is not None
        if warned or isinstance(event.properties, PluginFailed) or depth == 0:
            for kind, facts in record_of(event, self._tally):
                if self._is_new(event):
                    self.write(kind, facts)

    def _is_new(self, event: Event) -> bool:
        """Return whether it is the first record of its part: a snapshot may change one later."""
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


class JsonView:
    """The view for a program: a record per event, and one `result` at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._tally = Tally("")
        self._records = Records(out, self._tally)

    def begin(self, tally: Tally, directory: Path) -> None:  # noqa: ARG002 - the protocol's
        """Write records of this session from here on."""
        self._tally = tally
        self._records = Records(self._out, tally)

    @property
    def width(self) -> int:
        """No width: a program reads the answers of calls."""
        return 0

    @property
    def is_live(self) -> bool:
        """No: a record cannot be taken back."""
        return False

    def take_block(self, part_id: str, block: Block) -> None:
        """Ignore the block: a program does not read it."""

    def show(self, event: Event) -> None:
        """Write the event's record, if it has one."""
        self._records.show(event)

    def show_quiet(self) -> None:
        """Show no spinner to a program."""

    def warn(self, text: str) -> None:
        """Write a `warning` record."""
        self._records.write("warning", {"message": text})

    def note(self, line: Line) -> None:
        """Write a `note` record."""
        self._records.write("note", {"message": line.plain().strip()})

    def has_shown(self, error: str) -> bool:  # noqa: ARG002 - the protocol's
        """No: records are for a program."""
        return False

    def end(self, result: RunResult) -> None:
        """Write the `result` record."""
        self._records.write("result", result_facts(result, self._tally))


class ValueView(TextView):
    """For an answer by a schema: the value on `out`, all else on stderr."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(open_screen(io.StringIO(), sys.stderr, os.environ))
        self._out = out

    def end(self, result: RunResult) -> None:
        """Write the value, if the answer fits."""
        super().end(result)
        if result.structured is not UNSET:
            self._out.write(f"{as_json(result.structured)}\n")


class ResultView(TextView):
    """For the `result` record alone on `out`, all else on stderr."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(open_screen(io.StringIO(), sys.stderr, os.environ))
        self._records = JsonView(out)

    def begin(self, tally: Tally, directory: Path) -> None:
        """Show and count from here on."""
        super().begin(tally, directory)
        self._records.begin(tally, directory)

    def end(self, result: RunResult) -> None:
        """Write the record, however the run ended."""
        super().end(result)
        self._records.end(result)


def result_facts(result: RunResult, tally: Tally) -> Mapping[str, Any]:
    """Return the facts of a `result` record; `error` is among them when something failed."""
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
    """Return the type and the facts of an event's record; empty when it has none."""
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
    """Return the record's type for a part: `tool_use`, `step_start`, `text` and so on."""
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
