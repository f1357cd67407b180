"""A choice on a terminal, where an argument was left out."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from pegboard.cli import visible

SHOWN = 15
"""Lines that leave the question on a small screen."""


def can_pick() -> bool:
    """Whether somebody is there who sees the question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick(what: str, rows: Sequence[tuple[str, str]]) -> str:
    """The value of the chosen row; each is a value and what is said of it. Enter takes the first.

    It blocks, the event loop too: Ctrl-C leaves at once.

    :raises click.Abort: when the person leaves.
    """
    shown = rows[:SHOWN]
    for number, (value, text) in enumerate(shown, start=1):
        click.echo(visible(f"{number:>3}  {value}  {' '.join(text.split())}"), err=True)
    if len(rows) > len(shown):
        click.echo(f"     and {len(rows) - len(shown)} more; name one to choose it", err=True)
    numbers = click.IntRange(1, len(shown))
    with interruptible():
        number = click.prompt(f"Which {what}?", type=numbers, default=1, err=True)
    return shown[number - 1][0]


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends a question at once; an event loop would only hear of it after the answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
