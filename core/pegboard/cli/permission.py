"""`pegboard permission`: what was approved for good, and taking it back."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from pegboard.session.policy import Approval


@click.group()
def permission() -> None:
    """Show and take back what you have approved for good."""


@permission.command("list")
@click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.pass_obj
def list_approvals(directory: Path, style: Literal["table", "json"]) -> None:
    """List what this project's sessions may do without asking, because you said so."""
    found = asyncio.run(_approvals(directory))
    if style == "json":
        rows = [
            {
                "scope": each.scope,
                "permission": each.rule.permission,
                "pattern": each.rule.pattern,
            }
            for each in found
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from pegboard.cli.render import visible
    from pegboard.cli.tables import table

    cells = [(each.scope, each.rule.permission, visible(each.rule.pattern)) for each in found]
    click.echo(table(("scope", "permission", "pattern"), cells), nl=False)


@permission.command()
@click.argument("permission_name", metavar="PERMISSION")
@click.argument("pattern", default="*")
@click.pass_obj
def revoke(directory: Path, permission_name: str, pattern: str) -> None:
    """Take back what was approved of PERMISSION; PATTERN limits it, and both take wildcards."""
    for each in asyncio.run(_revoke(directory, permission_name, pattern)):
        click.echo(f"revoked: {each.rule.permission} {each.rule.pattern} ({each.scope})")


async def _approvals(directory: Path) -> "tuple[Approval, ...]":
    from pegboard.app import App

    async with await App.open(directory) as app:
        return await app.policy.approvals()


async def _revoke(directory: Path, name: str, pattern: str) -> "tuple[Approval, ...]":
    from pegboard.app import App

    async with await App.open(directory) as app:
        return await app.policy.revoke(name, pattern)
