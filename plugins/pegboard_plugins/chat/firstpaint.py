"""The first paint: an empty footer, before the libraries are loaded that draw it.

Keys that are pressed until the editor is there wait in the terminal, and are not lost.
"""

import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_RULE, _PROMPT = "─", "❯ "
_AWAY = "\r\x1b[A\x1b[K\x1b[B\x1b[J\x1b[A"
"""From the editor's row to the first, and nothing stands there; see `Painter.erase_down`."""


@contextmanager
def painted() -> Iterator[Callable[[], None]]:
    """What takes the footer away again, for as long as the terminal gives each key as it is."""
    before = termios.tcgetattr(sys.stdin)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, _key_by_key(before))
    is_there = True

    def take_away() -> None:
        nonlocal is_there
        if is_there:
            is_there = False
            _write(_AWAY)

    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
        _write(f"\x1b[2m{_RULE * columns}\x1b[0m\r\n{_PROMPT}\r\n\x1b[A\x1b[{len(_PROMPT)}C")
        yield take_away
    finally:
        take_away()
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
