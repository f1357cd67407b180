"""The Agent Plugins that the project's libraries contain; Pegboard uses only their skills."""

from collections.abc import Iterator
from pathlib import Path

import click

from pegboard.display import escape_controls
from pegboard.unstable import open_workspace
from pegboard_plugins.cli.bundleview import show_bundle
from pegboard_plugins.shared.frontend import Bundle, read_bundle
from pegboard_plugins.skill.libraries import library_skills

_SUFFIX = ".agent-plugin"


def library_rows(directory: Path) -> Iterator[dict[str, object]]:
    """Yield the Agent Plugins of direct dependencies as rows for `plugins bundle list`."""
    root = open_workspace(directory).worktree.resolve()
    for found, library in _bundles(root):
        yield {
            "name": found.name,
            "version": library.partition(" ")[2],
            "source": f"library {library}",
            "market": "",
            "revision": "",
            "trusted": True,
            "place": found.root.relative_to(root).as_posix(),
        }


def show_library_bundle(directory: Path, name: str) -> bool:
    """Print the parts of a library's Agent Plugin; return False if no Agent Plugin has the name."""
    root = open_workspace(directory).worktree.resolve()
    for found, library in _bundles(root):
        if name in {found.name, library.partition(" ")[0], found.root.relative_to(root).as_posix()}:
            show_bundle(found)
            click.echo(escape_controls(f"from library {library} of this project"))
            click.echo("its skills act, and nothing else of it: a library gives skills alone")
            return True
    return False


def _bundles(root: Path) -> Iterator[tuple[Bundle, str]]:
    """Yield each Agent Plugin that has a usable skill, with the name of its library."""
    folders = {each.path.parents[2]: each.library for each in library_skills(root)}
    for folder, library in folders.items():
        if folder.suffix == _SUFFIX:
            yield read_bundle(folder, folder), library
