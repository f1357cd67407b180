"""The catalog of litellm's models, read from its price list without the slow import of litellm."""

import importlib.util
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from pegboard.schema.model import (
    CacheCost,
    Capabilities,
    Modalities,
    Model,
    ModelApi,
    ModelCost,
    ModelLimit,
)

ID = "litellm"
_FILE = "model_prices_and_context_window_backup.json"
_PER_MILLION = 1_000_000
_SAMPLE = "sample_spec"
"""The entry of the list that explains the others."""


class ListedModel(msgspec.Struct, frozen=True):
    """An entry of litellm's price list; prices are US dollars per token."""

    litellm_provider: str = ""
    mode: str = ""
    max_input_tokens: Any = None
    max_output_tokens: Any = None
    input_cost_per_token: Any = None
    output_cost_per_token: Any = None
    cache_read_input_token_cost: Any = None
    cache_creation_input_token_cost: Any = None
    supports_vision: Any = None
    supports_pdf_input: Any = None
    supports_audio_input: Any = None
    supports_video_input: Any = None
    supports_reasoning: Any = None
    supports_function_calling: Any = None


class Catalog:
    """The models and providers that litellm knows, read from its price list at first use."""

    def find(self, name: str) -> Model | None:
        """Return litellm's model with this name, or None if name and provider are unknown.

        A model of a known provider that is not in the list gets no token limits and no prices.
        """
        provider, slash, rest = name.partition("/")
        entry = self._entries.get(name) or self._of_provider(provider, rest)
        if entry is None and not (slash and rest and provider in self._providers):
            return None
        return _model(name, entry or ListedModel(supports_function_calling=True))

    def provider_of(self, name: str) -> str:
        """Return the provider from a model's name or the price list, or "" if it is unknown."""
        provider, slash, _ = name.partition("/")
        if slash:
            return provider
        entry = self._entries.get(name)
        return entry.litellm_provider if entry else ""

    def nearest(self, name: str) -> list[str]:
        """Return up to three names in the list that are spelt like `name`."""
        return get_close_matches(name, self._entries, n=3, cutoff=0.7)

    def _of_provider(self, provider: str, rest: str) -> ListedModel | None:
        """Return the entry of a model that the price list names without its provider, or None."""
        entry = self._entries.get(rest)
        return entry if entry and entry.litellm_provider.startswith(provider) else None

    @cached_property
    def _entries(self) -> Mapping[str, ListedModel]:
        spec = importlib.util.find_spec("litellm")
        if spec is None or spec.origin is None:
            return {}
        try:
            content = Path(spec.origin).with_name(_FILE).read_bytes()
            entries = msgspec.json.decode(content, type=dict[str, ListedModel])
        except (OSError, msgspec.DecodeError):
            return {}  # another release of litellm: its models are then taken without limits
        entries.pop(_SAMPLE, None)
        return {name: entry for name, entry in entries.items() if entry.mode in ("chat", "")}

    @cached_property
    def _providers(self) -> frozenset[str]:
        listed = {entry.litellm_provider for entry in self._entries.values()}
        prefixes = {name.partition("/")[0] for name in self._entries if "/" in name}
        return frozenset(listed | prefixes)


def _model(name: str, entry: ListedModel) -> Model:
    inputs = Modalities(
        image=bool(entry.supports_vision),
        pdf=bool(entry.supports_pdf_input),
        audio=bool(entry.supports_audio_input),
        video=bool(entry.supports_video_input),
    )
    limit = ModelLimit(
        context=_tokens(entry.max_input_tokens), output=_tokens(entry.max_output_tokens)
    )
    return Model(
        id=name,
        provider_id=ID,
        name=name,
        api=ModelApi(id=name, npm=ID),
        capabilities=Capabilities(
            reasoning=bool(entry.supports_reasoning),
            attachment=inputs.image or inputs.pdf,
            toolcall=bool(entry.supports_function_calling),
            input=inputs,
        ),
        cost=_cost(entry),
        limit=limit,
    )


def _cost(entry: ListedModel) -> ModelCost | None:
    read, written = _price(entry.input_cost_per_token), _price(entry.output_cost_per_token)
    if read is None or written is None:
        return None
    return ModelCost(
        input=read,
        output=written,
        cache=CacheCost(
            read=_price(entry.cache_read_input_token_cost),
            write=_price(entry.cache_creation_input_token_cost),
        ),
    )


def _tokens(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _price(value: object) -> float | None:
    # Rounded, as 3e-06 times a million is not 3 in binary.
    return round(value * _PER_MILLION, 6) if isinstance(value, int | float) else None
