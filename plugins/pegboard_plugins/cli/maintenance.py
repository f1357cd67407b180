"""`pegboard session repair|gc|du`: the maintenance of the database and of stored files."""

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard import AppOptions
from pegboard.app import IdSource, UserFolders, open_storage
from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.schema.event import SessionIdle
from pegboard.unstable import counted, remove_old_outputs
from pegboard_plugins.cli.jsontext import format_option, schema_json
from pegboard_plugins.cli.tables import table

if TYPE_CHECKING:
    from pegboard.schema.event import Event
    from pegboard.storage import SessionSize

KEPT_S = 7 * 24 * 3600.0
"""Outputs of tools are kept this long (opencode `tool/truncation.ts`)."""
LARGEST = 10
_UNITS = ("B", "KiB", "MiB", "GiB")
_UNIT = 1024


@click.command()
def repair() -> int:
    """Check and repair the database after a crash.

    Opening the database repairs it; this command prints what there was to do. If the file is
    damaged, a new one gets everything that can be read, and the damaged file stays next to it.
    The exit code is 1 if something cannot be repaired.
    """
    warnings, interrupted, problems, sessions = run_async(_repair())
    for text in warnings:
        click.echo(escape_controls(f"warning: {text}"))
    for session_id in interrupted:
        click.echo(f"interrupted: {session_id} was running when its process ended")
    for text in problems:
        click.echo(escape_controls(f"problem: {text}"))
    if problems:
        click.echo("what can still be read can be saved with `pegboard session export`")
        return 1
    click.echo(f"the database is sound: {counted(sessions, 'session')}")
    return 0


async def _repair() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    before = await _inspect()
    if not before[2]:
        return before
    # What the look has found in the file itself is what the next opening mends.
    warnings, interrupted, problems, sessions = await _inspect()
    return (*before[0], *warnings), (*before[1], *interrupted), problems, sessions


async def _inspect() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:

    events: list[Event] = []
    storage = await open_storage(ids=IdSource(), on_commit=events.extend)
    try:
        idle = (each.properties for each in events)
        interrupted = tuple(each.session_id for each in idle if isinstance(each, SessionIdle))
        problems = await storage.problems()
        sessions = 0 if problems else len(await storage.sessions())
        return storage.warnings, interrupted, problems, sessions
    finally:
        await storage.aclose()


@click.command()
@click.pass_obj
def gc(directory: Path) -> None:
    """Delete old tool outputs and snapshots to free disk space.

    These are tool outputs older than 7 days, snapshots that are too old or that no session can
    return to, and empty database pages.
    """
    freed = run_async(_collect(directory, _places()))
    for name, size in freed.items():
        click.echo(f"{format_bytes(size):>10}  {name}")


async def _collect(directory: Path, places: "UserFolders") -> dict[str, int]:

    async with open_app(directory, AppOptions(trust=False)) as app:
        used = {Path(each.directory) for each in await app.storage.sizes()}
        snapshots = await app.snapshots.collect(used) if app.snapshots is not None else 0
    outputs = await asyncio.to_thread(_drop_outputs, places.tool_output)
    storage = await open_storage(ids=IdSource(), directory=directory)
    try:
        pages = await storage.vacuum()
    finally:
        await storage.aclose()
    return {"outputs of tools": outputs, "snapshots": snapshots, "database": pages}


def _drop_outputs(folder: Path) -> int:
    """Delete old output files, and return the number of freed bytes."""
    before = _size(folder)
    remove_old_outputs(folder, before=time.time() - KEPT_S)
    return before - _size(folder)


@click.command()
@format_option("table")
def du(style: Literal["table", "json"]) -> None:
    """Show the disk usage of the sessions, by project.

    The largest project comes first.
    """
    sizes, totals = run_async(_sizes(_places()))
    if style == "json":
        click.echo(schema_json({**totals, "sessions": sizes}))
        return
    projects = [
        (format_bytes(size), str(count), where) for where, (size, count) in _projects(sizes).items()
    ]
    largest = [
        (format_bytes(each.size_bytes), each.session_id, each.title) for each in sizes[:LARGEST]
    ]
    everything = [(format_bytes(size), name.replace("_", " ")) for name, size in totals.items()]
    tables = (
        table(("size", "sessions", "project"), projects),
        table(("size", "session", "title"), largest),
        table(("size", "of all projects"), everything),
    )
    click.echo("\n".join(filter(None, tables)), nl=False)


async def _sizes(places: "UserFolders") -> "tuple[tuple[SessionSize, ...], dict[str, Any]]":

    storage = await open_storage(ids=IdSource())
    try:
        sizes, files = await storage.sizes(), storage.files
    finally:
        await storage.aclose()
    return sizes, {
        "database": sum(await asyncio.to_thread(lambda: [_size(each) for each in files])),
        "tool_output": await asyncio.to_thread(_size, places.tool_output),
        "snapshots": await asyncio.to_thread(_size, places.snapshots),
    }


def _projects(sizes: "tuple[SessionSize, ...]") -> dict[str, tuple[int, int]]:
    """Return the bytes and the number of sessions of each directory, the largest first."""
    found: dict[str, tuple[int, int]] = {}
    for each in sizes:
        size, count = found.get(each.directory, (0, 0))
        found[each.directory] = (size + each.size_bytes, count + 1)
    return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def format_bytes(size: float) -> str:
    """Format a number of bytes with a unit, such as `1.5 MiB`."""
    for unit in _UNITS[:-1]:
        if abs(size) < _UNIT:
            return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"
        size /= _UNIT
    return f"{size:.1f} {_UNITS[-1]}"


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 if it is missing."""
    if not path.is_dir():
        return path.lstat().st_size if path.exists() else 0
    return sum(each.lstat().st_size for each in path.rglob("*") if not each.is_dir())


def _places() -> "UserFolders":

    return UserFolders.of(os.environ)


COMMANDS = (repair, gc, du)
