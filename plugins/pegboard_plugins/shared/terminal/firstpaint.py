"""The first paint: an empty footer, drawn before the chat's modules are loaded.

Keys typed meanwhile are echoed at once, and later inserted into the chat's editor.
"""

import atexit
import codecs
import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Thread
from typing import Any, NoReturn, TextIO

from pegboard.cli.memorylimit import is_limited

SIGNS = "pegboard_signs"
"""The name of the error handler that replaces characters that an encoding lacks."""
_PLAIN = str.maketrans(
    "─│·•…⋯⏎❯\u276e▸↳✗✓●○◆↑↓\u2013\u2014\u2018\u2019\u201c\u201d", "-|-*~~~><>>xv*o*^v--''\"\""
)
"""The replacements of characters, each as wide as the original."""
_RULE, _PROMPT = "─", "❯ "
_AWAY = "\r\x1b[A\x1b[K\x1b[B\x1b[J\x1b[A"
"""The sequence that erases the footer from the editor's row; see `Painter.erase_down`."""
_PASTES_ON, _PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
_RUBOUT = ("\x7f", "\b")
_READ_BYTES = 4096


class _Typed:
    """A thread that reads typed keys and echoes these keys after the prompt."""

    def __init__(self, columns: int) -> None:
        self.content = b""
        self._room = columns - len(_PROMPT) - 1
        self._asleep, self._awake = os.pipe()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        terminal = sys.stdin.fileno()
        while self._asleep not in (ready := select.select([terminal, self._asleep], [], [])[0]):
            content = os.read(ready[0], _READ_BYTES)
            if not content:
                return
            self.content += content
            _write(f"\r{_PROMPT}{_visible_end(self.content, self._room)}\x1b[K")

    def stop(self) -> bytes:
        """Stop the thread, and return all typed bytes."""
        os.close(self._awake)
        self._thread.join()
        os.close(self._asleep)
        return self.content


def _visible_end(content: bytes, room: int) -> str:
    """Return the end of the text typed before the first control character, in `room` columns."""
    written = ""
    for letter in content.decode("utf-8", "ignore"):
        if letter in _RUBOUT:
            written = written[:-1]
        elif letter.isprintable():
            written += letter
        else:
            break
    return written[-max(1, room if written.isascii() else room // 2) :]


class _Footer:
    """An empty footer, during which the terminal delivers each key at once and unchanged."""

    def __init__(self) -> None:
        self._before = termios.tcgetattr(sys.stdin)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, _key_by_key(self._before))
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
        rule = f"\x1b[2m{_RULE * columns}\x1b[0m\r\n"
        _write(f"{_PASTES_ON}{rule}{_PROMPT}\r\n\x1b[A\x1b[{len(_PROMPT)}C")
        self._typed = _Typed(columns)
        self._stands, self._has_ended = True, False

    def take_away(self) -> bytes:
        """Remove the first footer, and return all typed bytes."""
        if self._stands:
            self._stands = False
            self._typed.stop()
            _write(_AWAY)
        return self._typed.content

    def end(self) -> None:
        """Remove the first footer, and restore the terminal's settings."""
        if self._has_ended:
            return
        self._has_ended = True
        with suppress(OSError, termios.error):  # the terminal was closed
            if self._stands:
                self.take_away()
                _write(_PASTES_OFF)
            termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)


_STANDING: ContextVar[_Footer | None] = ContextVar("standing", default=None)
"""The footer that was drawn before the chat's command began."""


@contextmanager
def painted() -> Iterator[Callable[[], bytes]]:
    """Yield a function that removes the first footer and returns all bytes typed before."""
    footer = _STANDING.get() or _Footer()
    try:
        yield footer.take_away
    finally:
        footer.end()


def main() -> NoReturn:
    """Run the `pegboard` script; for a chat, draw a first footer before most modules load."""
    if is_limited():
        from pegboard_plugins.shared.terminal.guardian import (
            call_guardian,  # few live under a limit
        )

        call_guardian()
    if _begins_a_chat(sys.argv[1:]):
        write_plain_signs(sys.stdout)
        footer = _Footer()
        atexit.register(footer.end)
        _STANDING.set(footer)
    from pegboard.cli.main import main as run  # the footer is there

    run()


def write_plain_signs(*streams: TextIO) -> None:
    """Let `streams` replace each character that they cannot encode by a similar one, or `?`."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=SIGNS)


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    signs = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(sign if sign.isascii() else "?" for sign in signs), error.end


codecs.register_error(SIGNS, _plain)


def _begins_a_chat(arguments: list[str]) -> bool:
    """Return whether the arguments start a chat, and the terminal can display a footer."""
    if not {*arguments[arguments[:1] == ["chat"] :]} <= {"-c", "--continue"}:
        return False
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _key_by_key(state: list[Any]) -> list[Any]:
    """Return the terminal's settings without line mode, echo and signal keys.

    In contrast to raw mode, the terminal still translates line feeds in output. The editor's
    library keeps this setting while another program runs, and that program needs the translation.
    """
    state = [*state[: tty.CC], [*state[tty.CC]]]
    state[tty.IFLAG] &= ~(termios.ICRNL | termios.IXON)
    state[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    state[tty.CC][termios.VMIN], state[tty.CC][termios.VTIME] = 1, 0
    return state


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
