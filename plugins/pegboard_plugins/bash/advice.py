"""Advice on an unclear line: its unclear part, and a clear way to write the line."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.tables import pairs

_SHOWN = 72
"""So many letters of the line are shown around the place."""


@cache
def sayings() -> Mapping[str, tuple[str, str]]:
    """Return for each reason code a description of the line, and a way to write it instead."""
    return {code: row for code, (row,) in pairs("sayings", "sayings").items()}


class Advice(NamedTuple):
    """The advice on an unclear line; `marked` is the line with its unclear part underlined."""

    code: str
    description: str
    instead: str
    column: int
    marked: str

    @property
    def sentence(self) -> str:
        """The advice as one or two sentences."""
        return (
            f"Pegboard cannot tell what this line would run: it {self.description}"
            f" ({self.code}, column {self.column}). Instead: {self.instead}"
        )


def advised(error: Unclear, command: str) -> Advice:
    """Return the advice on an unclear line, by the reason code of the error."""
    description, instead = sayings()[error.code]
    start = min(error.start, max(len(command) - 1, 0))
    line_start = command.rfind("\n", 0, start) + 1
    line = command[line_start:].partition("\n")[0]
    column = start - line_start
    first = max(0, min(column - _SHOWN // 2, len(line) - _SHOWN))
    shown = line[first : first + _SHOWN]
    length = max(1, min(error.end - start, len(shown) - (column - first)))
    marked = f"{shown}\n{' ' * (column - first)}{'^' * length}"
    return Advice(error.code, description, instead, column + 1, marked)
