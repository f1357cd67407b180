"""The hook events and fields of other agents that Pegboard supports, computed from tables.

A page of the documentation repeats the tables.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pegboard_plugins.commandhooks.hookevents import COMMON, ROWS, Field
from pegboard_plugins.commandhooks.hookfields import FIELDS


class Share(NamedTuple):
    """The hook events and fields: how many Pegboard supports (`honoured`), of all (`cells`)."""

    honoured: int
    cells: int


_FIRING_ROWS = [row for row in ROWS if row.runs and row is not COMMON]
FIRING: dict[str, dict[str, str]] = {
    "claude": {row.claude: row.name for row in _FIRING_ROWS if row.claude},
    "codex": {row.codex or row.claude: row.name for row in _FIRING_ROWS if row.codex or row.claude},
    "gemini": {row.gemini: row.name for row in _FIRING_ROWS if row.gemini},
}
"""The names of events in Pegboard, by product and the product's own name."""
_PLAIN = frozenset({"hookSpecificOutput", "hookEventName", "reason", "stopReason"})
_NOTES = {
    name: row.note for row in ROWS if not row.runs for name in (row.claude, row.codex, row.gemini)
}
HONOURED = {
    row.name: _PLAIN.union(
        *(field.keys for field in (*COMMON.fields, *row.fields) if field.is_honoured)
    )
    for row in _FIRING_ROWS
}
"""The keys of a hook's output that have an effect, by event."""


def never_reason(name: str) -> str:
    """Return why an event of this name never fires."""
    return _NOTES.get(name) or "Pegboard has no such event"


def share(product: str = "") -> Share:
    """Return how many hook events and output fields of a product, or of all, Pegboard supports."""
    rows = [row for row in ROWS if not product or getattr(row, product)]
    cells = [
        *(bool(row.runs) for row in rows if row is not COMMON),
        *(field.is_honoured for row in rows for field in row.fields),
    ]
    return Share(sum(cells), len(cells))


def page() -> str:
    """Return the documentation's tables as Markdown, below the numbers of supported cells."""
    names = {"": "all", "claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}
    shares = "; ".join(
        f"{name}: {share(product).honoured} of {share(product).cells}"
        for product, name in names.items()
    )
    fields = (f"| {each.name} | {_effect(each)} |" for each in FIELDS)
    files = ("| in a hook file | honoured |", "|---|---|", *fields)
    return "\n".join((f"Cells honoured: {shares}.", "", *_lines(), "", *files))


def _effect(field: Field) -> str:
    word = "yes" if field.is_honoured else "no"
    return f"{word}: {field.note}" if field.note else word


def _lines() -> Iterator[str]:
    yield "| Claude Code | Codex | Gemini CLI | runs | output | honoured |"
    yield "|---|---|---|---|---|---|"
    for row in ROWS:
        runs = row.runs or f"never: {row.note}"
        first: tuple[str, ...] = (row.claude or "-", row.codex or "-", row.gemini or "-", runs)
        for field in row.fields:
            yield f"| {' | '.join((*first, field.name, _effect(field)))} |"
            first = ("", "", "", "")
        if not row.fields:
            yield f"| {' | '.join((*first, '-', 'yes' if row.runs else 'no'))} |"
