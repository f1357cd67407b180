"""What is known of a model, whoever provides it."""

from pathlib import Path

import pytest

from pegboard import InvalidInputError, hookimpl
from pegboard.engine.compaction.trigger import usable
from pegboard.errors import ModelNotFoundError
from pegboard.schema.message import AssistantMessage, BudgetFailure
from pegboard.schema.model import (
    CacheCost,
    Capabilities,
    CostTier,
    Modalities,
    Model,
    ModelApi,
    ModelCost,
    ModelFacts,
    ModelLimit,
)
from support.models.played import HI, Played, opened, text

SILENT = Model(id="m", provider_id="played", name="m", api=ModelApi(id="m"))
SPEAKING = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    capabilities=Capabilities(temperature=False),
    limit=ModelLimit(context=5_000),
    family="played",
)

KEY = {"PATH": "/usr/bin:/bin", "PLAYED_KEY": "k"}


class Facts:
    """A plugin that knows a model."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @hookimpl
    async def model_facts(self, provider: str, model: str) -> ModelFacts | None:
        self.asked.append(f"{provider}/{model}")
        return ModelFacts(
            name="Known",
            limit=ModelLimit(context=9_000, output=900),
            cost=ModelCost(input=1, output=2),
            reads=Modalities(image=True),
            reasoning=True,
            reasoning_style="effort",
            effort_names=("low", "high"),
            reasoning_field="reasoning_content",
            cache_style="marks",
            wire="messages",
            small_model="s",
        )

    @hookimpl
    async def model_names(self, provider: str) -> tuple[str, ...]:
        return ("m", f"none of {provider}")


def config(**said: object) -> dict[str, object]:
    return {"model": "played/m", "provider": {"played": {"models": {"m": said}}}}


@pytest.mark.fires("model_facts", "model_names")
async def test_facts_fill_what_a_provider_leaves_unsaid(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi"), model=SILENT), Facts(), env=KEY) as app:
        found = await app.resolve_model("played/m")
        listed = await app.models()

    assert found == Model(
        id="m",
        provider_id="played",
        name="Known",
        api=ModelApi(id="m"),
        capabilities=Capabilities(
            reasoning=True,
            attachment=True,
            input=Modalities(image=True),
            interleaved={"field": "reasoning_content"},
        ),
        limit=ModelLimit(context=9_000, output=900),
        cost=ModelCost(input=1, output=2),
        reasoning_style="effort",
        variants={"low": {"reasoningEffort": "low"}, "high": {"reasoningEffort": "high"}},
        effort_names=("low", "high"),
        cache_style="marks",
        wire="messages",
        small_model="s",
    )
    assert listed == (found,)


async def test_models_of_a_provider_whose_key_is_missing_are_not_listed(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi"), model=SILENT), Facts()) as app:
        assert await app.models() == ()


async def test_what_a_provider_says_of_its_model_stands_above_facts(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hi"), model=SPEAKING), Facts()) as app:
        found = await app.resolve_model("played/m")

    assert (found.name, found.family) == ("M", "played")
    assert found.limit == ModelLimit(context=5_000, output=900)
    assert (found.capabilities.temperature, found.capabilities.input.image) == (False, False)


async def test_the_configuration_s_word_on_a_model_of_any_provider_stands_above_all(
    tmp_path: Path,
) -> None:
    tier = {"over_tokens": 100, "input": 7, "output": 8, "cache_write": 9}
    said = config(
        name="Mine",
        limit={"context": 1_000},
        cost={"input": 3, "output": 4, "cache_read": 0.5, "tiers": [tier]},
        modalities={"input": ["text", "pdf"], "output": ["text"]},
        interleaved=True,
        reasoning_style="budget",
        options={"seed": 1},
        headers={"x-a": "b"},
        variants={"deep": {"effort": "high"}, "low": {"effort": "least"}},
        id="real",
        knowledge="2025",
    )
    async with opened(tmp_path, Played(text("hi"), model=SPEAKING), Facts(), config=said) as app:
        found = await app.resolve_model("played/m")

    assert (found.name, found.api.id, found.family) == ("Mine", "real", "played")
    assert found.limit == ModelLimit(context=1_000, output=900)
    assert found.cost == ModelCost(
        input=3,
        output=4,
        cache=CacheCost(read=0.5),
        tiers=(CostTier(over_tokens=100, input=7, output=8, cache=CacheCost(write=9)),),
    )
    assert found.capabilities.input == Modalities(pdf=True)
    assert (found.capabilities.interleaved, found.reasoning_style) == (True, "budget")
    assert usable(found) == 500
    assert (found.options, found.headers) == ({"seed": 1}, {"x-a": "b"})
    efforts = {"low": {"effort": "least"}, "high": {"reasoningEffort": "high"}}
    assert found.variants == {**efforts, "deep": {"effort": "high"}}


@pytest.mark.parametrize(
    ("said", "says"),
    [({"limit": {"context": "many"}}, "context"), ({"cost": {"input": 1}}, "output")],
)
async def test_a_wrong_word_on_a_model_names_its_key(
    tmp_path: Path, said: dict[str, object], says: str
) -> None:
    async with opened(tmp_path, Played(text("hi")), config=config(**said)) as app:
        with pytest.raises(InvalidInputError, match=rf"provider\.played\.models\.m: .*{says}"):
            await app.resolve_model("played/m")


async def test_a_model_of_which_nobody_says_anything_has_no_window_and_no_price(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Played(text("hi"))) as app:
        found = await app.resolve_model("played/m")

    assert (found.cost, found.limit) == (None, ModelLimit())


async def test_the_price_in_the_configuration_counts_for_a_provider_of_any_plugin(
    tmp_path: Path,
) -> None:
    priced = config(cost={"input": 100_000, "output": 100_000})
    async with opened(tmp_path, Played(text("hi")), config=priced) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
    limited = {**priced, "budget": {"usd": 0.01}}
    played = Played(text("hi"))
    async with opened(tmp_path, played, config=limited) as app:
        session = await app.create_session()
        refused = await app.prompt(session.id, HI)

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.cost == 1.5
    assert isinstance(refused.info, AssistantMessage)
    assert isinstance(refused.info.error, BudgetFailure)
    assert played.requests == []


async def test_a_model_that_is_not_there_is_told_with_the_nearest_that_a_table_has(
    tmp_path: Path,
) -> None:
    bound = Played(text("hi"), model=SILENT)
    async with opened(tmp_path, bound, Facts(), env=KEY) as app:
        with pytest.raises(ModelNotFoundError) as caught:
            await app.resolve_model("played/none of playd")

    assert "played/none of played" in caught.value.suggestions


async def test_of_a_model_that_is_like_no_other_its_own_name_is_no_suggestion(
    tmp_path: Path,
) -> None:
    bound = Played(text("hi"), model=SILENT)
    async with opened(tmp_path, bound, Facts(), env=KEY) as app:
        with pytest.raises(ModelNotFoundError) as caught:
            await app.resolve_model("played/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz")

    assert caught.value.suggestions == ()
