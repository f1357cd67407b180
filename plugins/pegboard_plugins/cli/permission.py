"""`pegboard permission`: permanent approvals, and their revocation."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard.cli import Group, open_app, run_async
from pegboard.display import escape_controls
from pegboard.unstable import exposed
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.tables import show_table
from pegboard_plugins.shared.frontend import approvals_of
from pegboard_plugins.shared.frontend import revoke as revoke_approvals

if TYPE_CHECKING:
    from pegboard.schema.session import Approval

_MS = 1000
_WHOLE = 1_000_000
"""The width of a pattern's cell, so that patterns are never cut."""


@click.group(cls=Group)
def permission() -> None:
    """List and revoke saved approvals."""


@permission.command("list")
@format_option("table")
@click.pass_obj
def list_approvals(directory: Path, style: Literal["table", "json"]) -> None:
    """List the saved approvals that apply in this project.

    These are approvals for single sessions, for this project, and for all your projects.
    """
    found = run_async(_approvals(directory))
    if style == "json":
        click.echo(as_json([_facts(each) for each in found], indent=2))
        return

    titles = ("number", "scope", "agent", "permission", "pattern", "since")
    rows = [_cells(each) for each in found]
    show_table(titles, rows, width=_WHOLE, none="no approval is saved")


@permission.command()
@click.argument("what", metavar="NUMBER...|PERMISSION [PATTERN]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Revoke all approvals that `list` shows.")
@click.pass_obj
def revoke(directory: Path, what: tuple[str, ...], everything: bool) -> None:
    """Revoke approvals by number, or by permission and pattern.

    PERMISSION and PATTERN take wildcards. The change applies at once, also to running sessions.
    """
    if everything == bool(what):
        raise click.UsageError("give numbers, or a PERMISSION, or --all")
    numbers = [int(word) for word in what if word.isdecimal()]
    if len(numbers) not in (0, len(what)) or (not numbers and len(what) > 2):  # noqa: PLR2004
        raise click.UsageError("give numbers alone, or a PERMISSION with one PATTERN at most")
    for each in run_async(_revoke(directory, () if numbers else what, numbers)):
        _, scope, agent, name, pattern, _ = _cells(each)
        whose = f"{scope}, agent {agent}" if each.agent else scope
        click.echo(f"revoked: {name} {pattern} ({whose})")


def _facts(approval: "Approval") -> dict[str, Any]:
    return {
        "id": approval.id,
        "scope": approval.scope,
        "session": approval.key if approval.scope == "session" else None,
        "agent": approval.agent,
        "permission": approval.rule.permission,
        "pattern": approval.rule.pattern,
        "at": approval.at or None,
    }


def _cells(approval: "Approval") -> tuple[str, ...]:

    scope = approval.key if approval.scope == "session" else approval.scope
    since = datetime.fromtimestamp(approval.at / _MS).astimezone() if approval.at else None
    return (
        str(approval.id),
        scope,
        escape_controls(approval.agent or "(any)"),
        escape_controls(approval.rule.permission),
        exposed(approval.rule.pattern).replace("\n", "\\n"),
        since.isoformat(sep=" ", timespec="minutes")[:16] if since else "",
    )


async def _approvals(directory: Path) -> "tuple[Approval, ...]":

    async with open_app(directory) as app:
        return await approvals_of(app)


async def _revoke(
    directory: Path, what: tuple[str, ...], numbers: list[int]
) -> "tuple[Approval, ...]":

    async with open_app(directory) as app:
        if not what and not numbers and not await approvals_of(app):
            return ()
        return await revoke_approvals(app, *what, ids=numbers)
