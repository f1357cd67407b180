"""`pegboard models`: what can be named after `--model`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard.embedding import run_async
from pegboard_plugins.cli.jsontext import schema_json

if TYPE_CHECKING:
    from pegboard.schema.model import Model


@click.command()
@click.argument("provider", required=False)
@click.option("--verbose", is_flag=True, help="All that is known of each model, as JSON.")
@click.pass_obj
def models(directory: Path, provider: str | None, *, verbose: bool) -> None:
    """List the models that are known, of all providers or of one.

    A provider may serve more than it knows: `provider/model` asks it for any name.
    """
    from pegboard.cli import visible

    found = run_async(_models(directory, provider))
    if verbose:
        click.echo(schema_json(found))
        return
    for model in found:
        click.echo(visible(f"{model.provider_id}/{model.id}"))


async def _models(directory: Path, provider: str | None) -> "list[Model]":
    from pegboard import App
    from pegboard.errors import NotFoundError
    from pegboard.kit import nearest_names

    async with await App.open(directory) as app:
        if provider is not None and provider not in app.providers:
            hint = nearest_names(provider, app.providers)
            raise NotFoundError("provider", provider, suggestions=hint)
        chosen = (each for name, each in app.providers.items() if provider in (None, name))
        found = [model for each in chosen for model in each.models()]
    return sorted(found, key=lambda model: (model.provider_id, model.id))
