"""The tables of models.

A table is a JSON file of providers, each with its models in rows with short field names.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pegboard.schema.model import (
    CacheCost,
    CacheStyle,
    CostTier,
    Modalities,
    ModelCost,
    ModelFacts,
    ModelLimit,
    ReasoningStyle,
    WireName,
)

MEDIA = {"i": "image", "p": "pdf", "a": "audio", "v": "video"}
REASONS, NO_TOOLS, NO_TEMPERATURE, DEPRECATED = "r", "n", "x", "d"


class ModelRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row with the facts of a model.

    `c`, `o`, `i`: the window, and the limits of an answer and a request, in tokens. `p`: US dollars
    per million tokens read, written, read from the cache, and written to the cache. `t`: the same
    prices above a number of tokens. `m`: letters of `MEDIA`. `f`: the flags. `s`, `e`, `a`: the
    style and the names of reasoning efforts, and the field for thoughts. `k`, `w`: cache and wire
    format.
    """

    c: int | None = None
    o: int | None = None
    i: int | None = None
    p: tuple[float | None, ...] = ()
    t: tuple[tuple[float | None, ...], ...] = ()
    m: str | None = None
    f: str | None = None
    s: ReasoningStyle | None = None
    e: str | None = None
    a: str | None = None
    k: CacheStyle | None = None
    w: WireName | None = None

    def facts(self, *, small: str | None = None) -> ModelFacts:
        """Return the facts of a row; missing media or flags are unknown."""
        media, flags = self.m, self.f
        kinds = {kind: letter in (media or "") for letter, kind in MEDIA.items()}
        return ModelFacts(
            limit=ModelLimit(context=self.c, output=self.o, input=self.i),
            cost=self._cost(),
            reads=None if media is None else Modalities(**kinds),
            status="deprecated" if flags and DEPRECATED in flags else None,
            temperature=None if flags is None else NO_TEMPERATURE not in flags,
            toolcall=None if flags is None else NO_TOOLS not in flags,
            reasoning=None if flags is None else REASONS in flags,
            reasoning_style=self.s,
            effort_names=tuple(self.e.split()) if self.e else None,
            reasoning_field=self.a,
            cache_style=self.k,
            wire=self.w,
            small_model=small,
        )

    def _cost(self) -> ModelCost | None:
        if not self.p:
            return None
        read, written, cached, stored = self.p + (None,) * (4 - len(self.p))
        assert read is not None
        assert written is not None
        cache = CacheCost(read=cached, write=stored)
        return ModelCost(input=read, output=written, cache=cache, tiers=_tiers(self.t))


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider with its models; `litellm` is the provider's name in litellm's list.

    The models of a `free` provider cost nothing. `url` is the server that listed the models.
    """

    url: str = ""
    small: str | None = None
    free: bool = False
    litellm: str | None = None
    models: dict[str, ModelRow] = {}


class PriceList(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the litellm list from which a table was built, and providers not in the table."""

    size: int = 0
    others: tuple[str, ...] = ()


LIST = ""
"""Where a table has its `PriceList`; no provider is called so."""


def read_table(path: Path) -> Mapping[str, msgspec.Raw]:
    """Return a table file's providers, not yet decoded; {} if the file is missing or invalid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except (OSError, msgspec.DecodeError):
        return {}


def read_provider(raw: msgspec.Raw | None) -> Listed:
    """Return a provider of a table, decoded from JSON; an empty one if the JSON is invalid."""
    try:
        return msgspec.json.decode(raw, type=Listed) if raw else Listed()
    except msgspec.DecodeError:
        return Listed()


def _tiers(rows: tuple[tuple[float | None, ...], ...]) -> tuple[CostTier, ...]:
    return tuple(
        CostTier(
            over_tokens=int(over or 0),
            input=read or 0,
            output=written or 0,
            cache=CacheCost(read=cached, write=stored),
        )
        for over, read, written, cached, stored in rows
    )


SHIPPED = Path(__file__).with_name("models.json")
REFRESHED = "models.json"
SERVED = "served-models.json"
PRICE_LIST = "model_prices_and_context_window_backup.json"
