"""The configuration of a model, in the format of models.dev."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pegboard.errors import InvalidInputError
from pegboard.schema.model import (
    CacheCost,
    CacheStyle,
    CostTier,
    Modalities,
    Model,
    ModelCost,
    ModelFacts,
    ModelLimit,
    ReasoningStyle,
    WireName,
    with_facts,
)

_LONG_TOKENS = 200_000
"""What `context_over_200k` is about."""


_FACTS = (
    *("name", "family", "release_date", "status", "limit", "temperature", "reasoning"),
    *("reasoning_style", "effort_names", "cache_style", "wire"),
)
"""The facts that have the same name there."""


class _Price(msgspec.Struct, frozen=True, kw_only=True):
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    over_tokens: int = _LONG_TOKENS

    @property
    def tier(self) -> CostTier:
        """The price for requests of more than `over_tokens` tokens."""
        cache = CacheCost(read=self.cache_read, write=self.cache_write)
        return CostTier(
            over_tokens=self.over_tokens, input=self.input, output=self.output, cache=cache
        )


class _Cost(_Price, frozen=True, kw_only=True):
    context_over_200k: _Price | None = None
    tiers: tuple[_Price, ...] = ()

    @property
    def cost(self) -> ModelCost:
        """The price of the model, including the higher prices for long requests."""
        long = (self.context_over_200k,) if self.context_over_200k else ()
        tiers = tuple(each.tier for each in (*long, *self.tiers))
        return ModelCost(input=self.input, output=self.output, cache=self.tier.cache, tiers=tiers)


class _Modalities(msgspec.Struct, frozen=True):
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class _ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a model; unknown keys are ignored, because models.dev has more."""

    id: str | None = None
    name: str | None = None
    family: str | None = None
    release_date: str | None = None
    status: Literal["alpha", "beta", "deprecated", "active"] | None = None
    attachment: bool | None = None
    reasoning: bool | None = None
    temperature: bool | None = None
    tool_call: bool | None = None
    interleaved: bool | dict[str, str] | None = None
    limit: ModelLimit = ModelLimit()
    cost: _Cost | None = None
    modalities: _Modalities | None = None
    reasoning_style: ReasoningStyle | None = None
    effort_names: tuple[str, ...] | None = None
    cache_style: CacheStyle | None = None
    wire: WireName | None = None
    options: dict[str, Any] = {}
    headers: dict[str, str] = {}
    variants: dict[str, dict[str, Any]] = {}

    @property
    def facts(self) -> ModelFacts:
        """The configured settings of the model, as model facts."""
        named = self.interleaved.get("field") if isinstance(self.interleaved, dict) else None
        return ModelFacts(
            **{name: getattr(self, name) for name in _FACTS},
            cost=self.cost.cost if self.cost else None,
            reads=self._reads(),
            writes=_modalities(self.modalities.output) if self.modalities else None,
            toolcall=self.tool_call,
            reasoning_field=named,
        )

    def _reads(self) -> Modalities | None:
        if self.modalities:
            return _modalities(self.modalities.input)
        media = self.attachment
        return None if media is None else Modalities(image=media, pdf=media)


def overridden(model: Model, said: Mapping[str, Any]) -> Model:
    """Return the model with `said`, its settings in the user's configuration, applied.

    :raises InvalidInputError: when a value has the wrong type.
    """
    try:
        entry = msgspec.convert(dict(said), _ModelEntry, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"provider.{model.provider_id}.models.{model.id}: {error}"
        ) from error
    found = with_facts(model, entry.facts)
    if isinstance(entry.interleaved, bool):
        capabilities = replace(found.capabilities, interleaved=entry.interleaved)
        found = replace(found, capabilities=capabilities)
    return replace(
        found,
        api=replace(found.api, id=entry.id or found.api.id),
        options={**found.options, **entry.options},
        headers={**found.headers, **entry.headers},
        variants={**found.variants, **entry.variants},
    )


def _modalities(names: tuple[str, ...]) -> Modalities:
    kinds = ("text", "audio", "image", "video", "pdf")
    return Modalities(**{kind: kind in names for kind in kinds})
