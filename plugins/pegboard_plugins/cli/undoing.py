"""`pegboard session revert` and `unrevert`: undo prompts with their file changes, and redo them."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pegboard import InvalidInputError
from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.schema.message import UserMessage
from pegboard.unstable import open_workspace, stored_name
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.jsontext import format_option, schema_json
from pegboard_plugins.shared.frontend import (
    copies_of,
    reason_of,
    require_folder,
    reverted,
    shown_path,
    unreverted,
)

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.schema.session import Session
    from pegboard_plugins.shared.frontend import Reverted

_STYLE = format_option("text")


@click.command()
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@click.argument("message_id", metavar="[MESSAGE]", required=False)
@_STYLE
@click.pass_obj
def revert(
    directory: Path, session_id: str | None, message_id: str | None, style: Literal["text", "json"]
) -> int:
    """Undo your last prompt, or all since MESSAGE, files included.

    The exit code is 1 if a file could not be restored.
    """
    return _show(directory, run_async(_revert(directory, session_id, message_id)), style)


@click.command()
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@_STYLE
@click.pass_obj
def unrevert(directory: Path, session_id: str | None, style: Literal["text", "json"]) -> int:
    """Undo `revert`.

    This is possible until the next prompt. The exit code is 1 if a file could not be restored.
    """
    return _show(directory, run_async(_unrevert(directory, session_id)), style)


async def _revert(directory: Path, session_id: str | None, message_id: str | None) -> "Reverted":
    async with open_app(directory) as app:
        session = await _here(app, session_id)
        return await reverted(app, session.id, message_id or await _last_prompt(app, session.id))


async def _here(app: "App", session_id: str | None) -> "Session":
    """Find the session; reject a session of another worktree, because its snapshots are there."""
    session = await find_session(app, session_id)
    if not Path(session.directory).is_relative_to(app.workspace.worktree):
        require_folder(session, app.workspace.directory)
    return session


async def _last_prompt(app: "App", session_id: str) -> str:
    """Return the id of the newest prompt that is not reverted."""
    point = (await app.session(session_id)).revert
    prompts = []
    for turn in await app.list_turns(session_id):
        if point is not None and turn.info.id == point.message_id:
            break
        if isinstance(turn.info, UserMessage):
            prompts.append(turn.info.id)
    if not prompts:
        raise InvalidInputError("there is no prompt to go back before")
    return prompts[-1]


async def _unrevert(directory: Path, session_id: str | None) -> "Reverted":
    async with open_app(directory) as app:
        return await unreverted(app, (await _here(app, session_id)).id)


def _show(directory: Path, done: "Reverted", style: Literal["text", "json"]) -> int:

    root = open_workspace(directory).worktree
    left = [
        {"path": stored_name(str(each.path)), "reason": each.reason, "text": reason_of(each, root)}
        for each in done.files.left
    ]
    if style == "json":
        changed = [stored_name(str(path)) for path in done.files.changed]
        facts = {
            "changed": changed,
            "left": left,
            "unknown": done.files.unknown,
            "copies": copies_of(done.files, root),
        }
        click.echo(schema_json({"info": done.session, **facts}))
    else:
        for path in done.files.changed:
            click.echo(f"put back  {escape_controls(shown_path(path, root))}")
        for each in done.files.left:
            click.echo(
                escape_controls(f"left      {shown_path(each.path, root)}: {reason_of(each, root)}")
            )
        if copies := copies_of(done.files, root):
            click.echo(escape_controls(f"copies    {copies}"))
        if done.files.unknown:
            click.echo(escape_controls(f"unknown   {done.files.unknown}"))
        if not done.files.changed:
            click.echo("files     none changed")
        back = "`pegboard session unrevert` restores it"
        point = done.session.revert
        click.echo(f"session   {f'before {point.message_id}; {back}' if point else 'restored'}")
    return 1 if left or done.files.unknown else 0


COMMANDS = (revert, unrevert)
