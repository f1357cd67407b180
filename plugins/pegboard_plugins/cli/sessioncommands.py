"""`pegboard session ...`: the commands that change or search whole sessions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard import InvalidInputError
from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.storage import SearchHit
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.tables import moment, show_table
from pegboard_plugins.shared.frontend import adopt_folder, forked
from pegboard_plugins.shared.terminal import interruptible

if TYPE_CHECKING:
    from pegboard.schema.session import Session


@click.command()
@click.argument(
    "session_ids", metavar="ID...", nargs=-1, required=True, shell_complete=live("session")
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(directory: Path, session_ids: tuple[str, ...], *, yes: bool) -> None:
    """Delete sessions permanently, with those of their subagents.

    Nothing is deleted unless all ids exist.
    """
    run_async(_delete(directory, session_ids, yes=yes))


async def _delete(directory: Path, session_ids: tuple[str, ...], *, yes: bool) -> None:

    async with open_app(directory) as app:
        sessions = [
            await find_session(app, each, whole=True) for each in dict.fromkeys(session_ids)
        ]
        if not yes:
            _confirm(sessions)
        for session in sessions:
            await app.delete_session(session.id)
            click.echo(f"deleted {_line(session)}")


def _line(session: "Session") -> str:
    """Return a session's id and title on one line, with control characters escaped."""
    return escape_controls(f"{session.id}  {' '.join(session.title.split())}")


def _confirm(sessions: "list[Session]") -> None:
    if not sys.stdin.isatty():
        raise InvalidInputError("there is no terminal to ask on; pass --yes to delete")
    for session in sessions:
        click.echo(_line(session), err=True)

    with interruptible():
        if not click.confirm("Delete permanently?", default=False, err=True):
            raise click.Abort


@click.command()
@click.argument("session_id", metavar="ID", shell_complete=live("session"))
@click.argument("title")
@click.pass_obj
def rename(directory: Path, session_id: str, title: str) -> None:
    """Rename a session."""
    if not title.strip():
        raise InvalidInputError("the title is empty; give one")
    session = run_async(_update(directory, session_id, title=title))
    click.echo(_line(session))


@click.command()
@click.argument("session_id", metavar="ID", shell_complete=live("session"))
@click.option("--undo", is_flag=True, help="Restore the session from the archive.")
@click.pass_obj
def archive(directory: Path, session_id: str, *, undo: bool) -> None:
    """Archive a session.

    `session list --all` still shows it.
    """
    session = run_async(_update(directory, session_id, archived=not undo))
    click.echo(_line(session))


async def _update(
    directory: Path, session_id: str, *, title: str | None = None, archived: bool | None = None
) -> "Session":

    async with open_app(directory) as app:
        session = await find_session(app, session_id)
        return await app.update_session(session.id, title=title, archived=archived)


@click.command()
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@click.option("--at", "message_id", metavar="MESSAGE", help="Copy only what comes before MESSAGE.")
@click.pass_obj
def fork(directory: Path, session_id: str | None, message_id: str | None) -> None:
    """Start a new session as a copy of another.

    The new id is printed.
    """
    click.echo(run_async(_fork(directory, session_id, message_id)).id)


async def _fork(directory: Path, session_id: str | None, message_id: str | None) -> "Session":

    async with open_app(directory) as app:
        return await forked(app, (await find_session(app, session_id)).id, message_id)


@click.command()
@click.argument("old_folder", type=click.Path(path_type=Path))
@click.pass_obj
def adopt(directory: Path, old_folder: Path) -> None:
    """Take over the sessions of a renamed or moved folder.

    OLD_FOLDER is the path that no longer exists.
    """
    for session in run_async(_adopt(directory, old_folder)):
        click.echo(_line(session))


async def _adopt(directory: Path, old_folder: Path) -> "tuple[Session, ...]":

    async with open_app(directory) as app:
        return await adopt_folder(app, old_folder)


@click.command()
@click.argument("text")
@click.option(
    "-n",
    "--max-count",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most the N newest.",
)
@click.pass_obj
def search(directory: Path, text: str, max_count: int) -> int:
    """Search the sessions by title and text.

    The exit code is 1 if nothing is found.
    """
    hits = run_async(_hits(directory, text, max_count))
    rows = [
        (hit.session.id, moment(hit.session.time.updated), hit.session.title, hit.excerpt)
        for hit in hits
    ]
    show_table(("session", "updated", "title", "text"), rows, none=f"no session has {text!r}")
    return 0 if hits else 1


async def _hits(directory: Path, text: str, limit: int) -> "tuple[SearchHit, ...]":

    async with open_app(directory) as app:
        return await app.search(text, limit=limit)


COMMANDS = (delete, rename, archive, fork, adopt, search)
