"""The choice of a value on a terminal, if an argument was left out."""

import sys
from collections.abc import Sequence

import click

from pegboard.display import escape_controls
from pegboard_plugins.shared.terminal import interruptible

SHOWN = 15
"""The maximum number of rows, so that the question stays on a small screen."""


def can_pick() -> bool:
    """Return whether a user at a terminal can see a question and type an answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick(what: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the value that the user picks from rows of value and text; Enter takes the first.

    Typed words filter the rows. The call also blocks the event loop; Ctrl-C ends it at once.

    :raises click.Abort: when the user cancels.
    """
    found = tuple(rows)
    while True:
        shown = found[:SHOWN]
        for number, (value, text) in enumerate(shown, start=1):
            said = f"{number:>3}  {value}  {' '.join(text.split())}"
            click.echo(escape_controls(said.rstrip()), err=True)
        more = f"     and {len(found) - len(shown)} more: letters of it narrow the choice"
        if len(found) > len(shown):
            click.echo(more, err=True)
        with interruptible():
            typed = str(click.prompt(f"Which {what}?", default="1", err=True))
        if typed.isdecimal():
            if 0 < int(typed) <= len(shown):
                return shown[int(typed) - 1][0]
            click.echo(f"{typed} is not in the range 1<=x<={len(shown)}", err=True)
            continue
        words = typed.lower().split()
        fitting = [row for row in rows if all(word in " ".join(row).lower() for word in words)]
        if not fitting:
            click.echo(f"none has {typed} in it", err=True)
        found = tuple(fitting) or tuple(rows)
