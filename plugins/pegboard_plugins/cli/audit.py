"""`pegboard audit`: the log of decisions and tool calls."""

import os
import sys

import click

from pegboard.app import UserFolders
from pegboard.cli import Group
from pegboard.errors import StorageError
from pegboard_plugins.cli import auditlog


@click.group(cls=Group)
def audit() -> None:
    """Show and verify the log of decisions and tool calls."""


audit.add_command(auditlog.show)


@audit.command()
def verify() -> None:
    """Check that no line was changed, added, moved or removed."""
    from pegboard_plugins.audit.check import (
        verify_audit as verified,  # `pegboard --help` goes without it
    )

    places = UserFolders.of(os.environ)
    path = places.audit
    try:
        found = verified(path, witness=places.audit_witness)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if found.fault:
        raise StorageError(f"{found.fault}; `pegboard audit acknowledge` once you know why")
    click.echo(f"{found.lines} entries, none altered: {path}")


@audit.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def acknowledge(*, yes: bool) -> None:
    """Acknowledge the damage of the log that `verify` reports.

    The present log is set aside, and new lines go to new files.
    """
    from pegboard_plugins.audit.acknowledgement import (
        acknowledge_audit as acknowledged,  # `pegboard --help` goes without it
    )
    from pegboard_plugins.audit.check import (
        verify_audit as verified,  # `pegboard --help` goes without it
    )

    places = UserFolders.of(os.environ)
    try:
        fault = verified(places.audit, witness=places.audit_witness).fault
        if fault:
            click.echo(fault, err=True)
            _confirm(yes=yes)
        aside = acknowledged(places.audit, witness=places.audit_witness)
    except OSError as error:
        raise StorageError(f"{places.audit} cannot be set aside: {error}") from error
    click.echo("nothing to acknowledge" if aside is None else f"the log until now is in {aside}")


def _confirm(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise StorageError("there is no terminal to ask on; review the log, then pass --yes")
    if not click.confirm("Set the log aside and go on?", default=False, err=True):
        raise StorageError("not acknowledged; nothing was changed")
