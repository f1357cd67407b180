"""Which providers and models there are, by what the user configured."""

import asyncio
from collections.abc import Mapping

import pytest

from pegboard.engine.modelentry import overridden
from pegboard.http.httpprovider import HttpProvider, endpoints
from pegboard.http.wireformat import Endpoint, KeyCheck
from pegboard.schema.config import Config, ProviderConfig
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
from pegboard_plugins.openai_compatible import register_providers
from support.models.keyed import keys_of

LOCAL = {"baseURL": "http://127.0.0.1:9/v1/"}


def _providers(
    environ: Mapping[str, str] | None = None, **providers: ProviderConfig
) -> dict[str, HttpProvider]:
    config, env = Config(provider=providers), environ or {}
    found = asyncio.run(register_providers(config, env, keys_of(config.provider, env)))
    return {one.id: one for one in found if isinstance(one, HttpProvider)}


def _endpoints(
    environ: Mapping[str, str] | None = None, **providers: ProviderConfig
) -> dict[str, Endpoint]:
    return {name: one.endpoint for name, one in _providers(environ, **providers).items()}


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_plugin_says_whether_its_server_has_other_models(is_strict: bool) -> None:
    known = Endpoint(
        id="acme", name="Acme", url="http://127.0.0.1:9", models=("anvil",), strict=is_strict
    )

    (found,) = endpoints(Config(), {}, known={"acme": known}, npm=())

    assert found.strict is is_strict


async def test_the_known_providers_are_registered() -> None:
    providers = await register_providers(Config(), {}, keys_of())

    names = [provider.id for provider in providers]
    assert names[:4] == ["openai", "openrouter", "groq", "deepseek"]
    assert {"mistral", "xai", "together", "fireworks", "cerebras", "ollama"} <= set(names)


def test_a_provider_with_a_base_url_is_added() -> None:
    options = {**LOCAL, "apiKey": "k", "headers": {"X-A": "1"}, "timeout_s": 5, "seed": 1}

    mine = _endpoints(mine=ProviderConfig(name="Mine", options=options))["mine"]

    assert mine == Endpoint(
        id="mine",
        name="Mine",
        url="http://127.0.0.1:9/v1",
        headers={"X-A": "1"},
        options={"seed": 1},
        timeout_s=5,
        first_event_s=5,
        npm="@ai-sdk/openai-compatible",
        key_check=KeyCheck(),
    )


def test_a_provider_without_a_base_url_or_with_another_protocol_is_left_to_others() -> None:
    found = _endpoints(
        anthropic=ProviderConfig(options={"apiKey": "k"}),
        other=ProviderConfig(npm="@ai-sdk/anthropic", options=LOCAL),
    )

    assert {"anthropic", "other"}.isdisjoint(found)


def test_the_environment_may_move_a_known_provider_and_the_configuration_wins() -> None:
    environ = {"OPENAI_BASE_URL": "http://a/v1"}

    assert _endpoints(environ)["openai"].url == "http://a/v1"
    assert _endpoints(environ, openai=ProviderConfig(options=LOCAL))["openai"].url == (
        "http://127.0.0.1:9/v1"
    )


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        ("https://box.example/", "https://box.example:443/v1"),
    ],
)
def test_the_forms_of_ollama_s_host(host: str, url: str) -> None:
    assert _endpoints({"OLLAMA_HOST": host})["ollama"].url == url


def test_any_model_of_a_provider_without_a_list_and_none_beside_a_list() -> None:
    found = _providers(
        free=ProviderConfig(options=LOCAL), bound=ProviderConfig(options=LOCAL, models={"m": {}})
    )

    assert found["free"].resolve("anything")
    assert found["bound"].resolve("m")
    assert found["bound"].resolve("anything") is None
    assert found["free"].resolve("") is None


def test_the_facts_of_a_model_in_the_words_of_models_dev() -> None:
    facts = {
        "id": "real-name",
        "name": "My model",
        "limit": {"context": 1000, "output": 100},
        "cost": {
            "input": 1,
            "output": 2,
            "cache_read": 0.1,
            "context_over_200k": {"input": 3, "output": 4},
        },
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "reasoning": True,
        "tool_call": False,
        "knowledge": "2025",
        "options": {"seed": 1},
    }
    settings = ProviderConfig(options=LOCAL, models={"m": facts})
    bare = _providers(mine=settings)["mine"].resolve("m")
    assert bare

    model = overridden(bare, facts)

    assert model == Model(
        id="m",
        provider_id="mine",
        name="My model",
        api=ModelApi(id="real-name", url="http://127.0.0.1:9/v1", npm="@ai-sdk/openai-compatible"),
        capabilities=Capabilities(
            reasoning=True, attachment=True, toolcall=False, input=Modalities(image=True)
        ),
        cost=ModelCost(
            input=1,
            output=2,
            cache=CacheCost(read=0.1),
            tiers=(CostTier(over_tokens=200_000, input=3, output=4),),
        ),
        limit=ModelLimit(context=1000, output=100),
        options={"seed": 1},
    )
