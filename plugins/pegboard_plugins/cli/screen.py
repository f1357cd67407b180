"""Where a turn is shown: a terminal, or plain streams."""

from collections.abc import Mapping
from typing import Protocol, TextIO

from pegboard_plugins.cli.render import Line


class Screen(Protocol):
    """The answer goes to standard output, everything else to standard error."""

    is_terminal: bool
    """Whether a person sees each line when it is written."""

    def stream(self, text: str) -> None:
        """Show a piece of the answer that is still being written."""
        ...

    def answer(self, text: str, *, streamed: str) -> None:
        """Show a complete block of the answer; `streamed` is what was shown of it before."""
        ...

    def line(self, line: Line) -> None:
        """Show one line about the work."""
        ...

    def question(self, text: str) -> None:
        """Show a question, with the cursor behind it."""
        ...

    def wait(self, text: str) -> None:
        """Show that something is going on, until something else is shown."""
        ...

    def close(self) -> None:
        """Leave the screen in order."""
        ...


def open_screen(out: TextIO, err: TextIO, env: Mapping[str, str]) -> Screen:
    """The screen for these streams: a terminal only where both are one."""
    if out.isatty() and err.isatty() and env.get("TERM") != "dumb":
        from pegboard_plugins.cli.terminalscreen import TerminalScreen  # most runs have none

        return TerminalScreen(out, err, colours=wants_colours(env))
    return PlainScreen(out, err)


def wants_colours(env: Mapping[str, str]) -> bool:
    """Whether colours are welcome on a terminal: `NO_COLOR`, when not empty, says no."""
    return not env.get("NO_COLOR")


class PlainScreen:
    """Streams that may be files or pipes: whole blocks, no colour, the answer as it is.

    A block is written when it is complete, so that it is the text that the filters left.
    """

    is_terminal = False

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def stream(self, text: str) -> None:
        """Nothing: the block comes when it is complete."""

    def answer(self, text: str, *, streamed: str) -> None:  # noqa: ARG002 - the protocol's
        """Write the block, ended by a line break."""
        self._out.write(text if text.endswith("\n") else text + "\n")
        self._out.flush()

    def line(self, line: Line) -> None:
        """Write the line."""
        self._err.write(line.plain() + "\n")
        self._err.flush()

    def question(self, text: str) -> None:
        """Write the question."""
        self._err.write(text)
        self._err.flush()

    def wait(self, text: str) -> None:
        """Nothing: a file has no use for a spinner."""

    def close(self) -> None:
        """Nothing is left to do."""
