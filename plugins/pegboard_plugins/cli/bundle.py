"""`pegboard plugins bundle`: skills, commands, agents, hooks and servers in one folder."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from pegboard import InvalidInputError
from pegboard.app import UserFolders
from pegboard.cli import Group
from pegboard.display import escape_controls
from pegboard.errors import TrustError
from pegboard.unstable import refuse_within_tool
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.commandhooks.hookfiles import HookFile, read_hooks
from pegboard_plugins.foreignfiles.bundleparts import read_bundle_setup
from pegboard_plugins.foreignfiles.findings import NEEDS_MCP
from pegboard_plugins.shared.frontend import Bundle, BundleStore, read_bundle

YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group(cls=Group)
def bundle() -> None:
    """Install, trust and remove bundles of other agents.

    A bundle is a folder of Agent Plugins 1.0.0, or a plugin of Claude Code.
    """


@bundle.command()
@click.argument("source")
@click.option("--from", "market", default="", help="A folder or git URL that lists bundles.")
@YES
def add(source: str, *, market: str, yes: bool) -> None:
    """Install the bundle of a folder or a git URL, and ask for trust.

    `URL#NAME` is a branch or a tag. With --from, SOURCE is a name in the list of that marketplace.
    Nothing of a bundle acts before it is trusted.
    """
    refuse_within_tool("pegboard plugins bundle add")
    store = _store()
    added = store.add(source, market=market)
    click.echo(escape_controls(f"installed {added.name} {added.version}".rstrip()))
    _ask_for_trust(store, added, yes=yes)


@bundle.command("list")
@format_option("text")
def list_bundles(style: Literal["text", "json"]) -> None:
    """List the installed bundles."""
    store = _store()
    rows = [
        {
            "name": name,
            "version": _version(store, name),
            "source": entry.source,
            "market": entry.market,
            "revision": entry.revision,
            "trusted": store.is_trusted(name, entry),
        }
        for name, entry in store.installed().items()
    ]
    if style == "json":
        click.echo(as_json(rows, indent=2))
        return
    for row in rows:
        mark = "trusted" if row["trusted"] else "not trusted"
        known = f"{row['name']} {row['version']}".rstrip()
        place = _origin(str(row["source"]), str(row["market"]))
        click.echo(escape_controls(f"{known} ({mark}): {place}"))
    if not rows:
        click.echo("no bundles are installed; `pegboard plugins bundle add FOLDER` installs one")


@bundle.command()
@click.argument("name")
def info(name: str) -> None:
    """Show the parts of the bundle NAME, and which have no effect."""
    store = _store()
    _check_installed(store, name)
    entry = store.installed()[name]
    _show(store.bundle(name))
    click.echo(escape_controls(f"from {_origin(entry.source, entry.market)}"))
    if store.is_trusted(name, entry):
        click.echo("trusted: its parts act")
    else:
        advice = f"`pegboard plugins bundle trust {name}`"
        click.echo(f"not trusted as it is: nothing of it acts before {advice}")


@bundle.command()
@click.argument("name")
@YES
def trust(name: str, *, yes: bool) -> None:
    """Trust the bundle NAME as it is now, with all of its files."""
    refuse_within_tool("pegboard plugins bundle trust")
    store = _store()
    _check_installed(store, name)
    _ask_for_trust(store, store.bundle(name), yes=yes)


@bundle.command()
@click.argument("name")
@YES
def update(name: str, *, yes: bool) -> None:
    """Install the bundle NAME again, and ask for trust if it has changed.

    The files that it stores stay.
    """
    refuse_within_tool("pegboard plugins bundle update")
    store = _store()
    _check_installed(store, name)
    entry = store.installed()[name]
    before = entry.trusted
    added = store.add(entry.source, market=entry.market)
    if before and store.digest(added.name) == before:
        store.trust(added.name, before)
        click.echo(escape_controls(f"{added.name} has not changed"))
        return
    _ask_for_trust(store, added, yes=yes)


@bundle.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the bundle NAME and the files that it stores."""
    refuse_within_tool("pegboard plugins bundle remove")
    store = _store()
    _check_installed(store, name)
    store.remove(name)
    click.echo(escape_controls(f"removed {name}"))


@bundle.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True)
def check(folders: tuple[str, ...]) -> None:
    """Check that each FOLDER is a bundle, and show its parts."""
    refused: list[InvalidInputError] = []
    for folder in map(Path, folders):
        try:
            _show(read_bundle(folder, folder / "data"))
        except InvalidInputError as error:
            refused.append(error)
    for each in refused[:-1]:
        click.echo(escape_controls(f"error: {each}"), err=True)
    if refused:
        raise refused[-1]


def _store() -> BundleStore:
    return BundleStore(UserFolders.of(os.environ))


def _origin(source: str, market: str) -> str:
    return f"{source} of {market}" if market else source


def _version(store: BundleStore, name: str) -> str:
    try:
        return store.bundle(name).version
    except InvalidInputError:  # its folder is gone or broken, which `trust` says
        return ""


def _check_installed(store: BundleStore, name: str) -> None:
    names = store.installed()
    if name not in names:
        raise click.UsageError(f"no bundle {name!r}; installed: {', '.join(names) or 'none'}")


def _ask_for_trust(store: BundleStore, added: Bundle, *, yes: bool) -> None:
    digest = store.digest(added.name)
    _show(added)
    click.echo(f"digest {digest[:16]}")
    if not yes and not sys.stdin.isatty():
        raise TrustError(
            f"{added.name} is not trusted: there is no terminal to ask on; review it, then run"
            f" `pegboard plugins bundle trust {added.name} --yes`"
        )
    if not yes:
        click.confirm(escape_controls(f"Trust the bundle {added.name}?"), abort=True)
    store.trust(added.name, digest)
    click.echo(escape_controls(f"trusted {added.name}"))


def _show(found: Bundle) -> None:
    click.echo(escape_controls(f"{found.name} ({found.form}): {found.description}".rstrip(": ")))
    kinds = (("skill", found.skills), ("agent", found.agents), ("command", found.commands))
    for kind, places in kinds:
        for path in _documents(places, "SKILL.md" if kind == "skill" else "*.md"):
            click.echo(escape_controls(f"  {kind}: {path.relative_to(found.root)}"))
    files = [read_hooks("claude", path, is_project=False) for path in found.hooks]
    for hook in (hook for file in files if file for hook in file.hooks):
        words = " ".join((hook.command, *(hook.args or ())))
        click.echo(escape_controls(f"  hook: {hook.name} {hook.matcher or '*'}: {words}"))
    for name, server in found.servers.items():
        what = " ".join(server.get("command", [])) or server.get("url", "")
        click.echo(escape_controls(f"  server: {name}: {what}"))
    for note in _without_effect(found, [file for file in files if file]):
        click.echo(escape_controls(f"  {note}"))


def _without_effect(found: Bundle, files: list[HookFile]) -> Iterator[str]:
    """Yield a line for each part that has no effect here, with the reason."""
    for note in read_bundle_setup(found).notes:
        yield note.removeprefix(f"bundle {found.name}: ").removeprefix(f"bundle {found.name}, ")
    for file in files:
        yield from (note.removeprefix(f"{found.root}/") for note in file.notes)
    if found.servers and find_spec("pegboard_mcp") is None:
        yield f"its servers do not start: Pegboard {NEEDS_MCP}"


def _documents(places: tuple[Path, ...], pattern: str) -> Iterator[Path]:
    for place in places:
        yield from [place] if place.is_file() else sorted(place.rglob(pattern))
