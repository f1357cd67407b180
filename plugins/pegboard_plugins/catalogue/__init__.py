"""The known facts of models: a table that is part of Pegboard, and later answers of servers.

A fact comes from the first source that has it: the server's own list of models from the last
request; the table from the last refresh; the table in Pegboard; and litellm's price list, read as a
file. No source is read before a model is named. Only `pegboard models --refresh` and `--local` send
requests.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pegboard import hookimpl
from pegboard.app import UserFolders

if TYPE_CHECKING:
    from pegboard.schema.model import ModelFacts


class CatalogueOptions(msgspec.Struct, frozen=True):
    """The plugin's options; `url` is the price list for `models --refresh`, "" for litellm's."""

    url: str = ""


options = CatalogueOptions
"""What `plugins.catalogue.options` can say."""


@hookimpl
def model_facts(provider: str, model: str, places: UserFolders) -> "ModelFacts | None":
    """Return the known facts of a model, combined from all sources."""
    from pegboard_plugins.catalogue.lookup import facts_of

    return facts_of(provider, model, places.cache)


@hookimpl
def model_names(provider: str, url: str, places: UserFolders) -> Sequence[str] | None:
    """Return the models that the server at `url` listed last, else those in Pegboard's tables."""
    from pegboard_plugins.catalogue.lookup import names_of

    return names_of(provider, url, places.cache)
