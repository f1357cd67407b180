"""`pegboard config`: what is set, and by which file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import click

from pegboard.cli.root import Group
from pegboard.embedding import run_async
from pegboard_plugins.cli.jsontext import as_json

BUILT_IN = "built-in"
"""The source of what no file sets."""
MASK = "•••"
_SECRET_WORDS = ("key", "token", "secret", "password", "authorization", "credential", "cookie")
_NOT_SECRET = frozenset({"tokens", "max_tokens"})


@click.group(cls=Group)
def config() -> None:
    """Show the configuration."""


@config.command()
@click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.pass_obj
def show(directory: Path, style: Literal["text", "json"]) -> None:
    """Show each key that is set, with the file that set it; secrets are masked."""
    from pegboard.cli import visible

    settings = run_async(_settings(directory))
    if style == "json":
        rows = {key: {"value": value, "source": source} for key, value, source in settings}
        click.echo(as_json(rows, indent=2))
        return
    for key, value, source in settings:
        click.echo(visible(f"{key} = {as_json(value)}  # {source}"))


async def _settings(directory: Path) -> list[tuple[str, Any, str]]:
    from pegboard import App
    from pegboard.schema.wire import to_json

    async with await App.open(directory) as app:
        values = to_json(app.config)
        return [
            (key, masked(key, value), source_of(key, app.loaded.sources))
            for key, value in leaves(values)
        ]


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that is no table, with its dotted key."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{key}.")
        else:
            yield key, value


def source_of(key: str, sources: Mapping[str, str]) -> str:
    """The file that set the key, or the nearest table around it, or a key in it."""
    parts = key.split(".")
    for end in range(len(parts), 0, -1):
        if found := sources.get(".".join(parts[:end])):
            return found
    inside = sorted({file for name, file in sources.items() if name.startswith(f"{key}.")})
    return ", ".join(inside) or BUILT_IN


def masked(key: str, value: object) -> object:
    """The value, unless its key says that it is a secret."""
    name = key.rpartition(".")[2].lower()
    is_secret = any(word in name for word in _SECRET_WORDS) and name not in _NOT_SECRET
    in_headers = ".headers." in f".{key.lower()}"
    return MASK if isinstance(value, str) and value and (is_secret or in_headers) else value
