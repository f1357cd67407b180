"""The conversion of an entry in litellm's price list to a row of the table of models."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from pegboard.schema.model import CacheStyle, ReasoningStyle, WireName
from pegboard_plugins.catalogue.table import (
    DEPRECATED,
    NO_TEMPERATURE,
    NO_TOOLS,
    REASONS,
    ModelRow,
)

_PER_MILLION = 1_000_000
_PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ORDINARY_EFFORTS = ("low", "medium", "high")
_APART = (272_000, 922_000)
"""Windows of OpenAI's models for the request alone; an answer has a room of its own."""
_OLD_GEMINI = re.compile(r"gemini-[12]")
_FIELDS = {
    "openrouter": "reasoning_details",
    "groq": "reasoning",
    "cerebras": "reasoning",
    "vercel": "reasoning",
}
"""Where thoughts come and go back; `reasoning_content` at all others that speak alike."""
_MARKED = ("anthropic/", "claude", "google/gemini")
_OWN = ("anthropic", "gemini", "openai")
"""Providers that are asked through an API of their own, in which thoughts have their place."""

Entry = dict[str, Any]
"""A model in litellm's list; prices are US dollars per token."""


def row_of(provider: str, model: str, entry: Entry) -> ModelRow:
    """Return the row for a provider's model in the table of models."""
    chats = provider == "openai" and "-chat" in model  # which litellm takes for one that thinks
    reasons = bool(entry.get("supports_reasoning")) and not chats
    style = _style(provider, model, entry) if reasons else None
    window, longest = _tokens(entry, "max_input_tokens"), _tokens(entry, "max_output_tokens")
    apart = window if window in _APART and provider == "openai" else None
    return ModelRow(
        c=apart + (longest or 0) if apart else window,
        o=longest,
        i=apart,
        p=_prices(entry),
        t=tuple(_tiers(entry)),
        m=_media(entry),
        f="".join(_flags(provider, entry, reasons=reasons)),
        s=style,
        e=" ".join(_efforts(provider, entry, style)) or None,
        a=_FIELDS.get(provider, "reasoning_content") if reasons and provider not in _OWN else None,
        k=_cache(provider, model, entry),
        w=_wire(provider, entry, reasons=reasons),
    )


def _tokens(entry: Entry, name: str) -> int | None:
    value = entry.get(name)
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _price(entry: Entry, name: str) -> float | None:
    # Rounded, as 3e-06 times a million is not 3 in binary.
    value = entry.get(name)
    return round(value * _PER_MILLION, 6) if isinstance(value, int | float) else None


def _prices(entry: Entry) -> tuple[float | None, ...]:
    found = [_price(entry, name) for name in _PRICES]
    if found[0] is None or found[1] is None:
        return ()
    while found[-1] is None:
        found.pop()
    return tuple(found)


def _tiers(entry: Entry) -> Iterator[tuple[float | None, ...]]:
    for name in entry:
        if match := _TIER.fullmatch(name):
            end = f"_above_{match[1]}k_tokens"
            prices = [_price(entry, f"{price}{end}") for price in _PRICES]
            if prices[0] is not None and prices[1] is not None:
                yield (int(match[1]) * 1000, *prices)


def _media(entry: Entry) -> str:
    names = {
        "i": "supports_vision",
        "p": "supports_pdf_input",
        "a": "supports_audio_input",
        "v": "supports_video_input",
    }
    return "".join(letter for letter, name in names.items() if entry.get(name))


def _flags(provider: str, entry: Entry, *, reasons: bool) -> Iterator[str]:
    if reasons:
        yield REASONS
    if not entry.get("supports_function_calling"):
        yield NO_TOOLS
    if entry.get("supports_sampling_params") is False or (reasons and provider == "openai"):
        yield NO_TEMPERATURE
    if entry.get("deprecated"):
        yield DEPRECATED


def _style(provider: str, model: str, entry: Entry) -> ReasoningStyle | None:
    match provider:
        case "anthropic":
            return "adaptive" if entry.get("supports_adaptive_thinking") else "budget"
        case "gemini":
            return "budget" if _OLD_GEMINI.match(model) else "level"
        case "dashscope" | "zai":
            return "switch"
        case "openai" | "openrouter" | "vercel" | "github_copilot":
            return "effort"
    if _named_efforts(entry) or "gpt-oss" in model:
        return "effort"
    return "always" if entry.get("thinking_always_on") else None


def _named_efforts(entry: Entry) -> tuple[str, ...]:
    levels = entry.get("reasoning_effort_levels") or ()
    told = {name for name in _EFFORTS if entry.get(f"supports_{name}_reasoning_effort")}
    return tuple(name for name in _EFFORTS if name in told or name in levels)


def _efforts(provider: str, entry: Entry, style: ReasoningStyle | None) -> tuple[str, ...]:
    if style not in ("effort", "adaptive", "level"):
        return ()
    named = set(_named_efforts(entry))
    if provider != "openai" and entry.get("reasoning_effort_levels"):
        return _named_efforts(entry)
    return tuple(name for name in _EFFORTS if name in named or name in _ORDINARY_EFFORTS)


def _cache(provider: str, model: str, entry: Entry) -> CacheStyle | None:
    if provider == "anthropic" or (provider != "gemini" and model.startswith(_MARKED)):
        return "marks"
    if provider == "openai":
        return "key"
    return "automatic" if entry.get("supports_prompt_caching") else None


def _wire(provider: str, entry: Entry, *, reasons: bool) -> WireName:
    match provider:
        case "anthropic":
            return "messages"
        case "gemini":
            return "gemini"
    both = "/v1/responses" in entry.get("supported_endpoints", ()) and provider == "openai"
    return "responses" if entry.get("mode") == "responses" or (reasons and both) else "chat"


def read_price_list(content: bytes) -> dict[str, Entry]:
    """Return litellm's entries by name, without `sample_spec`, which documents the others."""
    entries = msgspec.json.decode(content, type=dict[str, Entry])
    entries.pop("sample_spec", None)
    return entries
