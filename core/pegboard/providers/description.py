"""Models from what a configuration says of them, in the field names of models.dev."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.errors import InvalidInputError
from pegboard.schema.model import (
    CacheCost,
    Capabilities,
    CostTier,
    Modalities,
    Model,
    ModelApi,
    ModelCost,
    ModelLimit,
)

_LONG_TOKENS = 200_000


class _Limit(msgspec.Struct, frozen=True):
    context: int | None = None
    output: int | None = None
    input: int | None = None


class _Cost(msgspec.Struct, frozen=True):
    input: float = 0
    output: float = 0
    cache_read: float | None = None
    cache_write: float | None = None
    context_over_200k: "_Cost | None" = None


class _Modalities(msgspec.Struct, frozen=True):
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class _Facts(msgspec.Struct, frozen=True):
    """The fields that are read; others are left alone, as models.dev has more."""

    id: str | None = None
    name: str | None = None
    family: str = ""
    release_date: str = ""
    status: str = "active"
    attachment: bool = False
    reasoning: bool = False
    temperature: bool = True
    tool_call: bool = True
    interleaved: bool | dict[str, str] = False
    limit: _Limit = _Limit()
    cost: _Cost | None = None
    modalities: _Modalities | None = None
    options: dict[str, Any] = {}
    headers: dict[str, str] = {}
    variants: dict[str, dict[str, Any]] = {}


def model_from(
    provider_id: str, model_id: str, facts: Mapping[str, Any], *, url: str, npm: str
) -> Model:
    """The model that the facts describe; `npm` is the client that OpenCode would use for it.

    :raises InvalidInputError: when a fact has a value of the wrong type.
    """
    try:
        read = msgspec.convert(dict(facts), _Facts, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"provider.{provider_id}.models.{model_id}: {error}") from error
    status = read.status if read.status in ("alpha", "beta", "deprecated") else "active"
    return Model(
        id=model_id,
        provider_id=provider_id,
        name=read.name or model_id,
        api=ModelApi(id=read.id or model_id, url=url, npm=npm),
        capabilities=_capabilities(read),
        cost=_cost(read.cost) if read.cost else None,
        limit=ModelLimit(
            context=read.limit.context, output=read.limit.output, input=read.limit.input
        ),
        status=status,  # type: ignore[arg-type]  # checked the line above
        family=read.family,
        release_date=read.release_date,
        options=read.options,
        headers=read.headers,
        variants=read.variants,
    )


def _capabilities(facts: _Facts) -> Capabilities:
    if facts.modalities:
        inputs = _modalities(facts.modalities.input)
        outputs = _modalities(facts.modalities.output)
    else:
        inputs = Modalities(image=facts.attachment, pdf=facts.attachment)
        outputs = Modalities()
    return Capabilities(
        temperature=facts.temperature,
        reasoning=facts.reasoning,
        attachment=inputs.image or inputs.pdf,
        toolcall=facts.tool_call,
        input=inputs,
        output=outputs,
        interleaved=facts.interleaved,
    )


def _modalities(names: tuple[str, ...]) -> Modalities:
    return Modalities(
        text="text" in names,
        audio="audio" in names,
        image="image" in names,
        video="video" in names,
        pdf="pdf" in names,
    )


def _cost(cost: _Cost) -> ModelCost:
    return ModelCost(
        input=cost.input,
        output=cost.output,
        cache=CacheCost(read=cost.cache_read, write=cost.cache_write),
        tiers=(_tier(cost.context_over_200k),) if cost.context_over_200k else (),
    )


def _tier(cost: _Cost) -> CostTier:
    return CostTier(
        over_tokens=_LONG_TOKENS,
        input=cost.input,
        output=cost.output,
        cache=CacheCost(read=cost.cache_read, write=cost.cache_write),
    )
