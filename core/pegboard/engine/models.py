"""The models by name, with the provider that serves each model."""

from collections.abc import Mapping, Sequence

import msgspec

from pegboard.contract import modelhooks
from pegboard.errors import ModelNotFoundError
from pegboard.hooks.callers import Hooks
from pegboard.kit.suggestions import nearest_names
from pegboard.paths import UserFolders
from pegboard.providers import Provider
from pegboard.providers.keylookup import Keys
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model, ModelFacts, fill_model
from pegboard.schema.part import FilePart, Part

NONE_CHOSEN = (
    "Choose one with -m provider/model, `model` in pegboard.toml, or /model in the chat. `pegboard "
    "models` lists the available ones, and `pegboard auth login` saves an API key."
)


class Models(msgspec.Struct, frozen=True):
    """The models of all providers, completed with known facts and the user's configuration."""

    providers: Mapping[str, Provider]
    hooks: Hooks
    config: Config
    places: UserFolders
    keys: Keys
    _facts: dict[tuple[str, str], ModelFacts | None] = msgspec.field(default_factory=dict)

    async def find(self, name: str) -> Model:
        """Return the model with the name `provider/model`, or with an alias that a plugin knows.

        :raises ModelNotFoundError: when no provider serves the model; it suggests similar names.
        :raises InvalidInputError: when the model's configuration has a value of the wrong type.
        """
        name = name.removeprefix("/")  # an alias is stored as a model without a provider
        if not name:
            raise ModelNotFoundError("none is chosen", hint=NONE_CHOSEN)
        provider_id, _, model_id = name.partition("/")
        provider = self.providers.get(provider_id)
        model = self._resolve(provider, model_id) if provider is not None and model_id else None
        if model is None:
            model = await self.hooks.first(modelhooks.model_resolve, name=name)
        if model is None or model.provider_id not in self.providers:
            raise ModelNotFoundError(name, suggestions=await self._nearest(name))
        return await self.completed(model)

    async def seeing(self, parts: Sequence[Part], model: Model) -> Model:
        """Return the model to ask about `parts`: `model`, or the user's vision model.

        The vision model is returned if `parts` have an image and `model` reads no images.
        """
        name = self.config.models.vision
        if name is None or model.capabilities.input.image:
            return model
        shown = any(isinstance(each, FilePart) and each.mime.startswith("image/") for each in parts)
        return await self.find(name) if shown else model

    async def known(self, *, without_keys: bool = False) -> tuple[Model, ...]:
        """Return all models that providers, plugins and the configuration name.

        With `without_keys`, providers without a known API key are included.

        :raises InvalidInputError: when a model's configuration has a value of the wrong type.
        """
        asked = [each for each in self.providers.values() if without_keys or self.has_key(each)]
        found = [model for each in asked for model in await self._of(each)]
        return tuple([await self.completed(model) for model in found])

    def has_key(self, provider: Provider) -> bool:
        """Return whether the provider needs no API key, or its API key is known."""
        settings = self.config.provider.get(provider.id, ProviderConfig())
        names = settings.env or provider.env
        return not names or self.keys.source(provider.id, names) is not None

    def _resolve(self, provider: Provider, model_id: str) -> Model | None:
        with self.hooks.blaming(provider, f"the provider {provider.id}"):
            return provider.resolve(model_id)

    async def _names_of(self, provider: Provider) -> Sequence[str]:
        settings = self.config.provider.get(provider.id, ProviderConfig())
        known = self._resolve(provider, next(iter(settings.models), "any"))
        url, hook = known.api.url if known is not None else "", modelhooks.model_names
        named = await self.hooks.first(hook, provider=provider.id, url=url, places=self.places)
        return *(named or ()), *settings.models

    async def _nearest(self, name: str) -> tuple[str, ...]:
        known = []
        for provider in self.providers.values():
            names = (*(model.id for model in provider.models()), *await self._names_of(provider))
            known += [f"{provider.id}/{each}" for each in dict.fromkeys(names)]
        if found := nearest_names(name, known):
            return found
        provider_id, slash, model_id = name.partition("/")
        return tuple(
            f"{each}{slash}{model_id}"
            for each in nearest_names(provider_id, self.providers)
            if each != provider_id
        )

    async def _of(self, provider: Provider) -> Sequence[Model]:
        known = {model.id: model for model in provider.models()}
        for name in await self._names_of(provider):
            if name not in known and (model := self._resolve(provider, name)) is not None:
                known[name] = model
        return tuple(known.values())

    async def completed(self, model: Model) -> Model:
        """Add the facts that the model lacks, and the user's settings for the model."""
        provider, name = model.provider_id, model.id
        if (provider, name) not in self._facts:
            self._facts[provider, name] = await self.hooks.first(
                modelhooks.model_facts, provider=provider, model=name, places=self.places
            )
        facts = self._facts[provider, name]
        settings = self.config.provider.get(provider)
        said = settings.models.get(name) if settings is not None else None
        if facts is not None:
            model = fill_model(model, facts)
        if said:
            from pegboard.engine.modelentry import overridden  # 4 ms that few models pay

            model = overridden(model, said)
        return model
