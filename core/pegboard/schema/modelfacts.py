"""A model becomes whole: what its provider says, with what is known beside that."""

from msgspec.structs import replace

from pegboard.schema.model import Capabilities, Model, ModelFacts, ModelLimit, merged

_PLAIN = (
    *("name", "family", "release_date", "status", "cost", "reasoning_style"),
    *("effort_names", "cache_style", "wire", "small_model"),
)
"""The facts that a model has under the same name."""
_EFFORT = "reasoningEffort"
"""The option by which every provider is told how hard to think."""


def filled(model: Model, facts: ModelFacts) -> Model:
    """The model, with the facts where its provider has said nothing."""
    return with_facts(model, merged(facts, over=_facts_of(model)))


def _facts_of(model: Model) -> ModelFacts:
    """What the model says of itself; a value that is the default says nothing."""
    told, silent = model.capabilities, Capabilities()
    spoken = told != silent
    field = told.interleaved.get("field") if isinstance(told.interleaved, dict) else None
    return ModelFacts(
        name=model.name if model.name != model.id else None,
        family=model.family or None,
        release_date=model.release_date or None,
        status=model.status if model.status != "active" else None,
        limit=model.limit,
        cost=model.cost,
        reads=told.input if spoken else None,
        writes=told.output if spoken else None,
        temperature=told.temperature if spoken else None,
        toolcall=told.toolcall if spoken else None,
        reasoning=told.reasoning if spoken else None,
        reasoning_style=model.reasoning_style,
        effort_names=model.effort_names or None,
        reasoning_field=field,
        cache_style=model.cache_style,
        wire=model.wire,
        small_model=model.small_model,
    )


def with_facts(model: Model, facts: ModelFacts) -> Model:
    """The model, each fact that is known in its place."""
    known = {name: value for name in _PLAIN if (value := getattr(facts, name)) is not None}
    own = {name: getattr(facts.limit, name) for name in ModelLimit.__struct_fields__}
    limit = replace(model.limit, **{name: n for name, n in own.items() if n is not None})
    efforts = known.get("effort_names", model.effort_names)
    return replace(
        model,
        capabilities=_able(model.capabilities, facts),
        limit=limit,
        variants={**{name: {_EFFORT: name} for name in efforts}, **model.variants},
        **known,
    )


def _able(own: Capabilities, facts: ModelFacts) -> Capabilities:
    names = ("temperature", "toolcall", "reasoning")
    known = {name: value for name in names if (value := getattr(facts, name)) is not None}
    if facts.reasoning_field:
        known["interleaved"] = {"field": facts.reasoning_field}
    reads = facts.reads or own.input
    attachment = reads.image or reads.pdf if facts.reads else own.attachment
    return replace(
        own, input=reads, output=facts.writes or own.output, attachment=attachment, **known
    )
