"""A terminal that shows a turn, with colours and a spinner."""

import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from pegboard.display import escape_controls
from pegboard_plugins.cli.render import Line, Style
from pegboard_plugins.shared.terminal import PALETTE, MarkdownBlocks

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from pegboard_plugins.shared.terminal import Pen

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


class TerminalScreen:
    """A terminal: Markdown as it is finished, colours, and a spinner while nothing else moves."""

    is_terminal = True

    def __init__(self, out: TextIO, err: TextIO, *, colours: bool) -> None:
        self._out = out
        self._err = err
        self._colours = colours
        self._console: Console | None = None
        self._pen: Pen | None = None
        self._markdown = MarkdownBlocks()
        self._blocks = 0
        self._status: Status | None = None
        self._at_line_start = True
        self._is_answer: bool | None = None

    def stream(self, text: str) -> None:
        """Write the paragraphs, lists and pieces of code that are finished with it."""
        self._turn_to(is_answer=True)
        self._write_blocks(self._markdown.feed(text))

    def answer(self, text: str, *, streamed: str) -> None:
        """Write what is missing of the block, or all of it when a filter has changed it."""
        self._turn_to(is_answer=True)
        seen = streamed.rstrip()
        if text.startswith(seen):
            self._write_blocks(self._markdown.feed(text[len(streamed) :]))
        else:
            self._markdown = MarkdownBlocks()
            if self._blocks:
                self.line(Line(text="changed by a plugin:", style="dim"))
                self._turn_to(is_answer=True)
            self._write_blocks(self._markdown.feed(text))
        self._write_blocks(self._markdown.flush())
        self._blocks = 0

    def line(self, line: Line) -> None:
        """Write the line in its style."""
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
                text.append(span.text, style=self._style(PALETTE[span.style]))
        else:
            text.append(line.text, style=style)
        self._open_console().print(text, soft_wrap=True)

    def question(self, text: str) -> None:
        """Write the question; the user's line break ends its line."""
        self._stop_spinner()
        self._end_line()
        self._err.write(text)
        self._err.flush()

    def wait(self, text: str) -> None:
        """Turn the spinner on, but never over an unfinished line."""
        if not self._at_line_start:
            return
        if self._status is None:
            console = self._open_console()
            self._status = console.status(escape_controls(text), spinner_style=self._style("dim"))
            self._status.start()
        else:
            self._status.update(escape_controls(text))

    def close(self) -> None:
        """Take the spinner away and end what was begun."""
        self._stop_spinner()
        self._write_blocks(self._markdown.flush())
        self._end_line()

    def _style(self, style: str) -> str:
        return style if self._colours else ""

    def _turn_to(self, *, is_answer: bool) -> None:
        """Set the answer and the work apart by an empty line."""
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
        """Rich's Markdown, loaded with the first block that is finished."""
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
        """Load Rich for the first line: the request is on its way by then."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=self._err, no_color=not self._colours, highlight=False, markup=False
            )
        return self._console
