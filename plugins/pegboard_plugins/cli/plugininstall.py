"""`pegboard plugins install` and `uninstall`: packages in the environment of Pegboard itself."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import click

from pegboard.cli import Exit
from pegboard.processes import find_program
from pegboard.unstable import open_workspace, refuse_within_tool
from pegboard_plugins.cli.distributions import OWN, DistributionEntry, brings, entries
from pegboard_plugins.cli.jsontext import as_json, format_option

_ENSURE = f"{sys.executable} -m ensurepip"
STYLE = format_option("text")


@click.command()
@click.argument("requirements", nargs=-1, required=True, metavar="PACKAGE...")
@STYLE
def install(requirements: tuple[str, ...], style: Literal["text", "json"]) -> None:
    """Install PACKAGEs, by name, path or URL, next to Pegboard.

    An installed package is trusted: its plugins run at the next start.
    """
    refuse_within_tool("pegboard plugins install")
    before = set(entries())
    command = installing(tuple(map(_absolute, requirements)))
    _run(command)
    importlib.invalidate_caches()
    _tell("installed", sorted(set(entries()) - before), command, style)


@click.command()
@click.argument("name")
@STYLE
def uninstall(name: str, style: Literal["text", "json"]) -> None:
    """Remove the package NAME, or that of the plugin NAME."""
    refuse_within_tool("pegboard plugins uninstall")
    distribution = brings(name)
    if distribution == OWN or name in {each.name for each in entries() if each.distribution == OWN}:
        text = f"{name} comes with Pegboard; `pegboard plugins disable {name}` switches it off"
        raise click.UsageError(text)
    if not distribution:
        known = ", ".join(sorted({each.name for each in entries() if each.distribution != OWN}))
        raise click.UsageError(f"no package brings {name!r}; installed: {known or 'none'}")
    gone = [each for each in entries() if each.distribution == distribution]
    command = uninstalling(distribution)
    _run(command)
    _tell("removed", gone, command, style)


def _absolute(requirement: str) -> str:
    """Return an existing path as an absolute path, and any other requirement unchanged."""
    return str(Path(requirement).resolve()) if Path(requirement).exists() else requirement


def installing(requirements: tuple[str, ...], prefix: Path = Path(sys.prefix)) -> tuple[str, ...]:
    """Return the command line that installs packages into this interpreter's environment.

    :raises click.UsageError: when there is no installer.
    """
    if (prefix / "pipx_metadata.json").is_file():
        return (_program("pipx"), "inject", prefix.name, *requirements)
    return (*_pip("install", prefix), *requirements)


def uninstalling(distribution: str, prefix: Path = Path(sys.prefix)) -> tuple[str, ...]:
    """Return the command line that removes a distribution from this environment.

    :raises click.UsageError: when there is no installer.
    """
    if (prefix / "pipx_metadata.json").is_file():
        return (_program("pipx"), "uninject", prefix.name, distribution)
    pip = _pip("uninstall", prefix)
    sure = () if "uv" in Path(pip[0]).name else ("--yes",)
    return (*pip, *sure, distribution)


def _pip(verb: str, prefix: Path) -> tuple[str, ...]:
    """Return the start of an install command with `verb`.

    It runs uv if uv installed Pegboard as a tool, else the interpreter's pip, or uv or pip on PATH.
    """
    here = ("--python", sys.executable)
    if (prefix / "uv-receipt.toml").is_file():
        return (_program("uv"), "pip", verb, *here)
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-P", "-m", "pip", verb)
    if found := _find_program("uv"):
        return (found, "pip", verb, *here)
    if found := _find_program("pip") or _find_program("pip3"):
        return (found, *here, verb)
    text = f"this environment has no pip: put pip or uv on the PATH, or make it with `{_ENSURE}`"
    raise click.UsageError(text)


def _find_program(name: str) -> str | None:
    """Return the path of the user's program with this name; a project's program is ignored."""
    return find_program(name, os.environ, root=open_workspace(Path.cwd()).worktree)


def _program(name: str) -> str:
    found = _find_program(name)
    if found is None:
        text = f"this environment is {name}'s, and there is no {name} on the PATH"
        raise click.UsageError(text)
    return found


def _run(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        click.echo(f"failed: {' '.join(command)}", err=True)
        raise SystemExit(Exit.FAILED)


def _tell(
    verb: str,
    found: list[DistributionEntry],
    command: tuple[str, ...],
    style: Literal["text", "json"],
) -> None:
    if style == "json":
        rows = [
            {"name": each.name, "distribution": each.distribution, "version": each.version}
            for each in found
        ]
        click.echo(as_json({verb: rows, "command": list(command)}, indent=2))
        return
    for each in found:
        click.echo(f"{verb}: {each.name} ({each.distribution} {each.version})")
    if not found:
        click.echo("no plugin is new; `pegboard plugins list` shows those there are")
