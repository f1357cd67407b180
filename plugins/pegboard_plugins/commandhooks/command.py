"""`pegboard hooks`: commands that list and trust command hooks of other agents."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from pegboard import App
from pegboard.cli import Group, open_app, run_async
from pegboard.display import escape_controls
from pegboard.errors import TrustError
from pegboard.unstable import TrustStore, open_workspace, refuse_within_tool
from pegboard_plugins.commandhooks import FILES
from pegboard_plugins.commandhooks.foundhooks import (
    digests_of,
    files_of,
    found_files,
    is_of_project,
    is_waiting,
)
from pegboard_plugins.commandhooks.hookfiles import HookFile, places
from pegboard_plugins.commandhooks.hookruns import HookRuns, read_runs, runs_file
from pegboard_plugins.shared import has_project_bundles
from pegboard_plugins.shared.terminal import question_terminal
from pegboard_plugins.skill import SkillSite, find_skills


@click.group(cls=Group)
def hooks() -> None:
    """List and trust command hooks of other agents."""


@hooks.command("list")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The format of the output.",
)
@click.pass_obj
def list_hooks(directory: Path, *, style: Literal["text", "json"]) -> None:
    """List the hooks that are found, with the runs that each has had.

    Ignored parts of the hook files are listed below the hooks.
    """
    run_async(_list(directory, style))


@hooks.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def trust(directory: Path, *, yes: bool) -> None:
    """Trust the hooks of this project as they are now.

    This covers the hook files, and the files of the project that their commands name. A changed
    file must be trusted again before its hooks run. The files that a script loads are not checked.
    """
    refuse_within_tool("pegboard hooks trust")
    run_async(_trust(directory, yes=yes))


async def trust_found_hooks(directory: Path, *, yes: bool) -> bool:
    """Show the project's untrusted hooks, ask the user, and trust them; return if any waited."""
    place = open_workspace(directory)
    found = places(FILES, Path.home(), place)
    own = any(is_project and path.exists() for _, path, is_project in found)
    site = SkillSite(directory=place.directory, worktree=place.worktree, home=None, config_dir=None)
    if not own and not has_project_bundles(place.worktree) and not find_skills(site):
        return False
    async with open_app(directory) as app:
        is_on = any(each.name == "commandhooks" and not each.blocked for each in app.plugins.infos)
        waits = is_on and bool(waiting_files(app))
        if waits:
            _trust_hooks(app, yes=yes)
        return waits


async def _list(directory: Path, style: Literal["text", "json"]) -> None:
    async with open_app(directory) as app:
        found = found_files(app, FILES)
        runs = read_runs(runs_file(app.places.cache / "plugins" / "commandhooks"))
        if style == "json":
            rows = [_row(app, file, runs) for file in found]
            click.echo(json.dumps(rows, indent=2))  # ASCII: a terminal obeys none of it
            return
        for file in found:
            differing = is_waiting(app, file)
            mark = "switched off" if file.is_off else "not trusted" if differing else file.mark
            click.echo(escape_controls(f"{file.path} ({mark})"))
            _show(file, runs)
        if not found:
            click.echo("no hooks are found here")


async def _trust(directory: Path, *, yes: bool) -> None:
    async with open_app(directory) as app:
        decision = app.trust
        if decision.files and not decision.trusted_by_user:
            raise TrustError(
                f"{decision.root} is not trusted; `pegboard trust allow` shows and trusts its code,"
                " and its hooks"
            )
        _trust_hooks(app, yes=yes)


def _trust_hooks(app: App, *, yes: bool) -> None:
    decision = app.trust
    files = [file for file in files_of(app, FILES) if is_of_project(app, file)]
    digests = {
        name: digest for file in files for name, digest in digests_of(app.workspace, file).items()
    }
    if not digests:
        click.echo("no hooks of this project are found")
        return
    for file in files:
        click.echo(escape_controls(str(file.path)))
        _show(file)
    for name, digest in digests.items():
        click.echo(escape_controls(f"{digest[:16]}  {name}"))
    if not yes and not sys.stdin.isatty():
        raise TrustError("there is no terminal to ask on; review the hooks, then pass --yes")
    if not yes:
        with question_terminal():
            click.confirm(escape_controls(f"Run these hooks of {decision.root}?"), abort=True)
    store = TrustStore(app.places.trust)
    if not decision.trusted_by_user:
        store.allow(decision)
    store.allow_programs(decision.root, digests)
    click.echo(escape_controls(f"trusted hooks in {decision.root}"))


def _row(app: App, file: HookFile, runs: Mapping[str, HookRuns]) -> dict[str, object]:
    """Return a hook file with its hooks as JSON."""
    hooks = [
        {
            "event": hook.name,
            "matcher": hook.matcher or "*",
            "command": hook.command,
            "args": hook.args,
            "timeout_s": hook.timeout_s,
            "runs": ran.count,
            "mean_ms": ran.mean_ms,
            "last": ran.last or None,
        }
        for hook in file.hooks
        for ran in (runs.get(hook.label, HookRuns()),)
    ]
    return {
        "file": str(file.path),
        "trusted": not is_waiting(app, file),
        "hooks": hooks,
        "not_honoured": file.notes,
    }


def waiting_files(app: App) -> list[Path]:
    """Return the project's hook files with hooks that wait for trust."""
    return [file.path for file in found_files(app, FILES) if file.hooks and is_waiting(app, file)]


def _show(file: HookFile, runs: Mapping[str, HookRuns] | None = None) -> None:
    for hook in file.hooks:
        words = " ".join((hook.command, *(hook.args or ())))
        ran = f" ({runs.get(hook.label, HookRuns())})" if runs is not None else ""
        click.echo(escape_controls(f"  {hook.name} {hook.matcher or '*'}: {words}{ran}"))
    for note in file.notes:
        click.echo(escape_controls(f"  {note}"))
