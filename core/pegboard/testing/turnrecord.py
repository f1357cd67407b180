"""Records of a turn and of the turn's tool calls, for tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pegboard.providers import ModelRequest
from pegboard.schema.event import Event
from pegboard.schema.part import Completed, Failed, FilePart, ToolPart

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """A tool call of a turn: the call's arguments and result.

    `error` is what the model reads if the call failed, else "". `denied` says whether the call
    failed for lack of a permission.
    """

    tool: str
    input: Mapping[str, Any]
    output: str = ""
    title: str = ""
    error: str = ""
    denied: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[FilePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """The record of a turn, which a test inspects.

    - `text`: the last text of the model.
    - `error`: why the turn failed, also if that was before the model was asked; "" if it did not
      fail.
    - `failures`: the faults of the plugins under test, at load and in hooks, and of the test's
      settings. The faults of built-in plugins that are slow on this machine or cannot be loaded are
      left out.
    - `requests`: the requests to the model.
    - `events`: the published events.
    """

    text: str
    error: str
    failures: tuple[str, ...]
    cancelled: bool
    calls: tuple[CallRecord, ...]
    project: Path
    requests: tuple[ModelRequest, ...] = field(repr=False)
    events: tuple[Event, ...] = field(repr=False)

    def call(self, tool: str) -> CallRecord:
        """Return the first call of this tool.

        :raises LookupError: when there is none; the text lists the calls of the turn.
        """
        for each in self.calls:
            if each.tool == tool:
                return each
        made = ", ".join(each.tool for each in self.calls) or "none"
        raise LookupError(f"the turn has no call of {tool!r}; its calls: {made}; {self!r}")

    def events_of(self, kind: type[_T]) -> list[_T]:
        """Return the properties of the turn's events of the type `kind`, in order."""
        return [each.properties for each in self.events if isinstance(each.properties, kind)]


def call_record(part: ToolPart) -> CallRecord:
    """Return the record of a tool call."""
    state = part.state
    match state:
        case Completed():
            return CallRecord(
                tool=part.tool,
                input=state.input,
                output=state.output,
                title=state.title,
                metadata=state.metadata,
                attachments=state.attachments,
            )
        case Failed():
            facts = state.metadata or {}
            return CallRecord(
                tool=part.tool,
                input=state.input,
                error=state.error,
                denied=bool(facts.get("denied")),
                metadata=facts,
            )
        case _:
            return CallRecord(tool=part.tool, input=state.input)
