"""`pegboard audit`: the log of decisions and tool calls."""

import os

import click

from pegboard.errors import StorageError


@click.group()
def audit() -> None:
    """Check the log of permission decisions and tool calls."""


@audit.command()
def verify() -> None:
    """Check that no line of the log was changed, added, moved or taken out."""
    from pegboard.audit.check import verify as verified
    from pegboard.paths import Places

    path = Places.of(os.environ).audit
    try:
        found = verified(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if found.broken is not None:
        raise StorageError(f"{found.file}, line {found.broken}: {found.reason}")
    click.echo(f"{found.lines} lines are as they were written: {path}")
