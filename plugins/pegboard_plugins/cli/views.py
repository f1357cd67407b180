"""The views of a prompt's events, and the view for users."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from typing import Any, Protocol

import msgspec

from pegboard.cli import Exit
from pegboard.display import Block, escape_controls
from pegboard.schema.event import (
    Event,
    MessageUpdated,
    PartDelta,
    PartRemoved,
    PartUpdated,
    PermissionReplied,
    PluginFailed,
    SessionCompacted,
    SessionStatusChanged,
    SessionWarned,
)
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import (
    Completed,
    Failed,
    Pending,
    ReasoningPart,
    Running,
    StepFinishPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import Retry
from pegboard_plugins.cli.render import (
    Line,
    OutputScreen,
    one_line,
    retry_line,
    tool_detail,
    tool_head,
    usage_line,
)
from pegboard_plugins.cli.tally import Tally

_MS_PER_S = 1000


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a prompt: `text` is the last answer, and `error` says why the prompt failed.

    `sandbox` is the sandbox level of the tools' processes, if known. `hosts` are the hosts that
    they could reach, if the sandbox has a list. `structured` is the value of an answer by a schema.
    """

    exit: Exit
    text: str = ""
    error: str = ""
    sandbox: str = ""
    hosts: tuple[str, ...] = ()
    structured: Any = msgspec.UNSET


class View(Protocol):
    """A front end's output for one prompt, which shows the events and at last the result."""

    def begin(self, tally: Tally, directory: Path) -> None:
        """Begin to show the session; `tally` counts each event before the view gets it."""
        ...

    @property
    def width(self) -> int:
        """The width of formatted tool calls in columns; 0 for a view that does not show them."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether the view shows an answer while the model writes it."""
        ...

    def take_block(self, part_id: str, block: Block) -> None:
        """Store a tool call's formatted result, before `show` gets the event of the call's end."""
        ...

    def show(self, event: Event) -> None:
        """Show an event of the App, if this view displays events of this type."""
        ...

    def show_quiet(self) -> None:
        """Show that work is in progress, because no event has come for a while."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning."""
        ...

    def note(self, line: Line) -> None:
        """Show a line about where the prompt runs, such as a worktree."""
        ...

    def has_shown(self, error: str) -> bool:
        """Return whether the view has shown this error as the result of the last call."""
        ...

    def end(self, result: RunResult) -> None:
        """Show the result and end the view, however the run ended; called exactly once."""
        ...


class TextView:
    """The view for users: the answer on stdout; tool calls, costs and errors on stderr."""

    def __init__(self, screen: OutputScreen, *, thinking: bool = False) -> None:
        self.screen = screen
        self._thinking = thinking
        self._started = monotonic()
        self._tally: Tally | None = None
        self._viewer: Viewer | None = None

    def begin(self, tally: Tally, directory: Path) -> None:
        """Begin to show the session's events."""
        self._tally = tally
        self._viewer = Viewer(self.screen, tally, directory, thinking=self._thinking)

    @property
    def width(self) -> int:
        """The terminal's width in columns."""
        return shutil.get_terminal_size().columns

    @property
    def is_live(self) -> bool:
        """Whether the output is a terminal."""
        return self.screen.is_terminal

    def take_block(self, part_id: str, block: Block) -> None:
        """Store a tool call's formatted result, before `show` gets the event of the call's end."""
        if self._viewer:
            self._viewer.take_block(part_id, block)

    def show(self, event: Event) -> None:
        """Show the event."""
        if self._viewer:
            self._viewer.show(event)
        elif isinstance(event.properties, PluginFailed):
            self.warn(event.properties.message)

    def show_quiet(self) -> None:
        """Show a spinner with the running tools."""
        if self._viewer:
            self._viewer.show_quiet()

    def warn(self, text: str) -> None:
        """Print the warning."""
        line = escape_controls(text).replace("\n", "\\n")  # names of a project's files stand in it
        self.screen.line(Line(head="warning:", text=line, style="warning"))

    def note(self, line: Line) -> None:
        """Show the line."""
        self.screen.line(line)

    def has_shown(self, error: str) -> bool:
        """Return whether the last call's result was this error."""
        return self._viewer is not None and self._viewer.last_detail == " ".join(error.split())

    def end(self, result: RunResult) -> None:  # noqa: ARG002 - the protocol's
        """Show the usage of the prompt, if a model has answered."""
        if self._tally and self._tally.is_answered:
            seconds, tally = monotonic() - self._started, self._tally
            used = tally.cost, tally.tokens, tally.known_cost
            self.screen.line(usage_line(*used, steps=tally.steps, seconds=seconds))
        self.screen.close()


class SettledTexts:
    """A buffer of completed texts and reasoning, until the model request behind them succeeds.

    A request succeeds when one of its tools runs, or when its step or message ends. The engine
    removes the parts of a failed request, and their events are then dropped here.
    """

    def __init__(self) -> None:
        self._held: dict[str, Event] = {}

    def settle(self, event: Event) -> Iterator[Event]:
        """Yield the events that may be shown now, in order."""
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
        """Yield all held events, because no event follows."""
        yield from self._held.values()
        self._held.clear()

    def _of(self, message_id: str) -> Iterator[Event]:
        for part_id, event in list(self._held.items()):
            held = event.properties
            if isinstance(held, PartUpdated) and held.part.message_id == message_id:
                yield self._held.pop(part_id)


class Viewer:
    """A viewer that turns the events of a session and its subagents into lines on a screen.

    Calls of subagents are indented. Texts of subagents are left out, because the result of the
    tool `task` contains the answer. Parallel calls are shown one after the other.

    `last_detail` is the displayed output of the last call, joined to one line. On a terminal,
    reasoning is shortened to one line, except with `thinking`.
    """

    def __init__(
        self, screen: OutputScreen, tally: Tally, directory: Path, *, thinking: bool = False
    ) -> None:
        self._screen = screen
        self._thinking = thinking
        self._thoughts: set[str] = set()
        self._calls: dict[str, list[ToolPart]] = {}
        self._tally = tally
        self._directory = directory
        self._streamed: dict[str, str] = {}
        self._texts: set[str] = set()
        self._named: set[str] = set()
        self._last_head = ""
        self._failures: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self.last_detail = ""

    def take_block(self, part_id: str, block: Block) -> None:
        """Store a tool call's formatted result, before `show` gets the event of the call's end."""
        self._blocks[part_id] = block

    def show(self, event: Event) -> None:
        """Show the event, if it belongs to this turn."""
        if isinstance(event.properties, PluginFailed):
            self._show_plugin_failure(event.properties)
            return
        depth = self._tally.depth(event.session_id)
        if depth is None:
            return
        match event.properties:
            case PartUpdated(part=ToolPart() as part):
                self._show_call(part, depth)
            case SessionStatusChanged(session_id=session_id, status=Retry() as status):
                self._name_caller(session_id, depth)
                now_ms = int(time() * _MS_PER_S)
                self._screen.line(retry_line(status, now_ms=now_ms, indent=depth))
            case SessionWarned(message=message):
                self._screen.line(
                    Line(head="warning:", text=escape_controls(message), style="warning")
                )
            case _ if depth == 0:
                self._show_own(event)
            case _:
                pass

    def show_quiet(self) -> None:
        """Show a spinner with the running tools, because no event has come for a while."""
        rows = (part for row in self._calls.values() for part in row)
        names = sorted({part.tool for part in rows if isinstance(part.state, Running)})
        self._screen.wait(", ".join(names) if names else "thinking")

    def _show_own(self, event: Event) -> None:
        match event.properties:
            case PartDelta() as delta:
                self._stream(delta)
            case PartUpdated(part=TextPart() as part):
                self._show_text(part)
            case PartUpdated(part=ReasoningPart() as part):
                self._show_thought(part)
            case PartRemoved(part_id=part_id):
                self._forget_call(part_id)
                if self._streamed.pop(part_id, "") or part_id in self._texts:
                    self._note("the answer broke off and starts again")
            case SessionCompacted():
                self._note("compacted: a summary replaces the history")
            case PermissionReplied(reply="reject"):
                self._note("rejected")
            case _:
                pass

    def _stream(self, delta: PartDelta) -> None:
        if delta.field != "text" or delta.part_id not in self._streamed:
            return
        self._streamed[delta.part_id] += delta.delta
        self._last_head = ""
        self._screen.stream(delta.delta)

    def _show_text(self, part: TextPart) -> None:
        if not self._tally.is_answer(part.message_id) or part.synthetic:
            return
        streamed = self._streamed.setdefault(part.id, "")
        if part.time is None or part.time.end is None:
            self._stream_rest(part, streamed)
            return
        self._last_head = ""
        del self._streamed[part.id]
        if part.text.strip():
            self._texts.add(part.id)
            self._screen.answer(part.text, streamed=streamed)

    def _stream_rest(self, part: TextPart, streamed: str) -> None:
        """Print the end of a text that the streamed deltas lack, as after a lost event."""
        if part.text.startswith(streamed) and part.text != streamed:
            self._streamed[part.id] = part.text
            self._screen.stream(part.text[len(streamed) :])

    def _show_thought(self, part: ReasoningPart) -> None:
        """Show the model's complete reasoning, once."""
        text = part.text.strip()
        if part.time.end is None or part.id in self._thoughts or not text:
            return
        self._thoughts.add(part.id)
        seconds = (part.time.end - part.time.start) / _MS_PER_S
        if self._thinking:
            self._screen.line(Line(head="thought", text=f"for {seconds:.1f} s", style="dim"))
            for line in escape_controls(text).split("\n"):
                self._screen.line(Line(text=line.rstrip(), style="dim", indent=1))
        elif self._screen.is_terminal:
            folded = f"for {seconds:.1f} s: {one_line(text)}"
            self._screen.line(Line(head="thought", text=folded, style="dim"))

    def _show_call(self, part: ToolPart, depth: int) -> None:
        """Show a tool call, or wait with a parallel call until the call on the screen has ended."""
        row = self._calls.setdefault(part.session_id, [])
        if isinstance(part.state, Pending):
            return
        place = next((at for at, each in enumerate(row) if each.id == part.id), None)
        if place is None:
            self._name_caller(part.session_id, depth)
            row.append(part)
            if len(row) == 1 and isinstance(part.state, Running):
                self._show_head(part, depth)
        else:
            row[place] = part
        while row and isinstance(row[0].state, Completed | Failed):
            self._show_end(row.pop(0), depth)
            if row and isinstance(row[0].state, Running):
                self._show_head(row[0], depth)

    def _name_caller(self, session_id: str, depth: int) -> None:
        """Show the heading of the call that runs this subagent, before the subagent's calls."""
        for part in [part for row in self._calls.values() for part in row]:
            match part.state:
                case Running(metadata={"sessionId": child}) if child == session_id:
                    if part.id not in self._named:
                        self._show_head(part, depth - 1)
                case _:
                    pass

    def _show_head(self, part: ToolPart, depth: int) -> None:
        self._screen.line(tool_head(part, self._directory, indent=depth))
        self._named.add(part.id)
        self._last_head = part.id

    def _show_end(self, part: ToolPart, depth: int) -> None:
        detail = tool_detail(part, self._blocks.pop(part.id, None), indent=depth + 1)
        if part.id not in self._named or (detail and self._last_head != part.id):
            self._show_head(part, depth)
        for line in detail:
            self._screen.line(line)
        if detail:
            self._last_head = ""
            self.last_detail = " ".join(word for line in detail for word in line.plain().split())

    def _forget_call(self, part_id: str) -> None:
        """Forget a tool call that never ran, because the model's answer broke off."""
        for row in self._calls.values():
            row[:] = [each for each in row if each.id != part_id]

    def _show_plugin_failure(self, failure: PluginFailed) -> None:
        text = escape_controls(failure.message).removeprefix("plugin ")
        if text in self._failures:
            return
        self._failures.add(text)
        self._screen.line(Line(head="plugin", text=" ".join(text.split()), style="warning"))

    def _note(self, text: str) -> None:
        self._screen.line(Line(text=f"({text})", style="dim"))
