"""A tool call that runs until the test lets it end."""

import shlex
from typing import Any

from plugins.cli.commands import CommandLine


class HeldCall:
    """A call of bash that answers `slept` once it is released, however slow the machine is."""

    def __init__(self, pegboard: CommandLine) -> None:
        self._file = pegboard.home / "released"
        wait = f"until [ -e {shlex.quote(str(self._file))} ]; do sleep 0.05; done; echo slept"
        self.call: dict[str, Any] = {
            "tool": "bash",
            "input": {"command": wait, "description": "wait"},
        }

    def release(self) -> None:
        """Let it end."""
        self._file.touch()
