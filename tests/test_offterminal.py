"""Tests ask nobody: what they start finds no terminal, also where somebody runs them on one."""

import os
import pty
import subprocess
import sys
from pathlib import Path

ASK = "open('/dev/tty').close()"
LEAVE = "from support.running.offterminal import leave_terminal; leave_terminal();"
STARTED = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {ASK!r}]))"


def code_on_terminal(program: str) -> int:
    """How this program ends as somebody's on a terminal that leads no session."""
    process, terminal = pty.fork()
    if process == 0:
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
        os._exit(subprocess.call([sys.executable, "-c", program], env=env))
    try:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    finally:
        os.close(terminal)


def test_a_child_of_the_tests_has_no_terminal_to_ask_on() -> None:
    assert code_on_terminal(STARTED) == 0  # so the terminal would be found
    assert code_on_terminal(LEAVE + STARTED) == 1
