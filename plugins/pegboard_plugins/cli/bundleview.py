"""The output that lists the parts of a bundle, including parts that Pegboard ignores."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from pegboard.display import escape_controls
from pegboard.unstable import read_bounded
from pegboard_plugins.commandhooks.hookfiles import HookFile, read_hooks
from pegboard_plugins.foreignfiles.bundleparts import read_bundle_setup
from pegboard_plugins.foreignfiles.findings import NEEDS_MCP
from pegboard_plugins.shared.frontend import Bundle, counting_note


def show_bundle(found: Bundle) -> None:
    """Print the parts of a bundle, including parts that Pegboard ignores."""
    click.echo(escape_controls(f"{found.name} ({found.form}): {found.description}".rstrip(": ")))
    skills = tuple(folder / "SKILL.md" for folder in found.skills)
    kinds = (("skill", skills), ("agent", found.agents), ("command", found.commands))
    for kind, places in kinds:
        for path in _documents(places):
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
    """Yield a line with the reason for each part that Pegboard ignores."""
    for note in read_bundle_setup(found).notes:
        yield note.removeprefix(f"bundle {found.name}: ").removeprefix(f"bundle {found.name}, ")
    for path in _documents(found.commands):
        if note := counting_note(read_bounded(path)[0]):
            yield f"{path.relative_to(found.root)}: {note}"
    for file in files:
        yield from (note.removeprefix(f"{found.root}/") for note in file.notes)
    if found.servers and find_spec("pegboard_mcp") is None:
        yield f"its servers do not start: Pegboard {NEEDS_MCP}"


def _documents(places: tuple[Path, ...]) -> Iterator[Path]:
    for place in places:
        yield from [place] if place.is_file() else sorted(place.rglob("*.md"))
