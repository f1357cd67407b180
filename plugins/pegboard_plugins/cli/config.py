"""`pegboard config`: the settings, and the file that sets each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from pegboard.cli import Group, run_async
from pegboard.display import escape_controls
from pegboard_plugins.cli import configkeys
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.settingvalues import RULES, settings_of


@click.group(cls=Group)
def config() -> None:
    """Show and change the configuration."""


for each in configkeys.COMMANDS:
    config.add_command(each)


@config.command()
@format_option("text")
@click.pass_obj
def show(directory: Path, style: Literal["text", "json"]) -> None:
    """Show each key that is set, and the file that sets it.

    Secrets are masked.
    """
    found = run_async(settings_of(directory))
    if style == "json":
        rows = {key: {"value": value, "source": source} for key, value, source in found}
        click.echo(as_json(rows, indent=2))
        return
    for number, origin in enumerate(dict.fromkeys(source for _, _, source in found)):
        click.echo(("\n" if number else "") + escape_controls(f"# {origin}"))
        for line in (
            line for key, value, source in found if source == origin for line in _lines(key, value)
        ):
            click.echo(escape_controls(line))


def _lines(key: str, value: object) -> Iterator[str]:
    """Yield the key with its value in TOML notation; each permission rule gets its own line."""
    is_rules = key.rpartition(".")[2] in RULES and isinstance(value, list) and bool(value)
    if not is_rules:
        yield f"{key} = {as_json(value)}"
        return
    for rule in value:  # type: ignore[attr-defined] # a list, see above
        names = ".".join((key, as_json(rule["permission"]), as_json(rule["pattern"])))
        yield f"{names} = {as_json(rule['action'])}"
