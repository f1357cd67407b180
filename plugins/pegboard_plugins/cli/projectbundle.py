"""Bundles inside a project, for `pegboard plugins bundle info`, `trust` and `remove`."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from msgspec.structs import replace

from pegboard.app import Decision, UserFolders
from pegboard.cli import run_async
from pegboard.display import escape_controls
from pegboard.errors import TrustError
from pegboard.unstable import TrustStore, open_workspace
from pegboard_plugins.cli.bundleview import show_bundle
from pegboard_plugins.cli.trust import project_decision
from pegboard_plugins.shared import BUNDLE_PLACES, has_project_bundles
from pegboard_plugins.shared.frontend import (
    Bundle,
    BundleError,
    ProjectBundle,
    copy_bundle,
    project_bundles,
)


@dataclass(frozen=True)
class FoundBundle:
    """A bundle in the project's folder, and the user's decision about the project's code.

    None of the bundle's code runs here.
    """

    own: ProjectBundle
    decision: Decision
    places: UserFolders

    @property
    def acts(self) -> bool:
        """Whether the bundle is active: its files and the project's other code are trusted."""
        decision = self.decision
        return self.own.is_trusted(decision.files if decision.trusted else {})

    def read(self) -> Bundle:
        """Parse the bundle.

        :raises BundleError: when the folder is not a usable bundle.
        """
        return self.own.read(self.places, self.decision.root)

    def show(self) -> None:
        """Print the bundle's parts, and whether the bundle is active."""
        show_bundle(self.read())
        click.echo(escape_controls(f"{self.own.place} of this project"))
        advice = f"`pegboard plugins bundle trust {shlex.quote(self.own.place)}`"
        before = f"not trusted as it is: nothing of it acts before {advice}"
        click.echo(escape_controls("trusted: its parts act" if self.acts else before))

    def trust(self, *, yes: bool) -> None:
        """Print the bundle's parts, ask the user, and trust its files with the printed contents."""
        decision, own = self.decision, self.own
        show_bundle(self.read())
        files = {path: decision.files[path] for path in own.files if path in decision.files}
        shown = replace(decision, files=files)
        click.echo(escape_controls(f"{own.place}: {len(files)} files, digest {shown.key[:16]}"))
        if not yes:
            _confirm(f"Trust the bundle {own.place} of this project?", "trust", own.place)
        store = TrustStore(self.places.trust)
        store.allow(shown)
        click.echo(escape_controls(f"trusted {own.place}"))
        known = {**decision.allowed, **shown.digests}
        if any(known.get(name) != digest for name, digest in decision.digests.items()):
            rest = "other files of this project are not trusted"
            click.echo(f"{rest}: it acts after `pegboard trust allow`, which shows them")

    def remove(self, *, yes: bool) -> None:
        """Remove the bundle's folder."""
        folder = self.own.folder
        if not yes:
            _confirm(f"Remove the folder {self.own.place}?", "remove", self.own.place)
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
        click.echo(escape_controls(f"removed {self.own.place}"))


def project_rows(directory: Path) -> Iterator[dict[str, object]]:
    """Yield the bundles of the project as rows for `plugins bundle list`."""
    for each in _bundles(directory):
        try:
            bundle, problem = each.read(), ""
        except BundleError as error:
            bundle, problem = None, str(error)
        yield {
            "name": bundle.name if bundle else each.own.folder.name,
            "version": bundle.version if bundle else "",
            "source": problem,
            "market": "",
            "revision": "",
            "trusted": each.acts and not problem,
            "place": each.own.place,
        }


def find_bundle(directory: Path, name: str) -> FoundBundle | None:
    """Return the project's bundle with this path or else this name; None if there is none."""
    found = list(_bundles(directory))
    for each in found:
        if each.own.place == name.rstrip("/"):
            return each
    for each in found:
        try:
            if name in (each.own.folder.name, each.read().name):
                return each
        except BundleError:  # `list` says why
            continue
    return None


def add_to_project(directory: Path, source: str, *, market: str, yes: bool) -> None:
    """Copy a bundle into the project, and ask for trust.

    :raises BundleError: when the source has no usable bundle.
    """
    root = open_workspace(directory).worktree.resolve()
    target = root / BUNDLE_PLACES[1]
    if not target.resolve().is_relative_to(root):
        raise BundleError(f"{target} leads out of the project; remove the link")
    added, _ = copy_bundle(source, target, market=market)
    place = f"{BUNDLE_PLACES[1]}/{added.name}"
    click.echo(escape_controls(f"copied {added.name} {added.version}".rstrip() + f" to {place}"))
    found = find_bundle(directory, place)
    if found is not None:
        found.trust(yes=yes)


def _bundles(directory: Path) -> Iterator[FoundBundle]:
    if not has_project_bundles(open_workspace(directory).worktree):
        return
    places = UserFolders.of(os.environ)
    decision = run_async(project_decision(directory, places))
    for own in project_bundles(decision.root):
        yield FoundBundle(own=own, decision=decision, places=places)


def _confirm(question: str, command: str, place: str) -> None:
    if not sys.stdin.isatty():
        way = f"`pegboard plugins bundle {command} {shlex.quote(place)} --yes`"
        raise TrustError(f"there is no terminal to ask on; review {place}, then run {way}")
    click.confirm(escape_controls(question), abort=True)
