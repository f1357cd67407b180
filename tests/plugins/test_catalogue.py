"""What the catalogue knows of models, where it has it from, and when it looks."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard.schema.model import CacheCost, CostTier, Modalities, ModelCost, ModelLimit
from pegboard_plugins import anthropic, gemini
from pegboard_plugins.catalogue.build import LIMIT_BYTES, tables, with_prices
from pegboard_plugins.catalogue.lookup import facts_of, names_of
from pegboard_plugins.catalogue.pricelist import row_of
from pegboard_plugins.catalogue.table import REFRESHED, SERVED, SHIPPED
from pegboard_plugins.openai_compatible import KNOWN

OPENS = """
import asyncio, json, sys
from pathlib import Path
from support.models.played import HI, Played, opened, text

read = []
sys.addaudithook(
    lambda name, args: read.append(str(args[0])) if name == "open" else None
)

def tables():
    return sum(name.endswith("catalogue/models.json") for name in read)

async def main(folder):
    async with opened(folder, Played(text("hi")), builtins=True) as app:
        at_start = tables(), "pegboard_plugins.catalogue.table" in sys.modules
        for _ in range(3):
            await app.resolve_model("openai/gpt-5")
        once = tables()
        await app.resolve_model("openai/gpt-5")
    print(json.dumps([at_start, 0 < once, tables() == once]))

asyncio.run(main(Path(sys.argv[1])))
"""
ENTRY: dict[str, Any] = {
    "litellm_provider": "anthropic",
    "mode": "chat",
    "max_input_tokens": 200_000,
    "max_output_tokens": 64_000,
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_creation_input_token_cost": 3.75e-06,
    "input_cost_per_token_above_200k_tokens": 6e-06,
    "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "supports_vision": True,
    "supports_pdf_input": True,
    "supports_function_calling": True,
    "supports_reasoning": True,
    "supports_adaptive_thinking": True,
    "supports_max_reasoning_effort": True,
    "supports_sampling_params": False,
}


def written(cache: Path, name: str, **providers: object) -> Path:
    cache.mkdir(exist_ok=True)
    (cache / name).write_text(json.dumps(providers))
    return cache


def test_the_table_that_comes_with_it_is_small_and_has_most_providers() -> None:
    providers = [name for name in json.loads(SHIPPED.read_bytes()) if name]

    assert SHIPPED.stat().st_size <= LIMIT_BYTES
    assert len(providers) >= 40


def test_nothing_is_read_before_a_model_is_named_and_each_model_is_looked_up_once(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", OPENS, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )

    assert done.stdout.strip() == "[[0, false], true, true]", done.stderr


def test_an_entry_of_the_price_list_becomes_facts() -> None:
    facts = row_of("anthropic", "claude", ENTRY).facts(small="little")

    assert facts.limit == ModelLimit(context=200_000, output=64_000)
    assert facts.cost == ModelCost(
        input=3,
        output=15,
        cache=CacheCost(read=0.3, write=3.75),
        tiers=(CostTier(over_tokens=200_000, input=6, output=22.5),),
    )
    assert facts.reads == Modalities(image=True, pdf=True)
    assert (facts.reasoning, facts.toolcall, facts.temperature) == (True, True, False)
    assert facts.reasoning_style == "adaptive"
    assert facts.effort_names == ("low", "medium", "high", "max")
    assert (facts.cache_style, facts.wire, facts.small_model) == ("marks", "messages", "little")


@pytest.mark.parametrize(
    ("provider", "model", "style", "wire", "cache", "field"),
    [
        ("openai", "gpt-5", "effort", "responses", "key", None),
        ("anthropic", "claude-opus-4-5", "budget", "messages", "marks", None),
        ("gemini", "gemini-2.5-pro", "budget", "gemini", "automatic", None),
        ("gemini", "gemini-3.5-flash", "level", "gemini", "automatic", None),
        ("groq", "openai/gpt-oss-120b", "effort", "chat", None, "reasoning"),
        ("openai", "gpt-4.1", None, "chat", "key", None),
    ],
)
def test_how_a_model_is_asked_is_known(  # noqa: PLR0917 - the row of a table
    tmp_path: Path,
    provider: str,
    model: str,
    style: str | None,
    wire: str,
    cache: str,
    field: str | None,
) -> None:
    facts = facts_of(provider, model, tmp_path)

    assert facts is not None
    found = (facts.reasoning_style, facts.wire, facts.cache_style, facts.reasoning_field)
    assert found == (style, wire, cache, field)
    assert facts.cost is not None
    assert facts.limit.context is not None


def test_the_first_source_that_has_a_fact_counts(tmp_path: Path) -> None:
    shipped = facts_of("openai", "gpt-5", tmp_path)
    cache = written(tmp_path, REFRESHED, openai={"models": {"gpt-5": {"p": [7, 8], "o": 5}}})
    refreshed = facts_of("openai", "gpt-5", cache)
    written(cache, SERVED, openai={"models": {"gpt-5": {"c": 9_000}}})
    served = facts_of("openai", "gpt-5", cache)

    assert shipped
    assert refreshed
    assert served
    assert (refreshed.cost, refreshed.limit.output) == (ModelCost(input=7, output=8), 5)
    assert refreshed.limit.context == shipped.limit.context
    assert (served.limit.context, served.limit.output) == (9_000, 5)
    assert served.reasoning_style == shipped.reasoning_style == "effort"


def test_a_dated_release_is_known_by_its_plain_name(tmp_path: Path) -> None:
    assert facts_of("openai", "gpt-5-2025-08-07", tmp_path) == facts_of("openai", "gpt-5", tmp_path)


def test_a_reasoning_model_of_openai_that_no_table_has_takes_no_temperature(tmp_path: Path) -> None:
    reasons, chats = (facts_of("openai", name, tmp_path) for name in ("gpt-5.99", "gpt-5.99-chat"))

    assert reasons
    assert chats
    assert (reasons.reasoning, reasons.temperature) == (True, False)
    assert (chats.reasoning, chats.temperature) == (None, None)
    assert reasons.cost is None


def test_a_model_on_the_user_s_own_machine_costs_nothing(tmp_path: Path) -> None:
    for provider in ("ollama", "lmstudio", "vllm", "llamacpp"):
        facts = facts_of(provider, "anything", tmp_path)
        assert facts
        assert facts.cost == ModelCost(input=0, output=0)


def test_a_provider_outside_of_the_table_is_looked_up_in_the_installed_price_list(
    tmp_path: Path,
) -> None:
    facts = facts_of("snowflake", "claude-3-5-sonnet", tmp_path)

    assert facts
    assert facts.limit.context
    assert facts_of("snowflake", "none-such", tmp_path) is None


def test_of_an_unknown_provider_nothing_is_known(tmp_path: Path) -> None:
    assert facts_of("mine", "m", tmp_path) is None
    assert names_of("mine", "", tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"openai": 3}', b'{"openai": {"models": 1}}'])
def test_a_damaged_file_is_no_source(tmp_path: Path, content: bytes) -> None:
    expected = facts_of("openai", "gpt-5", tmp_path)
    for name in (REFRESHED, SERVED):
        (tmp_path / name).write_bytes(content)

    assert facts_of("openai", "gpt-5", tmp_path) == expected


def test_what_a_server_has_listed_are_its_models(tmp_path: Path) -> None:
    known = names_of("openai", "", tmp_path)
    cache = written(tmp_path, SERVED, openai={"models": {"mine": {}}})

    assert known
    assert "gpt-5" in known
    assert names_of("openai", "", cache) == ("mine",)


def test_a_server_that_stands_for_a_provider_s_own_has_the_models_that_it_listed_itself(
    tmp_path: Path,
) -> None:
    own, other = "https://api.openai.com/v1", "http://models.example/v1"
    cache = written(tmp_path, SERVED, openai={"url": other, "models": {"mine": {}}})

    assert "gpt-5" in (names_of("openai", own, cache) or ())
    assert names_of("openai", other, cache) == ("mine",)
    assert names_of("openai", "http://third.example/v1", cache) is None


def test_the_tables_count_at_the_address_that_each_provider_has_by_itself() -> None:
    for endpoint in (*KNOWN.values(), anthropic.KNOWN["anthropic"], gemini.KNOWN["gemini"]):
        listed = names_of(endpoint.id, endpoint.url, Path("nowhere"))
        assert listed == names_of(endpoint.id, "", Path("nowhere")), endpoint.id
        if listed:
            assert names_of(endpoint.id, "http://elsewhere.example", Path("nowhere")) is None


def test_the_table_keeps_one_of_a_model_and_its_dated_releases() -> None:
    entries = {
        "claude-x": ENTRY,
        "claude-x-20250101": ENTRY,
        "claude-embed": {**ENTRY, "mode": "embedding"},
        "other/m": {**ENTRY, "litellm_provider": "other"},
    }

    assert list(tables(entries)["anthropic"].models) == ["claude-x"]


def test_prices_of_another_list_fill_what_is_missing() -> None:
    prices = SimpleNamespace(input_mtok=Decimal(1), output_mtok=Decimal(2))
    model = SimpleNamespace(id="new", prices=prices, context_window=9, deprecated=None)
    same = SimpleNamespace(id="claude-x", prices=prices, context_window=9, deprecated=None)
    provider = SimpleNamespace(id="anthropic", models=[model, same])
    plain = tables({"claude-x": ENTRY})

    found = with_prices(plain, [provider])["anthropic"].models

    assert found["claude-x"] == plain["anthropic"].models["claude-x"]
    assert (found["new"].c, found["new"].p) == (9, (1, 2))


def test_google_by_either_of_its_names_has_the_same_models(tmp_path: Path) -> None:
    names = names_of("google", "", tmp_path)

    assert names
    assert names == names_of("gemini", "", tmp_path)
    assert facts_of("google", names[0], tmp_path) == facts_of("gemini", names[0], tmp_path)
