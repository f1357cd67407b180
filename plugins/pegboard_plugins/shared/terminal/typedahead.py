"""The transfer of keys, pressed before a command asks a question, to the chat that runs it."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pegboard_plugins.shared.terminal.permissionlines import QUIET_S

TYPED_AHEAD = "PEGBOARD_TYPED_AHEAD"
"""The environment variable with the file descriptor for keys typed before a question."""
_READ_BYTES = 4096


@contextmanager
def question_terminal() -> Iterator[None]:
    """Prepare the terminal for a question of a command that a chat runs.

    Keys pressed before the command's first question are passed to the chat; later keys answer. If
    no chat runs the command, the terminal stays unchanged.
    """
    fd = os.environ.get(TYPED_AHEAD)
    if fd is None:
        yield
        return
    terminal = sys.stdin.fileno()
    if fd:
        _pass_on_keys(terminal, int(fd))
        os.environ[TYPED_AHEAD] = ""
    before = termios.tcgetattr(terminal)
    termios.tcsetattr(terminal, termios.TCSAFLUSH, _line_by_line(before))
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _pass_on_keys(terminal: int, fd: int) -> None:
    wait_s = 0.0
    while select.select([terminal], [], [], wait_s)[0]:
        os.write(fd, os.read(terminal, _READ_BYTES))
        wait_s = QUIET_S
    os.close(fd)


def _line_by_line(state: list[Any]) -> list[Any]:
    """Return the terminal's settings with line mode, echo and signal keys."""
    state = [*state]
    state[tty.IFLAG] |= termios.ICRNL
    state[tty.LFLAG] |= termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG
    return state
