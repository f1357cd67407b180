"""The program that writes Pegboard's table: `python -m pegboard_plugins.catalogue.build`.

It uses the price list of the installed litellm and, if installed, the package `genai-prices` for
missing prices.
"""

import importlib.util
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pegboard_plugins.catalogue.pricelist import Entry, read_price_list, row_of
from pegboard_plugins.catalogue.table import LIST, PRICE_LIST, SHIPPED, Listed, ModelRow, PriceList

LIMIT_BYTES = 300_000
PROVIDERS = {
    "openai": ("openai", "gpt-5.4-nano"),
    "anthropic": ("anthropic", "claude-haiku-4-5"),
    "gemini": ("gemini", "gemini-3.1-flash-lite"),
    "openrouter": ("openrouter", "google/gemini-3.1-flash-lite"),
    "deepseek": ("deepseek", "deepseek-v4-flash"),
    "mistral": ("mistral", "mistral-small-latest"),
    "xai": ("xai", "grok-code-fast"),
    "groq": ("groq", "openai/gpt-oss-20b"),
    "cerebras": ("cerebras", "gpt-oss-120b"),
    "together": ("together_ai", "openai/gpt-oss-20b"),
    "fireworks": ("fireworks_ai", "accounts/fireworks/models/gpt-oss-20b"),
    "deepinfra": ("deepinfra", "openai/gpt-oss-20b"),
    "dashscope": ("dashscope", "qwen3.8-flash"),
    "zai": ("zai", "glm-4.7-flash"),
    "moonshot": ("moonshot", None),
    "minimax": ("minimax", "MiniMax-M2.5-lightning"),
    "perplexity": ("perplexity", "sonar"),
    "cohere": ("cohere_chat", "command-r7b-12-2024"),
    "novita": ("novita", None),
    "nebius": ("nebius", None),
    "sambanova": ("sambanova", None),
    "hyperbolic": ("hyperbolic", None),
    "github_copilot": ("github_copilot", None),
    "vercel": ("vercel_ai_gateway", None),
    "nscale": ("nscale", None),
    "ovhcloud": ("ovhcloud", None),
    "scaleway": ("scaleway", None),
    "baseten": ("baseten", None),
    "lambda": ("lambda_ai", None),
    "wandb": ("wandb", None),
    "ai21": ("ai21", None),
    "meta": ("meta", None),
    "volcengine": ("volcengine", None),
    "gmi": ("gmi", None),
    "friendliai": ("friendliai", None),
    "featherless": ("featherless_ai", None),
    "inception": ("inception", None),
    "morph": ("morph", None),
    "v0": ("v0", None),
    "tencent": ("tencent", None),
    "ollama": ("ollama", None),
    "lmstudio": ("", None),
    "vllm": ("", None),
    "llamacpp": ("", None),
}
"""The provider's name in the list, and its model for small work."""
LOCAL = ("ollama", "lmstudio", "vllm", "llamacpp")
"""The providers whose models cost nothing."""
OTHER_NAMES = {"moonshot": "moonshotai", "xai": "x-ai"}
"""Names of providers in `genai-prices`, where they are not ours."""
COMPLETE = ("openai", "gemini")
"""Providers whose missing models are only outdated ones."""
_NO_CHAT = re.compile(
    r"^ft:|embed|audio|realtime|tts|transcribe|image|search-preview|:batch|moderation|guard"
    r"|whisper|-live|robotics|deep-research"
)
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")


def tables(entries: dict[str, Entry]) -> dict[str, Listed]:
    """Return the providers and their models, taken from litellm's price list."""
    found = {}
    for provider, (name, small) in PROVIDERS.items():
        rows = dict(_rows(provider, name, entries.items()))
        models = {model: row for model, row in rows.items() if not _repeats(model, rows)}
        found[provider] = Listed(
            small=small, free=provider in LOCAL, litellm=name or None, models=models
        )
    return found


def _rows(
    provider: str, name: str, entries: Iterable[tuple[str, Entry]]
) -> Iterable[tuple[str, ModelRow]]:
    for key, entry in entries:
        chats = entry.get("mode") in ("chat", "responses")
        if entry.get("litellm_provider") == name and chats and not _NO_CHAT.search(key):
            model = key.removeprefix(f"{name}/").removeprefix(f"{provider}/")
            row = row_of(provider, model, entry)
            if provider in LOCAL:
                row = msgspec.structs.replace(row, p=(0.0, 0.0))
            if row.p or row.c:
                yield model, row


def _repeats(model: str, rows: dict[str, ModelRow]) -> bool:
    """Return whether the model is a dated release of a model that has a row without a date."""
    plain = _DATED.sub("", model)
    return plain != model and plain in rows


def with_prices(listed: dict[str, Listed], providers: Iterable[Any]) -> dict[str, Listed]:
    """Return the tables, and add the models that they lack from the package `genai-prices`."""
    known = {each.id: each for each in providers}
    found = {}
    for provider, table in listed.items():
        theirs = known.get(OTHER_NAMES.get(provider, provider))
        theirs = None if provider in COMPLETE else theirs
        models = dict(table.models)
        for model in theirs.models if theirs else ():
            priced = _priced(provider, model)
            if priced is not None and model.id not in models and not _NO_CHAT.search(model.id):
                models[model.id] = priced
        found[provider] = msgspec.structs.replace(table, models=models)
    return found


def _priced(provider: str, model: Any) -> ModelRow | None:  # noqa: ANN401 - of a package without types here
    price = model.prices[-1].prices if isinstance(model.prices, list) else model.prices
    names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
    values = [getattr(price, name, None) for name in names]
    plain = [float(each) if each is not None and _is_plain(each) else None for each in values]
    if plain[0] is None or plain[1] is None or model.deprecated:
        return None
    while plain[-1] is None:
        plain.pop()
    row = row_of(provider, model.id, {"supports_function_calling": True})
    return msgspec.structs.replace(row, c=model.context_window, p=tuple(plain), m=None, f=None)


def _is_plain(value: object) -> bool:
    """Return whether a price is a single number; prices with steps come from litellm's list."""
    return not hasattr(value, "tiers")


def main() -> None:
    """Write the table of models that Pegboard ships, and print its size."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).with_name(PRICE_LIST)
    entries = read_price_list(file.read_bytes())
    found = tables(entries)
    if importlib.util.find_spec("genai_prices"):
        data = importlib.import_module("genai_prices.data")
        found = with_prices(found, data.providers)
    listed = {name for _, (name, _) in PROVIDERS.items()}
    others = {entry.get("litellm_provider", "") for entry in entries.values()} - listed
    made_of = PriceList(size=file.stat().st_size, others=tuple(sorted(others - {""})))
    content = msgspec.json.encode({LIST: made_of, **found})
    assert len(content) <= LIMIT_BYTES, f"{len(content):,} bytes"
    missing = [name for name, each in found.items() if each.small and each.small not in each.models]
    assert not missing, f"no such small model: {missing}"
    SHIPPED.write_bytes(content.replace(b'},"', b'},\n"') + b"\n")
    models = sum(len(each.models) for each in found.values())
    sys.stdout.write(f"{SHIPPED}: {len(content):,} bytes, {models:,} models\n")


if __name__ == "__main__":
    main()
