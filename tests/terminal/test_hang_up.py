"""A terminal that is closed ends the chat without a crash file."""

import os
import pty
import subprocess
from pathlib import Path

from pegboard.cli.exits import Exit
from plugins.cli.commands import COMMAND, CommandLine

READ_BYTES = 4096


def test_a_closed_terminal_leaves_no_crash_file(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    pegboard = CommandLine(tmp_path, tmp_path / "project")
    ours, theirs = pty.openpty()
    chat = subprocess.Popen(
        [COMMAND],
        cwd=pegboard.project,
        env=pegboard.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    painted = b""
    while b"no model" not in painted:  # the status line of the chat, which waits for a prompt
        painted += os.read(ours, READ_BYTES)
    os.close(ours)

    assert chat.wait(60) == Exit.INTERRUPTED
    assert list(tmp_path.rglob("crash-*")) == []
