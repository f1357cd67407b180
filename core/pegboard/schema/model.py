"""Models and the facts about models, as clients list them.

A model is the provider's own entry, completed with facts that Pegboard knows.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pegboard.schema.wire import Rest, Wire

ReasoningStyle = Literal["effort", "adaptive", "budget", "level", "switch", "always"]
"""The forms in which a request says how much the model is to think.

`effort`: by a word, in the spelling of its wire format (`reasoning_effort`, `reasoning.effort`).
`adaptive`: it decides by itself, held by a word (Anthropic's `thinking: adaptive`). `budget`: by
a number of tokens. `level`: by a word of Gemini's (`thinkingLevel`). `switch`: on or off
(`enable_thinking`). `always`: it thinks, and nothing can be chosen.
"""
CacheStyle = Literal["automatic", "key", "marks"]
"""How a prompt's prefix comes to be cached: by itself, by a key that names the conversation
(`prompt_cache_key`), or up to marks in the request (`cache_control`)."""
WireName = Literal["chat", "responses", "messages", "gemini"]
"""The API that a model is asked through: chat completions, OpenAI's Responses, Anthropic's
Messages, Gemini's `generateContent`."""


class ModelApi(Rest, frozen=True):
    """The model's name at its provider, the server's base URL, and the client's npm package."""

    id: str
    url: str = ""
    npm: str = ""


class Modalities(Rest, frozen=True):
    """The kinds of content that a model reads or writes."""

    text: bool = True
    audio: bool = False
    image: bool = False
    video: bool = False
    pdf: bool = False


class Capabilities(Rest, frozen=True):
    """The abilities of a model."""

    temperature: bool = True
    reasoning: bool = False
    attachment: bool = False
    toolcall: bool = True
    input: Modalities = Modalities()
    output: Modalities = Modalities()
    interleaved: bool | dict[str, str] = False


class CacheCost(Rest, frozen=True):
    """The prices of cached tokens, in USD per million; None is unknown and counts as `input`."""

    read: float | None = None
    write: float | None = None


class CostTier(Rest, frozen=True):
    """The prices of a request of more than `over_tokens` tokens, in USD per million tokens."""

    over_tokens: int
    input: float
    output: float
    cache: CacheCost = CacheCost()


def format_usd(usd: float) -> str:
    """Format an amount of US dollars with four decimals, or more for a smaller amount.

    Examples: `$0.3000` and `$0.00001`, never as a power of ten.
    """
    shown = f"${usd:.4f}"
    if usd and not float(shown[1:]):
        shown = f"${usd:.12f}".rstrip("0")
    return shown


class ModelCost(Wire, frozen=True):
    """The prices in US dollars per million tokens.

    Of the `tiers` that a request exceeds, the highest applies.
    """

    input: float
    output: float
    cache: CacheCost = CacheCost()
    tiers: tuple[CostTier, ...] = ()


class ModelLimit(Wire, frozen=True):
    """The limits in tokens: the context window, the longest answer, and the longest request.

    None is unknown.
    """

    context: int | None = None
    output: int | None = None
    input: int | None = None


Status = Literal["alpha", "beta", "deprecated", "active"]


class ModelFacts(Wire, frozen=True):
    """Known facts about a model of any provider; None is unknown.

    `reads` and `writes` are kinds of content. `reasoning_field` is the field in which reasoning is
    received and sent back. The other fields are the same as in `Model`.
    """

    name: str | None = None
    family: str | None = None
    release_date: str | None = None
    status: Status | None = None
    limit: ModelLimit = ModelLimit()
    cost: ModelCost | None = None
    reads: Modalities | None = None
    writes: Modalities | None = None
    temperature: bool | None = None
    toolcall: bool | None = None
    reasoning: bool | None = None
    reasoning_style: ReasoningStyle | None = None
    effort_names: tuple[str, ...] | None = None
    reasoning_field: str | None = None
    cache_style: CacheStyle | None = None
    wire: WireName | None = None
    small_model: str | None = None


def merge_facts(facts: ModelFacts, over: ModelFacts) -> ModelFacts:
    """Return the facts, with every fact that `over` knows replaced by the value in `over`."""
    known = _known(over, ModelFacts.__struct_fields__)
    return replace(facts, **known | {"limit": _limit(facts.limit, over.limit)})


def _limit(below: ModelLimit, over: ModelLimit) -> ModelLimit:
    return replace(below, **_known(over, ModelLimit.__struct_fields__))


def _known(value: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields with these names that are not None."""
    return {name: known for name in names if (known := getattr(value, name)) is not None}


class Model(Rest, frozen=True, weakref=True):
    """One model of one provider; a field that is None is unknown.

    `variants` maps a name to its options. `effort_names` are the words that `reasoning_style`
    accepts, from the least effort to the most; empty if it takes none. The field in which reasoning
    is received and sent back is `field` in `capabilities.interleaved`. `small_model` is the id of
    its provider's model for small work. A model without `cost` has an unknown price and need not be
    free.
    """

    id: str
    provider_id: str
    name: str
    api: ModelApi
    capabilities: Capabilities = Capabilities()
    cost: ModelCost | None = None
    limit: ModelLimit = ModelLimit()
    status: Status = "active"
    family: str = ""
    release_date: str = msgspec.field(default="", name="release_date")
    options: dict[str, Any] = {}
    headers: dict[str, str] = {}
    variants: dict[str, dict[str, Any]] = {}
    reasoning_style: ReasoningStyle | None = None
    effort_names: tuple[str, ...] = ()
    cache_style: CacheStyle | None = None
    wire: WireName | None = None
    small_model: str | None = None


_PLAIN = (
    *("name", "family", "release_date", "status", "cost", "reasoning_style"),
    *("effort_names", "cache_style", "wire", "small_model"),
)
"""The facts that a model has under the same name."""
_ABLE = ("temperature", "toolcall", "reasoning")
"""The facts that a model's capabilities have under the same name."""
_EFFORT = "reasoningEffort"
"""The option that sets the thinking effort for every provider."""


def fill_model(model: Model, facts: ModelFacts) -> Model:
    """Fill the gaps of a model with known facts; what the provider itself says has precedence."""
    return with_facts(model, merge_facts(facts, over=_facts_of(model)))


def _facts_of(model: Model) -> ModelFacts:
    """Return the facts in which the model differs from the defaults."""
    silent = Model(id=model.id, provider_id=model.provider_id, name=model.id, api=model.api)
    able = model.capabilities
    told = {
        name: each for name in _PLAIN if (each := getattr(model, name)) != getattr(silent, name)
    }
    if able != silent.capabilities:
        told |= {"reads": able.input, "writes": able.output, **_known(able, _ABLE)}
    if isinstance(able.interleaved, dict):
        told["reasoning_field"] = able.interleaved.get("field")
    return ModelFacts(limit=model.limit, **told)


def with_facts(model: Model, facts: ModelFacts) -> Model:
    """Replace fields of a model by all known facts; the facts have precedence."""
    known = _known(facts, _PLAIN)
    efforts = known.get("effort_names", model.effort_names)
    return replace(
        model,
        capabilities=_able(model.capabilities, facts),
        limit=_limit(model.limit, facts.limit),
        variants={**{name: {_EFFORT: name} for name in efforts}, **model.variants},
        **known,
    )


def _able(own: Capabilities, facts: ModelFacts) -> Capabilities:
    known = _known(facts, _ABLE)
    if facts.reasoning_field:
        known["interleaved"] = {"field": facts.reasoning_field}
    reads = facts.reads or own.input
    attachment = reads.image or reads.pdf if facts.reads else own.attachment
    return replace(
        own, input=reads, output=facts.writes or own.output, attachment=attachment, **known
    )
