"""The opening and closing of an App for a single `pegboard` command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard.cli.namedoutput import named_output
from pegboard.display.visibletext import escape_controls

if TYPE_CHECKING:
    from pegboard import App, AppOptions


@asynccontextmanager
async def open_app(directory: Path, options: "AppOptions | None" = None) -> "AsyncIterator[App]":
    """Open the App of a directory for a block, and report failed hooks on stderr at its end.

    Failed hooks do not stop the command. The output of plugins is prefixed and limited.

    :raises PegboardError: the errors of `App.open`.
    """
    from pegboard import App

    with named_output():
        app = await App.open(directory, options)
        try:
            async with app:
                yield app
        finally:
            for message in dict.fromkeys(each.message for each in app.failures):
                click.echo(escape_controls(f"warning: {message}"), err=True)
