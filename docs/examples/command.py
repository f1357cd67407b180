"""A command of the command line: `pegboard tools` lists the tools that a project's agent has.

A distribution brings it with an entry point, and its module is imported when it is invoked:

    [project.entry-points."pegboard.commands"]
    tools = "command:tools"
"""

import asyncio
from pathlib import Path

import click

from pegboard import App, AppOptions, Tool


@click.command()
@click.option("--long", is_flag=True, help="With the first line of what the model reads.")
@click.pass_obj
def tools(directory: Path, long: bool) -> None:  # noqa: FBT001 - click gives it by keyword
    """List the tools of this project."""
    for tool in asyncio.run(_tools(directory)):
        first_line = tool.description.partition("\n")[0]
        click.echo(f"{tool.id}: {first_line}" if long else tool.id)


async def _tools(directory: Path) -> tuple[Tool, ...]:
    async with App.open(directory, AppOptions()) as app:
        return tuple(app.tools[name] for name in sorted(app.tools))
