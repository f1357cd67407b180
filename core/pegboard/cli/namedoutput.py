"""The output of plugins: each line is prefixed with the plugin's name, up to a size limit."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pegboard.hooks.stalls import PRINTING

LIMIT_CHARS = 8192
"""The most that one plugin may print; a line says that the rest is left out."""


@contextmanager
def named_output() -> Iterator[None]:
    """During the block, prefix lines that a plugin prints with its name, and cut long output."""
    streams = sys.stdout, sys.stderr
    printed: dict[str, int] = {}
    sys.stdout, sys.stderr = (_Named(each, printed) for each in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


class _Named:
    """A stream that prefixes each line with the name of the plugin that writes it."""

    def __init__(self, stream: TextIO, printed: dict[str, int]) -> None:
        self._stream = stream
        self._printed = printed
        self._open = ""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text, with the name of the plugin at the start of each line."""
        plugin = PRINTING.get()
        if not plugin or not text:
            return self._stream.write(text)
        before = self._printed.get(plugin, 0)
        self._printed[plugin] = before + len(text)
        if before <= LIMIT_CHARS:
            self._stream.write(self._named(plugin, text[: LIMIT_CHARS - before]))
        if before <= LIMIT_CHARS < before + len(text):
            end = f"plugin {plugin}: printed more than {LIMIT_CHARS:,} characters; the rest is cut"
            self._stream.write("\n" * bool(self._open) + f"{end}\n")
            self._open = ""
        return len(text)

    def _named(self, plugin: str, text: str) -> str:
        lines = text.splitlines(keepends=True)
        name = f"plugin {plugin}: "
        named = "".join(
            line if (number == 0 and self._open == plugin) or line.startswith(name) else name + line
            for number, line in enumerate(lines)
        )
        self._open = plugin if lines and not lines[-1].endswith("\n") else ""
        return named
