"""The output of a turn as lines of text, on a terminal or plain streams."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

import msgspec

import pegboard.display
import pegboard.unstable
from pegboard.display import Block, Span, escape_controls
from pegboard.schema.message import Failure
from pegboard.schema.model import format_usd
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Retry, Tokens
from pegboard_plugins.shared import terminal
from pegboard_plugins.shared.terminal import UNKNOWN_COST, cost_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from pegboard_plugins.shared.terminal import Pen

Style = Literal[
    "plain", "tool", "dim", "error", "warning", "added", "removed", "hunk", "done", "active"
]

_STYLES: dict[Style, str] = {
    "plain": "",
    "tool": "cyan",
    "dim": "dim",
    "error": "red",
    "warning": "yellow",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
    "done": "green",
    "active": "bold",
}
DIFF_LINES = 60
"""The maximum number of lines of a diff; `git diff` has all of them."""
LABEL_WIDTH = 100
FAILURE_WIDTH = 500


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of output: an emphasised `head`, then either `text` or the coloured `spans`."""

    text: str = ""
    head: str = ""
    style: Style = "plain"
    indent: int = 0
    spans: tuple[Span, ...] = ()

    def plain(self) -> str:
        """Return the line without colours."""
        text = pegboard.display.plain_line(self.spans) if self.spans else self.text
        return ("  " * self.indent + (f"{self.head} {text}" if self.head else text)).rstrip(" ")


def one_line(text: str, width: int = LABEL_WIDTH) -> str:
    """Return the first line of a text, cut at `width` letters; an ellipsis marks omitted text."""
    return escape_controls(pegboard.unstable.one_line(text, width))


def tool_head(part: ToolPart, directory: Path, *, indent: int = 0) -> Line:
    """Return the heading of a tool call: the tool and its subject."""
    return Line(
        head=escape_controls(part.tool), text=_subject(part, directory), style="tool", indent=indent
    )


def tool_detail(part: ToolPart, block: Block | None = None, *, indent: int = 0) -> tuple[Line, ...]:
    """Return the lines that show an ended tool call, without the words of the call's heading."""
    if not isinstance(part.state, Completed | Failed):
        return ()
    drawn = block or pegboard.display.default_block(part)
    return (
        *_addition(drawn.title, pegboard.unstable.subject_of(part.state.input), indent),
        *_body(drawn, indent),
    )


def _addition(title: str, subject: str, indent: int) -> tuple[Line, ...]:
    """Return a line with the rest of a display's title after `subject`; () if there is no rest."""
    more = title.removeprefix(subject).lstrip(" ·") if title.startswith(subject) else ""
    return (Line(text=escape_controls(more), style="dim", indent=indent),) if more else ()


def _body(block: Block, indent: int) -> tuple[Line, ...]:
    if not block.fold:
        return ()
    lines = pegboard.unstable.with_note(pegboard.unstable.block_lines(block))
    return tuple(Line(spans=line, indent=indent) for line in lines)


def tail(
    text: str, *, limit: int, style: Style = "dim", indent: int = 0, from_end: bool = True
) -> tuple[Line, ...]:
    """Return the last or first `limit` lines of a text, and a line that counts the others."""
    lines = escape_controls(text).strip("\n").split("\n") if text.strip() else []
    left_out = len(lines) - limit
    shown = (lines[-limit:] if from_end else lines[:limit]) if left_out > 0 else lines
    body = [Line(text=line.rstrip(), style=style, indent=indent) for line in shown]
    if left_out > 0:
        note = Line(
            text=f"… {pegboard.unstable.counted(left_out, 'more line')}",
            style="dim",
            indent=indent,
        )
        body.insert(0 if from_end else len(body), note)
    return tuple(body)


def diff_lines(diff: str, *, limit: int = DIFF_LINES, indent: int = 0) -> tuple[Line, ...]:
    """Return a unified diff with line numbers and marked changes, in at most `limit` lines."""
    return _body(Block(diff=diff, fold=max(limit, 1)), indent)


def whole_diff(diff: str, *, indent: int = 0) -> tuple[Line, ...]:
    """Return all lines of a diff, without cuts."""
    lines = pegboard.unstable.block_lines(Block(diff=diff), "whole").lines
    return tuple(Line(spans=line, indent=indent) for line in lines)


def failure_text(failure: Failure) -> str:
    """Return the failure of a turn on one line, cut if it is long."""
    message = failure.data.message or type(failure).__name__
    text = " ".join(escape_controls(message).split())
    return text if len(text) <= FAILURE_WIDTH else f"{text[: FAILURE_WIDTH - 1]}…"


def retry_line(status: Retry, *, now_ms: int, indent: int = 0) -> Line:
    """Return a line with the time of the next attempt, and the reason for it."""
    wait_s = max(0, round((status.next - now_ms) / 1000))
    text = f"in {wait_s} s (attempt {status.attempt + 1}): {one_line(status.message)}"
    return Line(head="Retrying", text=text, style="warning", indent=indent)


def usage_line(
    cost: float | None, tokens: Tokens, known_cost: float = 0.0, *, steps: int, seconds: float
) -> Line:
    """Return a line about a turn's usage; cached tokens count as input, and zeros are left out.

    A `cost` of None is unknown; `known_cost` is the cost of the requests with a known cost.
    """
    read = tokens.input + tokens.cache.read + tokens.cache.write
    written = tokens.output + tokens.reasoning
    price = cost_text(known_cost, is_whole=False) if cost is None else format_usd(cost)
    facts = [f"cost {price}" if price == UNKNOWN_COST else price] if cost != 0 else []
    facts += [f"{read:,} tokens in, {written:,} out"] if read or written else []
    facts += [f"{steps:,} step{'' if steps == 1 else 's'}", f"{seconds:.1f} s"]
    return Line(text=" · ".join(facts), style="dim")


def _subject(part: ToolPart, directory: Path) -> str:
    return escape_controls(
        pegboard.unstable.subject_of(part.state.input).replace(f"{directory}/", "", 1)
    )


class OutputScreen(Protocol):
    """The output of a run: the answer on standard output, everything else on standard error."""

    is_terminal: bool
    """Whether a user sees each line when it is written."""

    def stream(self, text: str) -> None:
        """Print a chunk of the answer while the model writes the answer."""
        ...

    def answer(self, text: str, *, streamed: str) -> None:
        """Print a complete block of the answer; `streamed` is the part that was printed before."""
        ...

    def line(self, line: Line) -> None:
        """Print a line that is not part of the answer, such as a tool call's heading."""
        ...

    def question(self, text: str) -> None:
        """Print a question, with the cursor after it."""
        ...

    def wait(self, text: str) -> None:
        """Print that work is in progress, until something else is printed."""
        ...

    def close(self) -> None:
        """End an unfinished line, and remove the spinner."""
        ...


def open_screen(out: TextIO, err: TextIO, env: Mapping[str, str]) -> OutputScreen:
    """Return a `TerminalScreen` if both streams are terminals, or else a `PlainScreen`."""
    if out.isatty() and err.isatty() and env.get("TERM") != "dumb":
        return TerminalScreen(out, err, colours=wants_colours(env))
    return PlainScreen(out, err)


def wants_colours(env: Mapping[str, str]) -> bool:
    """Return whether a terminal gets colours: not if `NO_COLOR` is set and not empty."""
    return not env.get("NO_COLOR")


class PlainScreen:
    """A screen for files and pipes, which prints whole blocks of the answer without colours.

    A block is printed when it is complete, because plugins may change its text until then.
    """

    is_terminal = False

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def stream(self, text: str) -> None:
        """Do nothing, because `answer` prints each block of an answer when it is complete."""

    def answer(self, text: str, *, streamed: str) -> None:  # noqa: ARG002 - the protocol's
        """Print a block of the answer with a line break at its end."""
        self._out.write(text if text.endswith("\n") else text + "\n")
        self._out.flush()

    def line(self, line: Line) -> None:
        """Print the line without colours."""
        self._err.write(line.plain() + "\n")
        self._err.flush()

    def question(self, text: str) -> None:
        """Print the question."""
        self._err.write(text)
        self._err.flush()

    def wait(self, text: str) -> None:
        """Do nothing, because a file needs no spinner."""

    def close(self) -> None:
        """Do nothing, because a stream has nothing to restore."""


class TerminalScreen:
    """A screen for a terminal: finished Markdown blocks, colours, and a spinner."""

    is_terminal = True

    def __init__(self, out: TextIO, err: TextIO, *, colours: bool) -> None:
        self._out = out
        self._err = err
        self._colours = colours
        self._console: Console | None = None
        self._pen: Pen | None = None
        self._markdown = terminal.MarkdownBlocks()
        self._blocks = 0
        self._status: Status | None = None
        self._at_line_start = True
        self._is_answer: bool | None = None

    def stream(self, text: str) -> None:
        """Print the Markdown blocks that this chunk completes."""
        self._turn_to(is_answer=True)
        self._write_blocks(self._markdown.feed(text))

    def answer(self, text: str, *, streamed: str) -> None:
        """Print the rest of a block of the answer, or the whole block if a filter changed it."""
        self._turn_to(is_answer=True)
        seen = streamed.rstrip()
        if text.startswith(seen):
            self._write_blocks(self._markdown.feed(text[len(streamed) :]))
        else:
            self._markdown = terminal.MarkdownBlocks()
            if self._blocks:
                self.line(Line(text="changed by a plugin:", style="dim"))
                self._turn_to(is_answer=True)
            self._write_blocks(self._markdown.feed(text))
        self._write_blocks(self._markdown.flush())
        self._blocks = 0

    def line(self, line: Line) -> None:
        """Print the line in its style."""
        self._turn_to(is_answer=False)
        self._end_line()
        from rich.text import Text

        text = Text("  " * line.indent)
        style = self._style(_STYLES[line.style])
        if line.head:
            text.append(line.head, style=self._style(f"bold {style}"))
            text.append(f" {line.text}" if line.text else "")
        elif line.spans:
            for span in line.spans:
                text.append(span.text, style=self._style(terminal.PALETTE[span.style]))
        else:
            text.append(line.text, style=style)
        self._open_console().print(text, soft_wrap=True)

    def question(self, text: str) -> None:
        """Print the question; the user's line break ends its line."""
        self._stop_spinner()
        self._end_line()
        self._err.write(text)
        self._err.flush()

    def wait(self, text: str) -> None:
        """Show the spinner, unless the cursor is in an unfinished line."""
        if not self._at_line_start:
            return
        if self._status is None:
            console = self._open_console()
            self._status = console.status(escape_controls(text), spinner_style=self._style("dim"))
            self._status.start()
        else:
            self._status.update(escape_controls(text))

    def close(self) -> None:
        """Remove the spinner, and print unfinished output."""
        self._stop_spinner()
        self._write_blocks(self._markdown.flush())
        self._end_line()

    def _style(self, style: str) -> str:
        return style if self._colours else ""

    def _turn_to(self, *, is_answer: bool) -> None:
        """Switch between the answer and other output, with an empty line in between."""
        self._stop_spinner()
        if not is_answer:
            self._write_blocks(self._markdown.flush())
            self._blocks = 0
        if self._is_answer is not None and self._is_answer != is_answer:
            self._end_line()
            self._err.write("\n")
            self._err.flush()
        self._is_answer = is_answer

    def _write_blocks(self, blocks: Iterable[str]) -> None:
        for block in blocks:
            width = shutil.get_terminal_size().columns
            rows = self._open_pen().markdown(block, width)
            self._write("\n" * bool(self._blocks) + "\n".join(rows) + "\n")
            self._blocks += 1

    def _open_pen(self) -> "Pen":
        """Return the Markdown renderer, loaded for the first finished block."""
        if self._pen is None:
            from pegboard_plugins.shared.terminal import Pen

            self._pen = Pen(colours="standard" if self._colours else "none")
        return self._pen

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._at_line_start = text.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._write("\n")

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _open_console(self) -> "Console":
        """Return rich's console; rich is imported at the first line, after the request was sent."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=self._err, no_color=not self._colours, highlight=False, markup=False
            )
        return self._console
