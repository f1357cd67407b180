"""The terminal's input: keys, reports, and unknown sequences."""

import re
import termios
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input, raw_mode
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

ASK_BACKGROUND = "\x1b]11;?\x1b\\"
"""The sequence that requests a report of the background colour (xterm's OSC 11)."""
_SEQUENCE = re.compile(
    r"\x1b\[\[[A-E]"  # the console of Linux
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI (ECMA-48, 5.4)
    r"|\x1b\]([^\x07\x1b]*)(?:\x07|\x1b\\)"  # OSC
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)\Z")
_NEW_LINES = ("\x1b[13;2u", "\x1b[27;2;13~")
"""The sequences of Shift+Enter, in kitty's protocol and in xterm's modifyOtherKeys."""
_PASTE_END = "\x1b[201~"
_COLOUR = re.compile(r"11;rgb:([0-9a-f]+)/([0-9a-f]+)/([0-9a-f]+)", re.IGNORECASE)
_WEIGHTS = (0.2126, 0.7152, 0.0722)
"""The weights of red, green and blue in the perceived brightness (ITU-R BT.709)."""
_AT_ONCE = (Keys.ControlC, Keys.ControlD, Keys.ControlZ)
"""The keys that leave or suspend the chat, whatever other keys mean."""
_KEYS_WAIT = ContextVar("_KEYS_WAIT", default=False)


@contextmanager
def keys_wait() -> Iterator[None]:
    """Keep typed keys unread and unechoed while this task runs another program on the terminal."""
    token = _KEYS_WAIT.set(True)
    try:
        yield
    finally:
        _KEYS_WAIT.reset(token)


class TerminalInput(Vt100Input):
    """The keys of a terminal; `on_background` gets True if the terminal's background is light."""

    def __init__(self, stdin: TextIO, on_background: Callable[[bool], None]) -> None:
        super().__init__(stdin)
        self.vt100_parser = _Parser(self._buffer_key, on_background)
        self._holds = True
        self._held: list[KeyPress] = []

    def presses(self, content: bytes) -> list[KeyPress]:
        """Parse keys that were read from the terminal elsewhere."""
        self.vt100_parser.feed(content.decode("utf-8", "surrogateescape"))
        presses, self._buffer = self._buffer, []
        return presses

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Return a context in which another program uses the terminal."""
        return _WaitingKeys(self.fileno()) if _KEYS_WAIT.get() else super().cooked_mode()

    def release(self) -> list[KeyPress]:
        """Stop the delay of keys; return the delayed keys: the first Escape and all keys after it.

        Until the configuration is loaded, the meaning of Escape is unknown: it may be a vi command.
        """
        self._holds, held, self._held = False, self._held, []
        return held

    def _buffer_key(self, press: KeyPress) -> None:
        is_held = self._holds and (bool(self._held) or press.key == Keys.Escape)
        (self._held if is_held and press.key not in _AT_ONCE else self._buffer).append(press)


class _WaitingKeys(raw_mode):
    """A terminal mode that keeps typed keys for the next reader; Ctrl-C and Ctrl-Z send signals."""

    @classmethod
    def _patch_lflag(cls, attrs: int) -> int:
        return super()._patch_lflag(attrs) | termios.ISIG | termios.NOFLSH


class _Parser(Vt100Parser):
    """A parser that drops unknown sequences, which would otherwise count as Escape and letters."""

    def __init__(
        self, press: Callable[[KeyPress], None], on_background: Callable[[bool], None]
    ) -> None:
        super().__init__(press)
        self._on_background = on_background
        self._held = ""

    def feed(self, data: str) -> None:
        data = _SEQUENCE.sub(self._key, self._held + data)
        rest = _UNFINISHED.search(data)
        end = len(data) if rest is None else rest.start()
        self._held = data[end:]
        super().feed(data[:end])

    def flush(self) -> None:
        held, self._held = self._held, ""
        super().feed(held)
        super().flush()

    def _key(self, found: re.Match[str]) -> str:
        sequence = found[0]
        if sequence in _NEW_LINES:
            return "\n"
        if sequence in ANSI_SEQUENCES or sequence == _PASTE_END:
            return sequence
        if colour := _COLOUR.fullmatch(found[1] or ""):
            self._on_background(_brightness(colour) > 1 / 2)
        return ""


def _brightness(colour: re.Match[str]) -> float:
    """Return the brightness from 0 to 1 of a colour in X's notation."""
    shares = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in colour.groups())
    return sum(weight * share for weight, share in zip(_WEIGHTS, shares, strict=True))
