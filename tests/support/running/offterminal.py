"""No process of a test asks on the terminal on which somebody runs the tests."""

import fcntl
import os
import termios
from contextlib import suppress


def leave_terminal() -> None:
    """Have no `/dev/tty`, as on a machine without one, and so no child that opens it.

    Ctrl-C still arrives: it goes to the group in the terminal's foreground. Who leads a session
    keeps its terminal, for leaving it would hang up on all of them.
    """
    if os.getsid(0) == os.getpid():
        return
    with suppress(OSError):  # there is none
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        try:
            fcntl.ioctl(terminal, termios.TIOCNOTTY)
        finally:
            os.close(terminal)
