"""The user's review of a server's new or changed tools and instructions."""

import asyncio

import click

from pegboard.display import escape_controls
from pegboard.errors import ToolError
from pegboard_mcp.pins import definition_diff, instructions_diff
from pegboard_mcp.server import Server


async def review_server(server: Server, *, yes: bool) -> None:
    """Show each unreviewed tool or instruction, and store those that the user accepts.

    With `yes`, everything is accepted without a question.

    :raises ToolError: when the server has listed nothing.
    """
    name, known = server.config.name, server.catalogue
    if known is None:
        raise ToolError(server.error or f"the MCP server {name} has listed nothing")
    pins = server.files.pins.read()
    taken = []
    for tool in known.tools:
        pin = pins.tools.get(tool.name)
        if pin is not None and pin.is_approved and pin.digest == tool.digest:
            continue
        reviewed = pin if pin is not None and pin.digest != tool.digest else None
        click.echo(escape_controls(f"{name} {tool.name}"))
        click.echo(escape_controls(definition_diff(reviewed, tool)))
        if yes or await asyncio.to_thread(click.confirm, "Offer it to models?"):
            taken.append(tool)
    instructions = None
    if server.config.instructions and pins.instructions not in (None, known.instructions):
        click.echo(escape_controls(f"{name} instructions"))
        click.echo(escape_controls(instructions_diff(pins.instructions or "", known.instructions)))
        if yes or await asyncio.to_thread(click.confirm, "Give them to models?"):
            instructions = known.instructions
    server.files.pins.approve(taken, instructions)
    click.echo(f"{len(taken)} of {len(known.tools)} tools were reviewed now")
