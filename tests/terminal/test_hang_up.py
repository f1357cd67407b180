"""A terminal that is closed ends the chat without a crash file."""

import os
import pty
import subprocess
from pathlib import Path

from plugins.cli.commands import COMMAND, CommandLine


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
    os.read(ours, 1)  # the chat has begun to paint
    os.close(ours)

    chat.wait(60)

    assert list(tmp_path.rglob("crash-*")) == []
