"""The log of a server's standard error, limited in size and without secrets."""

import time
from collections.abc import Sequence
from pathlib import Path

from pegboard.plugins import redact

LOG_BYTES = 1 << 20
PER_SECOND_BYTES = 1 << 20
"""A server that writes more is heard in part, so that its log costs neither disk nor time."""


class ServerLog:
    """The log file of an MCP server, which is rotated into a second file at `LOG_BYTES` bytes."""

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        self.path = path
        self._secrets = tuple(secrets)
        self._second = 0
        self._in_second = 0

    def write(self, text: str) -> None:
        """Append text to the log; ignore an error of the file system."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += len(text)
        if self._in_second > PER_SECOND_BYTES:
            return
        content = redact(text, self._secrets).encode("utf-8", "replace")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.path.exists() and self.path.stat().st_size + len(content) > LOG_BYTES:
                self.path.replace(self.path.with_suffix(".old.log"))
            with self.path.open("ab") as file:
                file.write(content)
        except OSError:
            return

    def tail(self, letters: int = 400) -> str:
        """Return the last characters of the log, joined to a single line."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - letters))
                return " ".join(file.read().decode("utf-8", "replace").split())
        except OSError:
            return ""
