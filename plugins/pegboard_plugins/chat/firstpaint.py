"""The first paint: an empty footer, before the libraries are loaded that draw it.

What is typed until they are there is shown at once, and is the editor's afterwards.
"""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

_RULE, _PROMPT = "─", "❯ "
_AWAY = "\r\x1b[A\x1b[K\x1b[B\x1b[J\x1b[A"
"""From the editor's row to the first, and nothing stands there; see `Painter.erase_down`."""
_PASTES_ON, _PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
_RUBOUT = ("\x7f", "\b")
_READ_BYTES = 4096


class _Typed:
    """Reads what is typed, and shows it behind the prompt, until it is stopped."""

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
            _write(f"\r{_PROMPT}{_shown(self.content, self._room)}\x1b[K")

    def stop(self) -> bytes:
        """All that was typed."""
        os.close(self._awake)
        self._thread.join()
        os.close(self._asleep)
        return self.content


def _shown(content: bytes, room: int) -> str:
    """The end of what was written, as far as it is a single line of letters."""
    written = ""
    for letter in content.decode("utf-8", "ignore"):
        if letter in _RUBOUT:
            written = written[:-1]
        elif letter.isprintable():
            written += letter
        else:
            break
    return written[-max(1, room if written.isascii() else room // 2) :]


@contextmanager
def painted() -> Iterator[Callable[[], bytes]]:
    """What takes the footer away again, and gives all that was typed until then.

    As long as it lasts the terminal gives each key as it is.
    """
    before = termios.tcgetattr(sys.stdin)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, _key_by_key(before))
    columns = os.get_terminal_size(sys.stdout.fileno()).columns
    _write(
        f"{_PASTES_ON}\x1b[2m{_RULE * columns}\x1b[0m\r\n{_PROMPT}\r\n\x1b[A\x1b[{len(_PROMPT)}C"
    )
    typed = _Typed(columns)
    is_there = True

    def take_away() -> bytes:
        nonlocal is_there
        if is_there:
            is_there = False
            typed.stop()
            _write(_AWAY)
        return typed.content

    try:
        yield take_away
    finally:
        if is_there:
            take_away()
            _write(_PASTES_OFF)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _key_by_key(state: list[Any]) -> list[Any]:
    """The terminal's state without lines, echo and signals of keys.

    What is written is left as it is, unlike in raw mode: the editor's library gives a program that
    runs meanwhile lines and echo back, and nothing else, so each line of it would begin where the
    one before ended.
    """
    state = [*state[: tty.CC], [*state[tty.CC]]]
    state[tty.IFLAG] &= ~(termios.ICRNL | termios.IXON)
    state[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    state[tty.CC][termios.VMIN], state[tty.CC][termios.VTIME] = 1, 0
    return state


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
