"""From a name to a model: which provider serves it."""

from collections.abc import Mapping

from pegboard.contract import hookspecs
from pegboard.contract.providers import Provider
from pegboard.errors import ModelNotFoundError
from pegboard.hooks.callers import Hooks
from pegboard.kit.suggestions import nearest_names
from pegboard.schema.model import Model

NONE_CHOSEN = (
    "Name one with -m provider/model, or set `model` in pegboard.toml; with OPENAI_API_KEY set, "
    "-m openai/MODEL works at once, and -m ollama/MODEL with a local Ollama."
)


async def find_model(name: str, providers: Mapping[str, Provider], hooks: Hooks) -> Model:
    """The model that is called `provider/model`, or by an alias that a plugin knows.

    :raises ModelNotFoundError: with the nearest names, when no provider serves it.
    """
    name = name.removeprefix("/")  # an alias is stored as a model without a provider
    if not name:
        raise ModelNotFoundError("none is chosen", hint=NONE_CHOSEN)
    provider_id, _, model_id = name.partition("/")
    provider = providers.get(provider_id)
    if provider is not None and model_id:
        with hooks.blaming(provider, f"the provider {provider_id}"):
            model = provider.resolve(model_id)
        if model is not None:
            return model
    model = await hooks.first(hookspecs.model_resolve, name=name)
    if model is not None and model.provider_id in providers:
        return model
    raise ModelNotFoundError(name, suggestions=_suggestions(name, providers))


def _suggestions(name: str, providers: Mapping[str, Provider]) -> tuple[str, ...]:
    provider_id, slash, model_id = name.partition("/")
    known = [f"{one.id}/{model.id}" for one in providers.values() for model in one.models()]
    found = nearest_names(name, known)
    if found:
        return found
    similar = nearest_names(provider_id, providers)
    return tuple(f"{one}{slash}{model_id}" for one in similar)
