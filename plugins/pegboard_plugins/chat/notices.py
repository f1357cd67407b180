"""Notices for a user who does not look at the terminal when it is their turn."""

from prompt_toolkit.output import Output

_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_BELL = "\a"


class Notices:
    """A bell and a notification (OSC 9), only while the terminal is not looked at."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.focused = True

    def begin(self) -> None:
        """Ask the terminal to report its focus (DEC private mode 1004)."""
        self._output.write_raw(_FOCUS_ON)
        self._output.flush()

    def end(self) -> None:
        """Ask no more."""
        self._output.write_raw(_FOCUS_OFF)
        self._output.flush()

    def active(self) -> None:
        """Note a key press, which means that a user looks."""
        self.focused = True

    def asked(self) -> None:
        """Something waits for an answer."""
        self._tell("Pegboard asks for permission, or has a question")

    def rested(self) -> None:
        """Notify the user that the turn is over."""
        self._tell("Pegboard is ready")

    def _tell(self, text: str) -> None:
        if not self.focused:
            self._output.write_raw(f"\x1b]9;{text}{_BELL}{_BELL}")
            self._output.flush()
