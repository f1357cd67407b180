"""The formatting of tables and times as text."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from pegboard_plugins.cli.render import LABEL_WIDTH, one_line

_GAP = "  "
_MS_PER_S = 1000


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = LABEL_WIDTH
) -> str:
    """Return a table with one row per line and aligned columns, or "" without rows.

    Each cell is cut at `width` characters.
    """
    if not rows:
        return ""
    cells = [list(headers), *([one_line(cell, width) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return "".join(_row(row, widths) for row in cells)


def show_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    none: str,
    width: int = LABEL_WIDTH,
) -> None:
    """Print the table; without rows, print `none` on standard error."""
    if rows:
        click.echo(table(headers, rows, width=width), nl=False)
    else:
        click.echo(none, err=True)


def moment(at_ms: int) -> str:
    """Format a time in the user's time zone, to the minute."""
    local = datetime.fromtimestamp(at_ms / _MS_PER_S, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return _GAP.join(padded).rstrip() + "\n"
