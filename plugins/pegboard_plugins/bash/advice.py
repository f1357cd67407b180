"""Advice on an unclear shell line: which part is unclear, and how to write it instead."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.tables import pairs

_SHOWN = 72
"""So many letters of the line are shown around the place."""


@cache
def sayings() -> Mapping[str, tuple[str, str]]:
    """Return the texts for each reason code: what the line does, and what to write instead."""
    return {code: row for code, (row,) in pairs("sayings", "sayings").items()}


class Advice(NamedTuple):
    """Advice on an unclear shell line; `marked` is the line with the unclear part underlined."""

    code: str
    description: str
    instead: str
    column: int
    marked: str

    @property
    def sentence(self) -> str:
        """The advice as a sentence that says what is unclear, and a sentence on what to write."""
        return (
            f"Pegboard cannot tell what this line would run: it {self.description}"
            f" ({self.code}, column {self.column}). Instead: {self.instead}"
        )


def advised(error: Unclear, command: str) -> Advice:
    """Return the advice on an unclear shell line, by the reason code in `error`."""
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
