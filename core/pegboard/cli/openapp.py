"""The App of one command."""

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
    """Open the App of a directory; while it is open, report hooks that fail on stderr.

    The command goes on when hooks fail, as a turn does. The output of plugins is named and bounded.

    :raises PegboardError: what `App.open` raises.
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
