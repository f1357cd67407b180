"""Desktop notifications for a user who looks at another window."""

from prompt_toolkit.output import Output

_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_BELL = "\a"


class Notices:
    """A sender of bells and notifications (OSC 9) while the terminal does not have the focus."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.focused = True

    def begin(self) -> None:
        """Ask the terminal to report its focus (DEC private mode 1004)."""
        self._output.write_raw(_FOCUS_ON)
        self._output.flush()

    def end(self) -> None:
        """Stop the terminal's focus reports."""
        self._output.write_raw(_FOCUS_OFF)
        self._output.flush()

    def active(self) -> None:
        """Record a key press, which means that the terminal has the focus."""
        self.focused = True

    def asked(self) -> None:
        """Notify the user that a request waits for an answer."""
        self._tell("Pegboard asks for permission, or has a question")

    def rested(self) -> None:
        """Notify the user that the turn has ended."""
        self._tell("Pegboard is ready")

    def _tell(self, text: str) -> None:
        if not self.focused:
            self._output.write_raw(f"\x1b]9;{text}{_BELL}{_BELL}")
            self._output.flush()
