"""`pegboard plugins bundle`: skills, commands, agents, hooks and servers in one folder."""

import os
import sys
from pathlib import Path
from typing import Literal

import click

from pegboard import InvalidInputError
from pegboard.app import UserFolders
from pegboard.cli import Group
from pegboard.display import escape_controls
from pegboard.errors import TrustError
from pegboard.unstable import refuse_within_tool
from pegboard_plugins.cli.bundleview import show_bundle
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.librarybundle import library_rows, show_library_bundle
from pegboard_plugins.cli.projectbundle import (
    FoundBundle,
    add_to_project,
    find_bundle,
    project_rows,
)
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
@click.option("--project", "to_project", is_flag=True, help="Copy it to .pegboard/bundles.")
@YES
@click.pass_obj
def add(directory: Path, source: str, *, market: str, to_project: bool, yes: bool) -> None:
    """Install the bundle of a folder or a git URL, and ask for trust.

    `URL#NAME` is a branch or a tag. With --from, SOURCE is a name in the list of that marketplace.
    No part of a bundle is active before you trust the bundle.
    """
    refuse_within_tool("pegboard plugins bundle add")
    if to_project:
        add_to_project(directory, source, market=market, yes=yes)
        return
    store = _store()
    added = store.add(source, market=market)
    click.echo(escape_controls(f"installed {added.name} {added.version}".rstrip()))
    _ask_for_trust(store, added, yes=yes)


@bundle.command("list")
@format_option("text")
@click.pass_obj
def list_bundles(directory: Path, style: Literal["text", "json"]) -> None:
    """List the bundles: installed, of this project, and of its libraries."""
    store = _store()
    rows: list[dict[str, object]] = [
        {
            "name": name,
            "version": _version(store, name),
            "source": entry.source,
            "market": entry.market,
            "revision": entry.revision,
            "trusted": store.is_trusted(name, entry),
            "place": "",
        }
        for name, entry in store.installed().items()
    ]
    rows += [*project_rows(directory), *library_rows(directory)]
    if style == "json":
        click.echo(as_json(rows, indent=2))
        return
    for row in rows:
        mark = "trusted" if row["trusted"] else "not trusted"
        known = f"{row['name']} {row['version']}".rstrip()
        origin = _origin(str(row["source"]), str(row["market"]))
        place = f"{row['place']} of this project" if row["place"] else origin
        if origin.startswith("library "):
            mark, place = "skills alone", origin
        click.echo(escape_controls(f"{known} ({mark}): {place}"))
    if not rows:
        click.echo("no bundles are installed; `pegboard plugins bundle add FOLDER` installs one")


@bundle.command()
@click.argument("name")
@click.pass_obj
def info(directory: Path, name: str) -> None:
    """Show the parts of the bundle NAME, and those without an effect.

    A bundle of this project can also be named by its path.
    """
    store = _store()
    if found := _of_project(store, directory, name):
        found.show()
        return
    if name not in store.installed() and show_library_bundle(directory, name):
        return
    _check_installed(store, name)
    entry = store.installed()[name]
    show_bundle(store.bundle(name))
    click.echo(escape_controls(f"from {_origin(entry.source, entry.market)}"))
    if store.is_trusted(name, entry):
        click.echo("trusted: its parts act")
    else:
        advice = f"`pegboard plugins bundle trust {name}`"
        click.echo(f"not trusted as it is: nothing of it acts before {advice}")


@bundle.command()
@click.argument("name")
@YES
@click.pass_obj
def trust(directory: Path, name: str, *, yes: bool) -> None:
    """Trust the bundle NAME as it is now, with all of its files.

    A bundle of this project can also be named by its path.
    """
    refuse_within_tool("pegboard plugins bundle trust")
    store = _store()
    if found := _of_project(store, directory, name):
        found.trust(yes=yes)
        return
    _check_installed(store, name)
    _ask_for_trust(store, store.bundle(name), yes=yes)


@bundle.command()
@click.argument("name")
@YES
def update(name: str, *, yes: bool) -> None:
    """Install the bundle NAME again, and ask for trust if it has changed.

    Its data folder stays.
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
@click.option("-y", "--yes", is_flag=True, help="Do not ask, for a bundle of this project.")
@click.pass_obj
def remove(directory: Path, name: str, *, yes: bool) -> None:
    """Remove the bundle NAME and its data folder.

    For a bundle of this project, the bundle's own folder is removed.
    """
    refuse_within_tool("pegboard plugins bundle remove")
    store = _store()
    if found := _of_project(store, directory, name):
        found.remove(yes=yes)
        return
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
            show_bundle(read_bundle(folder, folder / "data"))
        except InvalidInputError as error:
            refused.append(error)
    for each in refused[:-1]:
        click.echo(escape_controls(f"error: {each}"), err=True)
    if refused:
        raise refused[-1]


def _store() -> BundleStore:
    return BundleStore(UserFolders.of(os.environ))


def _of_project(store: BundleStore, directory: Path, name: str) -> FoundBundle | None:
    """Return the project's bundle of this name, unless an installed bundle has the name."""
    return None if name in store.installed() else find_bundle(directory, name)


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
    show_bundle(added)
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
