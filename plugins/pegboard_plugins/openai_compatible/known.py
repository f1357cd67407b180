"""Servers and models that need no configuration."""

from collections.abc import Mapping
from typing import Any

import msgspec

LOCAL_TIMEOUT_S = 600.0
"""A local server may load a model of many gigabytes before it answers."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A server whose address is known.

    `env` may hold the key, none means that it takes none; `url_env` may hold another address.
    `sees` is whether models of unknown name are sent images and PDFs.
    """

    name: str
    url: str
    env: tuple[str, ...] = ()
    url_env: str = ""
    limit_field: str = "max_tokens"
    cache_key: bool = False
    usage_option: bool = True
    short_ids: bool = False
    sees: bool = False
    timeout_s: float = 60.0


KNOWN: Mapping[str, Known] = {
    "openai": Known(
        name="OpenAI",
        url="https://api.openai.com/v1",
        env=("OPENAI_API_KEY",),
        url_env="OPENAI_BASE_URL",
        limit_field="max_completion_tokens",
        cache_key=True,
        sees=True,
    ),
    "openrouter": Known(
        name="OpenRouter",
        url="https://openrouter.ai/api/v1",
        env=("OPENROUTER_API_KEY",),
        sees=True,
    ),
    "groq": Known(name="Groq", url="https://api.groq.com/openai/v1", env=("GROQ_API_KEY",)),
    "deepseek": Known(
        name="DeepSeek", url="https://api.deepseek.com/v1", env=("DEEPSEEK_API_KEY",)
    ),
    "mistral": Known(
        name="Mistral",
        url="https://api.mistral.ai/v1",
        env=("MISTRAL_API_KEY",),
        usage_option=False,
        short_ids=True,
    ),
    "xai": Known(name="xAI", url="https://api.x.ai/v1", env=("XAI_API_KEY",)),
    "together": Known(
        name="Together AI", url="https://api.together.xyz/v1", env=("TOGETHER_API_KEY",)
    ),
    "fireworks": Known(
        name="Fireworks AI",
        url="https://api.fireworks.ai/inference/v1",
        env=("FIREWORKS_API_KEY",),
    ),
    "cerebras": Known(name="Cerebras", url="https://api.cerebras.ai/v1", env=("CEREBRAS_API_KEY",)),
    "ollama": Known(
        name="Ollama",
        url="http://127.0.0.1:11434/v1",
        url_env="OLLAMA_HOST",
        timeout_s=LOCAL_TIMEOUT_S,
    ),
    "lmstudio": Known(name="LM Studio", url="http://127.0.0.1:1234/v1", timeout_s=LOCAL_TIMEOUT_S),
    "vllm": Known(name="vLLM", url="http://127.0.0.1:8000/v1", timeout_s=LOCAL_TIMEOUT_S),
    "llamacpp": Known(name="llama.cpp", url="http://127.0.0.1:8080/v1", timeout_s=LOCAL_TIMEOUT_S),
}

_SEEING = {"input": ["text", "image", "pdf"], "output": ["text"]}


def _openai(context: int, output: int, cost: tuple[float, float, float]) -> dict[str, Any]:
    price = {"input": cost[0], "output": cost[1], "cache_read": cost[2]}
    limit = {"context": context, "output": output}
    return {"limit": limit, "cost": price, "modalities": _SEEING, "attachment": True}


def _reasoning(facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "reasoning": True, "temperature": False}


def known_models(provider_id: str) -> Mapping[str, Mapping[str, Any]]:
    """Models of a provider in models.dev's form: tokens, and US dollars per million of them."""
    if provider_id != "openai":
        return {}
    return {
        "gpt-5": _reasoning(_openai(400_000, 128_000, (1.25, 10, 0.125))),
        "gpt-5-mini": _reasoning(_openai(400_000, 128_000, (0.25, 2, 0.025))),
        "gpt-5-nano": _reasoning(_openai(400_000, 128_000, (0.05, 0.4, 0.005))),
        "o3": _reasoning(_openai(200_000, 100_000, (2, 8, 0.5))),
        "o4-mini": _reasoning(_openai(200_000, 100_000, (1.1, 4.4, 0.275))),
        "gpt-4.1": _openai(1_047_576, 32_768, (2, 8, 0.5)),
        "gpt-4.1-mini": _openai(1_047_576, 32_768, (0.4, 1.6, 0.1)),
        "gpt-4o": _openai(128_000, 16_384, (2.5, 10, 1.25)),
        "gpt-4o-mini": _openai(128_000, 16_384, (0.15, 0.6, 0.075)),
    }


def thinks(provider_id: str, model_id: str) -> bool:
    """Whether an OpenAI model of unknown name is one that reasons, and takes no temperature."""
    prefixes = ("o1", "o3", "o4", "gpt-5")
    return provider_id == "openai" and model_id.startswith(prefixes) and "chat" not in model_id


def ollama_url(host: str) -> str:
    """The address in `OLLAMA_HOST`, which may lack scheme and port and be a listening address."""
    scheme, _, rest = host.rpartition("://")
    rest = rest.rstrip("/").replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - replaced, not bound
    if ":" not in rest:
        rest += ":443" if scheme == "https" else ":11434"
    return f"{scheme or 'http'}://{rest}/v1"
