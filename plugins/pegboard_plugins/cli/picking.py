"""A choice on a terminal, where an argument was left out."""

import sys
from collections.abc import Sequence

import click

from pegboard.cli import visible

SHOWN = 15
"""Lines that leave the question on a small screen."""


def can_pick() -> bool:
    """Whether somebody is there who sees the question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick(what: str, rows: Sequence[tuple[str, str]]) -> str:
    """The value of the chosen row; each is a value and what is said of it. Enter takes the first.

    It blocks.

    :raises click.Abort: when the person leaves.
    """
    shown = rows[:SHOWN]
    for number, (value, text) in enumerate(shown, start=1):
        click.echo(visible(f"{number:>3}  {value}  {' '.join(text.split())}"), err=True)
    if len(rows) > len(shown):
        click.echo(f"     and {len(rows) - len(shown)} more; name one to choose it", err=True)
    number = click.prompt(f"Which {what}?", type=click.IntRange(1, len(shown)), default=1, err=True)
    return shown[number - 1][0]
