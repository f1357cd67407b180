"""`pegboard session`: the sessions of a project, and their messages."""

import sys
from os import environ
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard.cli import Group, open_app, run_async
from pegboard.display import escape_controls
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import FilePart, TextPart, ToolPart
from pegboard.schema.session import Tokens
from pegboard_plugins.cli import bisecting, costs, exporting, maintenance, sessioncommands, undoing
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.jsontext import format_option, schema_json
from pegboard_plugins.cli.render import (
    LABEL_WIDTH,
    Line,
    failure_text,
    open_screen,
    tool_detail,
    tool_head,
)
from pegboard_plugins.cli.tables import moment, show_table
from pegboard_plugins.shared.frontend import age, follow_folder, gone_folders, gone_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard import App
    from pegboard.schema.message import Turn
    from pegboard.schema.session import Session
    from pegboard_plugins.cli.render import OutputScreen


@click.group(cls=Group)
def session() -> None:
    """List, show and manage the sessions of this project."""


for each in (
    *sessioncommands.COMMANDS,
    *undoing.COMMANDS,
    *maintenance.COMMANDS,
    *exporting.COMMANDS,
    *bisecting.COMMANDS,
    costs.cost,
):
    session.add_command(each)


@session.command("list")
@click.option(
    "-n", "--max-count", type=click.IntRange(min=1), metavar="N", help="Show at most the N newest."
)
@format_option("table")
@click.option(
    "-a",
    "--all",
    "archived",
    is_flag=True,
    help="Include archived sessions and those without an answer.",
)
@click.option(
    "--all-projects",
    is_flag=True,
    help="Include the sessions of every project, with their folders.",
)
@click.pass_obj
def list_sessions(
    directory: Path,
    max_count: int | None,
    style: Literal["table", "json"],
    *,
    archived: bool,
    all_projects: bool,
) -> None:
    """List the sessions, newest first."""
    every, note = run_async(_sessions(directory, everything=archived, all_projects=all_projects))
    found = every[:max_count]
    if style == "json":
        click.echo(schema_json([_row(each) for each in found]))
        return
    rows = [
        (
            each.id,
            moment(each.time.updated),
            age(time() - each.time.updated / 1000),
            each.directory,
            each.title,
        )
        for each in found
    ]
    columns = ("session", "updated", "age", "folder", "title")
    none = escape_controls(f"no sessions yet{note}")
    if all_projects:  # a folder that is cut is of no use for -C or `adopt`
        width = max((len(each.directory) for each in found), default=LABEL_WIDTH)
        show_table(columns, rows, none=none, width=max(LABEL_WIDTH, width))
    else:
        short = [(*row[:3], row[4]) for row in rows]
        show_table((*columns[:3], columns[4]), short, none=none)
    if found:
        click.echo(f"{len(found)} of {len(every)} sessions", err=True)


@session.command()
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@format_option("text")
@click.pass_obj
def show(directory: Path, session_id: str | None, style: Literal["text", "json"]) -> None:
    """Show a session.

    As JSON it is `{info, messages}`, with everything that is stored.
    """
    info, turns = run_async(_conversation(directory, session_id))
    if style == "json":
        click.echo(schema_json({"info": info, "messages": turns}))
        return

    screen = open_screen(sys.stdout, sys.stdout, environ)
    for turn in turns:
        _show_turn(turn, screen, directory)
    screen.close()


async def _sessions(
    directory: Path, *, everything: bool, all_projects: bool
) -> "tuple[Sequence[Session], str]":
    """Return the sessions to list, and a note on missing folders if there are none, or else ""."""
    async with open_app(directory) as app:
        if note := await follow_folder(app):
            click.echo(escape_controls(note), err=True)
        found: Sequence[Session] = await (
            app.storage.sessions(roots=True) if all_projects else app.sessions()
        )
        if not found and (gone := await gone_folders(app)):
            return (), f"; {gone_note(gone)}"
        if everything:
            return found, ""
        listed = [each for each in found if each.time.archived is None]
        return [each for each in listed if await _is_answered(app, each)], ""


async def _is_answered(app: "App", session: "Session") -> bool:
    """Return whether a model has answered in the session."""
    if session.tokens not in (None, Tokens()):
        return True
    return any(_is_answer(turn) for turn in await app.storage.turns(session.id))


def _is_answer(turn: "Turn") -> bool:
    """Return whether the turn is a model's answer, even if the user stopped it in progress."""
    if not isinstance(turn.info, AssistantMessage):
        return False
    return not turn.info.error or any(isinstance(each, TextPart | ToolPart) for each in turn.parts)


async def _conversation(
    directory: Path, session_id: str | None
) -> "tuple[Session, tuple[Turn, ...]]":

    async with open_app(directory) as app:
        session = await find_session(app, session_id)
        return session, await app.list_turns(session.id)


def _row(each: "Session") -> dict[str, Any]:
    return {
        "id": each.id,
        "title": each.title,
        "updated": each.time.updated,
        "created": each.time.created,
        "projectId": each.project_id,
        "directory": each.directory,
    }


def _show_turn(turn: "Turn", screen: "OutputScreen", directory: Path) -> None:

    is_answer = isinstance(turn.info, AssistantMessage)
    for part in turn.parts:
        match part:
            case TextPart(synthetic=False, text=text) if text.strip():
                screen.answer(escape_controls(text if is_answer else f"> {text}"), streamed="")
            case FilePart(filename=filename, url=url):
                screen.line(Line(head="file", text=filename or url[:80], style="dim"))
            case ToolPart():
                screen.line(tool_head(part, directory))
                for line in tool_detail(part, indent=1):
                    screen.line(line)
            case _:
                pass
    if isinstance(turn.info, AssistantMessage) and turn.info.error:
        screen.line(Line(head="error:", text=failure_text(turn.info.error), style="error"))
