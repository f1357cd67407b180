"""The lookup of a model's facts in the stored tables of models, in a fixed order."""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pegboard.schema.model import Modalities, ModelCost, ModelFacts, merge_facts
from pegboard_plugins.catalogue.table import (
    LIST,
    PRICE_LIST,
    REFRESHED,
    SERVED,
    SHIPPED,
    Listed,
    PriceList,
    read_provider,
    read_table,
)

_SAME = {"google": "gemini"}
"""Providers that a table has under another name."""
_HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "google": "generativelanguage.googleapis.com",
    "gemini": "generativelanguage.googleapis.com",
    "openrouter": "openrouter.ai",
    "groq": "api.groq.com",
    "deepseek": "api.deepseek.com",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "together": "api.together.xyz",
    "fireworks": "api.fireworks.ai",
    "cerebras": "api.cerebras.ai",
}
"""The providers' own hosts: a server elsewhere has other models than the tables."""
_DATED = r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$"
_SEEING = ("openai", "openrouter")
"""Providers of whose models most take pictures."""
_REASONING = ("o1", "o3", "o4", "gpt-5", "gpt-6")


def facts_of(provider: str, model: str, cache: Path) -> ModelFacts | None:
    """Return all known facts of a model, or None."""
    served = _provider(cache / SERVED, provider)
    refreshed = _provider(cache / REFRESHED, provider)
    shipped = _provider(SHIPPED, provider)
    tables = [_named(each, model) for each in (refreshed, shipped)]
    if not any(tables):
        tables.append(_unlisted(provider, model, shipped))
    found = [facts for facts in (_named(served, model), *tables) if facts is not None]
    if not found:
        return None
    facts = found[-1]
    for each in reversed(found[:-1]):
        facts = merge_facts(facts, over=each)
    return facts


def names_of(provider: str, url: str, cache: Path) -> Sequence[str] | None:
    """Return the models that the server at `url` has listed, or those in the table of models.

    The table has no models of local servers. It is not used if the address is another server than
    the provider's own.
    """
    own = not url or urlsplit(url).hostname == _HOSTS.get(provider, urlsplit(url).hostname)
    for path in (cache / SERVED, *((cache / REFRESHED, SHIPPED) if own else ())):
        listed = _provider(path, provider)
        if listed is None or listed.free or (url and listed.url not in ("", url)):
            continue
        if listed.models:
            return tuple(listed.models)
    return None


def _provider(path: Path, provider: str) -> Listed | None:
    try:
        written_at = path.stat().st_mtime_ns
    except OSError:
        return None
    own = _read(path, provider, written_at)
    same = _SAME.get(provider)
    return own if own is not None or same is None else _read(path, same, written_at)


@lru_cache(maxsize=256)
def _read(path: Path, provider: str, _written_at: int) -> Listed | None:
    """Return a provider of a file, cached until the file changes, or None if the file lacks it."""
    raw = _table(path, _written_at).get(provider)
    return None if raw is None else read_provider(raw)


@lru_cache(maxsize=4)
def _table(path: Path, _written_at: int) -> Mapping[str, msgspec.Raw]:
    return read_table(path)


def _named(listed: Listed | None, model: str) -> ModelFacts | None:
    """Return the facts of the model with this name, or with this name without a date in it."""
    if listed is None:
        return None
    row = listed.models.get(model) or listed.models.get(re.sub(_DATED, "", model))
    return None if row is None else row.facts(small=listed.small)


def _unlisted(provider: str, model: str, shipped: Listed | None) -> ModelFacts | None:
    """Return what is known of a model in no table, from litellm's list or from its name."""
    entry = _in_price_list(provider, model, shipped)
    if entry is not None:
        from pegboard_plugins.catalogue.pricelist import row_of  # seldom needed, 2 ms

        return row_of(provider, model, entry).facts(small=shipped.small if shipped else None)
    if shipped is None:
        return None
    thinks = provider == "openai" and model.startswith(_REASONING) and "chat" not in model
    return ModelFacts(
        reads=Modalities(image=True, pdf=True) if provider in _SEEING else None,
        reasoning=thinks or None,
        temperature=False if thinks else None,
        cost=ModelCost(input=0, output=0) if shipped.free else None,
    )


def _in_price_list(provider: str, model: str, shipped: Listed | None) -> dict[str, Any] | None:
    """Return the model's entry in litellm's list, found without parsing the 4,000 other entries.

    The list that the table in Pegboard was built from is skipped for providers in the table.
    """
    known = _made_of()
    if shipped is None and provider not in known.others:
        return None
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).with_name(PRICE_LIST)
    name = f"{shipped.litellm if shipped else provider}/{model}"
    try:
        if shipped is not None and file.stat().st_size == known.size:
            return None
        content = file.read_bytes()
        start = content.index(b"{", content.index(b"\n    " + msgspec.json.encode(name) + b": {"))
        end = content.index(b"\n    }", start) + len(b"\n    }")
        entry: dict[str, Any] = msgspec.json.decode(content[start:end], type=dict[str, Any])
    except (OSError, ValueError):
        return None
    return entry


def _made_of() -> PriceList:
    raw = read_table(SHIPPED).get(LIST)
    return msgspec.json.decode(raw, type=PriceList) if raw else PriceList()
