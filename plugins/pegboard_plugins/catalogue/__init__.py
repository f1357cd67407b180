"""The known facts of models: a table that comes with Pegboard, and later answers of servers.

A fact is taken from the first that has it: the server's own list of models, as it was last asked
for; the table as it was last refreshed; the table that comes with Pegboard; the price list of
litellm, which is read as a file. Nothing is read before a model is named, and nothing is fetched
but by `pegboard models --refresh` and `--local`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pegboard import hookimpl
from pegboard.app import UserFolders

if TYPE_CHECKING:
    from pegboard.schema.model import ModelFacts


class CatalogueOptions(msgspec.Struct, frozen=True):
    """`url` is where `pegboard models --refresh` gets the price list from, "" for litellm's."""

    url: str = ""


options = CatalogueOptions
"""What `plugins.catalogue.options` can say."""


@hookimpl
def model_facts(provider: str, model: str, places: UserFolders) -> "ModelFacts | None":
    """Return the known facts of the model, from all sources together."""
    from pegboard_plugins.catalogue.lookup import facts_of

    return facts_of(provider, model, places.cache)


@hookimpl
def model_names(provider: str, url: str, places: UserFolders) -> Sequence[str] | None:
    """Return the models that the server at this address listed last, else those of the table."""
    from pegboard_plugins.catalogue.lookup import names_of

    return names_of(provider, url, places.cache)
