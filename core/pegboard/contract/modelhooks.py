"""The hooks for models, beside what their providers say; `hookspecs` has them."""

from collections.abc import Sequence

from pegboard.contract.marks import hookspec as _hookspec
from pegboard.paths import Places
from pegboard.schema.model import Model, ModelFacts


@_hookspec("first")
def model_facts(provider: str, model: str, places: Places) -> ModelFacts | None:
    """What is known of a model: its window, its price, what it can do and how it is asked.

    Called once for each model that is named while the App is open. The answer fills in what the
    model's provider has not said, and what the configuration says of the model stands above
    it. First: a plugin that raises is reported and the next is asked.

    - provider, model: the two halves of the model's name.
    - places: the user's folders; what was fetched may be kept in `places.cache`.

    Since 0.1.
    """


@_hookspec("first")
def model_names(provider: str, places: Places) -> Sequence[str] | None:
    """The ids of a provider's models that are known, beside those that it tells itself.

    Called when models are listed. A provider that does not `resolve` one of them is believed.
    First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def model_resolve(name: str) -> Model | None:
    """The model of this name.

    Called when no provider has the id before the slash, or there is no slash: for aliases and
    for providers that serve models of any name. The model's `provider_id` must be that of a
    registered provider. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """
