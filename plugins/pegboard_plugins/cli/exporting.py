"""`pegboard session export` and `import`: sessions as files."""

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from pegboard import InvalidInputError
from pegboard.cli import open_app, run_async
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.run import answer_stream

if TYPE_CHECKING:
    from pegboard.schema.session import Session
    from pegboard_plugins.cli.export.exporting import Exported, Form, Wanted

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("export")
@click.argument("session_id", metavar="[ID]", required=False, shell_complete=live("session"))
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page for a browser.")
@click.option("--md", type=_FILE, metavar="FILE", help="Write Markdown, for an issue or a review.")
@click.option(
    "--jsonl", type=_FILE, metavar="FILE", help="Write JSON lines, which `session import` takes."
)
@click.option(
    "--atif", type=_FILE, metavar="FILE", help="Write a trajectory for evaluation and training."
)
@click.option("--no-redact", is_flag=True, help="Keep secrets and the path of the home folder.")
@click.option("--with-reasoning", is_flag=True, help="Include what the model thought.")
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help="Export only the last N prompts."
)
@click.pass_obj
def export_session(  # noqa: PLR0913 - its options
    directory: Path,
    session_id: str | None,
    *,
    html: Path | None,
    md: Path | None,
    jsonl: Path | None,
    atif: Path | None,
    no_redact: bool,
    with_reasoning: bool,
    last: int | None,
) -> None:
    """Export a session as a page, Markdown, JSON lines or ATIF.

    The sessions of its subagents are included. Keys, strings that look like secrets, and the path
    of the home folder are redacted; their number goes to standard error. Without a FILE, JSON lines
    go to standard output.
    """
    from pegboard_plugins.cli.export.exporting import (  # `pegboard --help` goes without it
        Wanted,
        write_export,
    )

    files: dict[Form, Path | None] = {"html": html, "md": md, "jsonl": jsonl, "atif": atif}
    named: list[tuple[Form, Path | None]] = [
        (form, file) for form, file in files.items() if file is not None
    ]
    if len(named) > 1:
        options = " and ".join(f"--{form}" for form, _ in named)
        raise InvalidInputError(f"{options} cannot be combined; run the command once for each")
    form, target = named[0] if named else ("jsonl", None)
    wanted = Wanted(form=form, redacted=not no_redact, with_reasoning=with_reasoning, last=last)
    with answer_stream() as out:  # what plugins print is no line of the export
        exported = run_async(_export(directory, session_id, wanted))
        if target is None:
            out.buffer.write(exported.content)
        else:
            write_export(target, exported.content)
    click.echo(
        exported.report if target is None else f"wrote {target}; {exported.report}", err=True
    )


async def _export(directory: Path, session_id: str | None, wanted: "Wanted") -> "Exported":
    from pegboard_plugins.cli.export.exporting import (
        export_session as export,  # `pegboard --help` goes without it
    )

    async with open_app(directory) as app:
        return await export(app, (await find_session(app, session_id)).id, wanted)


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.pass_obj
def import_session(directory: Path, file: BinaryIO) -> None:
    """Import a session that `session export` wrote as JSON lines.

    The session joins this project, and its new id is printed. If FILE has any error, nothing is
    imported; `-` is standard input.
    """
    click.echo(run_async(_import(directory, file)).id)


async def _import(directory: Path, file: BinaryIO) -> "Session":
    from pegboard_plugins.cli.export.sessionfile import (  # `pegboard --help` goes without it
        LINE_LIMIT_BYTES,
        store_session,
    )

    lines = iter(lambda: file.readline(LINE_LIMIT_BYTES + 1), b"")
    async with open_app(directory) as app:
        return await store_session(app, lines)


COMMANDS = (export_session, import_session)
