"""The two ways to report a prompt: to a person, and as JSON records to a program."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TextIO

import msgspec

from pegboard.cli import Exit, visible
from pegboard.kit import Block
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.wire import to_json
from pegboard_plugins.cli.records import Records
from pegboard_plugins.cli.render import Line, usage_line
from pegboard_plugins.cli.screen import Screen
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.viewer import Viewer


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a prompt ended: `text` is the last answer, `error` says what failed.

    `sandbox` is how tightly the processes of tools were enclosed, as far as that is known, and
    `hosts` what they reached of the network, where there is a list.
    """

    exit: Exit
    text: str = ""
    error: str = ""
    sandbox: str = ""
    hosts: tuple[str, ...] = ()


class View(Protocol):
    """Where a prompt's course and its end are reported."""

    def begin(self, tally: Tally, directory: Path) -> None:
        """The session is known; `tally` is told each event before it is shown."""
        ...

    @property
    def width(self) -> int:
        """The columns for the blocks of tool calls; 0 where none is shown."""
        ...

    def drawn(self, part_id: str, block: Block) -> None:
        """The block of a call that has ended, before the event that says so."""
        ...

    def show(self, event: Event) -> None:
        """An event of the App."""
        ...

    def show_quiet(self) -> None:
        """No event has come for a while."""
        ...

    def warn(self, text: str) -> None:
        """Something that the user should know."""
        ...

    def note(self, line: Line) -> None:
        """A line about where the work is done."""
        ...

    def has_shown(self, error: str) -> bool:
        """Whether the reader has seen all of this by now, as the outcome of the last call."""
        ...

    def end(self, result: Result) -> None:
        """The end, whatever it is; called exactly once."""
        ...


class TextView:
    """For a person: the answer on stdout, the work, the costs and the errors on stderr."""

    def __init__(self, screen: Screen, *, thinking: bool = False) -> None:
        self.screen = screen
        self._thinking = thinking
        self._started = monotonic()
        self._tally: Tally | None = None
        self._viewer: Viewer | None = None

    def begin(self, tally: Tally, directory: Path) -> None:
        """Show from here on."""
        self._tally = tally
        self._viewer = Viewer(self.screen, tally, directory, thinking=self._thinking)

    @property
    def width(self) -> int:
        """The terminal's columns."""
        return shutil.get_terminal_size().columns

    def drawn(self, part_id: str, block: Block) -> None:
        """Keep the block for the event."""
        if self._viewer:
            self._viewer.drawn(part_id, block)

    def show(self, event: Event) -> None:
        """Show the event."""
        if self._viewer:
            self._viewer.show(event)
        elif isinstance(event.properties, PluginFailed):
            self.warn(event.properties.message)

    def show_quiet(self) -> None:
        """Show a spinner."""
        if self._viewer:
            self._viewer.show_quiet()

    def warn(self, text: str) -> None:
        """Show the warning."""
        line = visible(text).replace("\n", "\\n")  # names of a project's files stand in it
        self.screen.line(Line(head="warning:", text=line, style="warning"))

    def note(self, line: Line) -> None:
        """Show the line."""
        self.screen.line(line)

    def has_shown(self, error: str) -> bool:
        """Whether the last call was shown with it."""
        return self._viewer is not None and self._viewer.last_detail == " ".join(error.split())

    def end(self, result: Result) -> None:  # noqa: ARG002 - the protocol's
        """Show what the prompt cost, where something was sent."""
        if self._tally and self._tally.is_answered:
            seconds = monotonic() - self._started
            tally = self._tally
            line = usage_line(tally.cost, tally.tokens, steps=tally.steps, seconds=seconds)
            self.screen.line(line)
        self.screen.close()


class JsonView:
    """For a program: a record for each thing that happened, and one `result` at the end."""

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
        """None: a program reads what the call answered."""
        return 0

    def drawn(self, part_id: str, block: Block) -> None:
        """Nothing: no block is asked for."""

    def show(self, event: Event) -> None:
        """Write the event's record, if it has one."""
        self._records.show(event)

    def show_quiet(self) -> None:
        """Nothing: a program needs no spinner."""

    def warn(self, text: str) -> None:
        """Write a `warning` record."""
        self._records.write("warning", {"message": text})

    def note(self, line: Line) -> None:
        """Write a `note` record."""
        self._records.write("note", {"message": line.plain().strip()})

    def has_shown(self, error: str) -> bool:  # noqa: ARG002 - the protocol's
        """No: records are for a program."""
        return False

    def end(self, result: Result) -> None:
        """Write the `result` record."""
        self._records.write("result", result_facts(result, self._tally))


def result_facts(result: Result, tally: Tally) -> Mapping[str, Any]:
    """What the `result` record says beside its envelope; `error` is there when something failed."""
    facts: dict[str, Any] = {
        "outcome": result.exit.outcome,
        "exit_code": int(result.exit),
        "cost": tally.cost,
        "tokens": to_json(tally.tokens),
        "text": result.text,
    }
    if result.sandbox:
        facts["sandbox"] = result.sandbox
    if result.hosts:
        facts["sandbox_hosts"] = result.hosts
    if tally.failure is not None:
        facts["error"] = to_json(tally.failure)
    elif result.error:
        facts["error"] = {"name": "Error", "data": {"message": result.error}}
    return facts
