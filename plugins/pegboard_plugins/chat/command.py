"""`pegboard chat`: a session in the terminal."""

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pegboard import InvalidInputError
from pegboard.cli import run_async
from pegboard.schema.config import SandboxLevel
from pegboard.unstable import refuse_within_tool
from pegboard_plugins.shared import rule_options
from pegboard_plugins.shared.frontend import MODES
from pegboard_plugins.shared.terminal import password_of

if TYPE_CHECKING:
    from pegboard_plugins.chat.chatoptions import StartOptions
    from pegboard_plugins.shared.frontend import Feed, RemoteFeed

REPLAYED = 20
_CLIENT = "install the client: pip install 'pegboard[client]'"
GARBAGE_AFTER = 10_000
"""The number of new objects after which garbage is collected; at the start it is ten times as
many."""
_INSTEAD = 'the chat needs a terminal; for one prompt: pegboard run "..."'


@click.command()
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="The model to ask.")
@click.option("--agent", metavar="NAME", help="The agent to ask.")
@click.option("--mode", type=click.Choice([*MODES]), help="What runs before you are asked.")
@click.option("-c", "--continue", "continued", is_flag=True, help="Continue the last session.")
@click.option("-s", "--session", "session_id", metavar="ID", help="Continue this session.")
@click.option(
    "--show",
    "replayed",
    type=click.IntRange(min=0),
    default=REPLAYED,
    show_default=True,
    metavar="N",
    help="Show the last N prompts of the session again.",
)
@rule_options
@click.option("--trust", is_flag=True, help="Trust this project's code for this run.")
@click.option(
    "--sandbox", type=click.Choice(get_args(SandboxLevel)), help="How strictly to sandbox tools."
)
@click.option("--attach", metavar="URL", help="Use the sessions of the server at URL.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Read the server's password from the first line of FILE.",
)
@click.argument("words", metavar="[MESSAGE]...", nargs=-1)
@click.pass_obj
def chat(directory: Path, /, **said: Any) -> int:  # noqa: ANN401 - click's own types
    """Talk with the agent in this terminal."""
    if said["continued"] and said["session_id"]:
        raise click.UsageError("--continue and --session exclude each other")
    own = [each for each in ("trust", "sandbox", "allow", "deny") if said[each]]
    if said["attach"] and own:
        raise click.UsageError(f"--{own[0]} is the server's to decide, not --attach's")
    password_file = said.pop("password_file")
    if password_file and not said["attach"]:
        raise click.UsageError("--password-file is for a server: it needs --attach")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise InvalidInputError(_INSTEAD)
    refuse_within_tool("pegboard chat")
    if said["attach"] and find_spec("pegboard_client") is None:
        raise InvalidInputError(f"--attach needs pegboard_client; {_CLIENT}")
    words = said.pop("words")
    from pegboard_plugins.shared.terminal import (  # no other command has a footer
        painted,
        write_plain_signs,
    )

    write_plain_signs(sys.stdout)
    password = password_of(password_file) if password_file else None
    with painted() as take_away:
        from pegboard_plugins.chat.chat import Chat  # 0.12 s, with the footer there
        from pegboard_plugins.chat.chatoptions import StartOptions
        from pegboard_plugins.chat.logfile import logging_to_file

        options = StartOptions(
            directory=directory, prompt=" ".join(words), password=password, **said
        )
        chat = Chat(options, os.environ, open_feed)
        chat.window.type(take_away())
        with logging_to_file(os.environ):
            return run_async(chat.run())


async def open_feed(options: "StartOptions") -> "Feed":
    """Return the access to the project's sessions, on a server or in this process."""
    import asyncio
    import importlib

    if options.attach is not None:
        try:
            remote = await asyncio.to_thread(
                importlib.import_module, "pegboard_plugins.shared.frontend.remotefeed"
            )
        except ModuleNotFoundError as error:
            raise InvalidInputError(f"--attach needs {error.name}; {_CLIENT}") from error
        place = options.attach, options.directory, options.password
        attached: RemoteFeed = await remote.attach(*place, brings_plugins=True)
        await attached.begin_trace()
        return attached
    await asyncio.to_thread(importlib.import_module, "pegboard.app.application")
    from pegboard_plugins.chat.opening import open_local

    feed = await open_local(options)
    _collect_garbage_often()
    return feed


def _collect_garbage_often() -> None:
    """Collect garbage often, since each frame leaves reference cycles, to keep a long chat small.

    Objects from the start are excluded from collections.
    """
    if not gc.get_freeze_count():
        gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
