"""`pegboard doctor`: a check of the setup, with a remedy for each problem."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pegboard import App, __version__
from pegboard.cli import Exit, Group, run_async
from pegboard.display import escape_controls
from pegboard.errors import PegboardError
from pegboard.processes import find_program
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.jsontext import schema_json
from pegboard_plugins.cli.modelprobe import ProbeFinding, probe
from pegboard_plugins.cli.picking import can_pick, pick
from pegboard_plugins.shared.frontend import settings_warnings

_PROGRAMS = {
    "git": "without it nothing is undone, and no file is known to be the project's",
    "rg": "not found: searches are slower",
}


@click.group(cls=Group, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--all-libraries", is_flag=True, help="List the skills of all libraries of the project, too."
)
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool, all_libraries: bool) -> None:
    """Check the setup and suggest a remedy for each problem.

    The checks cover the installation, the configuration, keys, the chosen model, files of other
    agents and plugins.
    """
    if ctx.invoked_subcommand is None:
        found = run_async(_health(ctx.obj, all_libraries=all_libraries))
        _report(found, as_json=as_json)


@doctor.command("model")
@click.argument("name", required=False, shell_complete=live("model"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def model(directory: Path, name: str | None, *, as_json: bool) -> None:
    """Test a model with a text, a tool call and a picture.

    This costs a few cents at most.
    """
    _report(run_async(_probe(directory, name)), as_json=as_json, failed=Exit.PROVIDER)


def _report(findings: Sequence[ProbeFinding], *, as_json: bool, failed: Exit = Exit.FAILED) -> None:
    """Print the findings; exit with `failed` if a check fails."""
    if as_json:
        click.echo(schema_json(findings))
    else:
        width = max(len(each.what) for each in findings)
        for each in findings:
            click.echo(escape_controls(f"{each.state:5}  {each.what:{width}}  {each.text}"))
    if any(each.state == "fails" for each in findings):
        sys.exit(failed)


async def _probe(directory: Path, name: str | None) -> tuple[ProbeFinding, ...]:

    async with App.open(directory) as app:
        return await probe(app, name or await _pick(app))


async def _pick(app: "App") -> str:
    """Let the user choose a model; without a terminal, return the configured model.

    :raises click.UsageError: when no model is configured.
    """
    found = sorted((f"{each.provider_id}/{each.id}", each.name) for each in await app.models())
    if can_pick() and found:
        first = [each for each in found if each[0] == app.config.model]
        return pick("model", list(dict.fromkeys((*first, *found))))
    if app.config.model is None:
        raise click.UsageError("say which: pegboard doctor model PROVIDER/MODEL")
    return app.config.model


async def _health(directory: Path, *, all_libraries: bool) -> tuple[ProbeFinding, ...]:
    from pegboard_plugins.cli.foreignhealth import (
        foreign_health,  # `pegboard --help` goes without it
    )

    async with App.open(directory) as app:
        chosen = await _chosen_model(app)
        own = (*_install(app), *_configuration(app), *_providers(app), chosen)
        foreign = await asyncio.to_thread(foreign_health, app, all_libraries=all_libraries)
        return (*own, *foreign, *_plugins(app))


def _install(app: "App") -> Iterator[ProbeFinding]:

    version = ".".join(map(str, sys.version_info[:3]))
    text = f"Pegboard {__version__}, Python {version}, {sys.prefix}"
    yield ProbeFinding(what="install", state="ok", text=text)
    for program, lack in _PROGRAMS.items():
        found = find_program(program, os.environ, root=app.workspace.worktree)
        yield ProbeFinding(what=program, state="ok" if found else "warns", text=found or lack)


def _configuration(app: "App") -> Iterator[ProbeFinding]:
    files = ", ".join(str(file) for file in app.config_sources.files) or "no file"
    yield ProbeFinding(what="configuration", state="ok", text=files)
    for warning in settings_warnings(app):
        yield ProbeFinding(what="configuration", state="warns", text=warning)
    for warning in app.storage.warnings:
        yield ProbeFinding(what="database", state="warns", text=warning)
    for path in app.untrusted:
        text = f"{path} is not run: `pegboard trust allow` shows what it is"
        yield ProbeFinding(what="trust", state="warns", text=text)


def _providers(app: "App") -> Iterator[ProbeFinding]:
    sources = {name: app.keys.source(name, each.env) for name, each in app.providers.items()}
    for name, source in sources.items():
        if source is not None:
            yield ProbeFinding(what="key", state="ok", text=f"{name}: {source}")
    if not any(sources.values()):
        text = "no API key is set; `pegboard auth login` saves one"
        yield ProbeFinding(what="key", state="warns", text=text)


async def _chosen_model(app: "App") -> ProbeFinding:

    name = app.config.model
    if name is None:
        text = "no model is chosen; `pegboard config set model PROVIDER/MODEL` chooses one"
        return ProbeFinding(what="model", state="warns", text=text)
    try:
        found = await app.resolve_model(name)
    except PegboardError as error:
        return ProbeFinding(what="model", state="fails", text=str(error))
    lacks = [
        what
        for what, value in (("window", found.limit.context), ("price", found.cost))
        if value is None
    ]
    if lacks:
        text = (
            f"{name}: its {' and '.join(lacks)} are unknown"
            if len(lacks) > 1
            else (f"{name}: its {lacks[0]} is unknown")
        )
        return ProbeFinding(what="model", state="warns", text=text)
    return ProbeFinding(
        what="model", state="ok", text=f"{name}; `pegboard doctor model {name}` asks it"
    )


def _plugins(app: "App") -> Iterator[ProbeFinding]:
    problems = [f"{each.plugin}: {each.text}" for each in app.plugins.problems]
    problems += [f"{each.plugin}: {each.message}" for each in app.failures]
    for text in problems:
        yield ProbeFinding(what="plugin", state="fails", text=text)
    if not problems:
        text = f"{len(app.plugins.infos)} loaded, no problems"
        yield ProbeFinding(what="plugins", state="ok", text=text)
