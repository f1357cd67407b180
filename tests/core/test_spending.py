"""Tokens and prices of one request."""

import pytest

from pegboard.budgets import cost_of
from pegboard.providers import Usage
from pegboard.schema.model import CacheCost, CostTier, ModelCost
from pegboard.schema.session import CacheTokens, Tokens, add_tokens
from pegboard.unstable import tokens_of, total_tokens

LONG_CONTEXT_TOKENS = 200_000
CHEAP = ModelCost(input=3, output=15, cache=CacheCost(read=0.3, write=3.75))
DEAR = ModelCost(
    input=3,
    output=15,
    cache=CacheCost(read=0.3, write=3.75),
    tiers=(
        CostTier(over_tokens=200_000, input=6, output=22.5, cache=CacheCost(read=0.6, write=7.5)),
        CostTier(over_tokens=100, input=3, output=15, cache=CacheCost(read=0.3, write=3.75)),
    ),
)


def tokens(
    *, read: int = 0, wrote: int = 0, thought: int = 0, cached: int = 0, stored: int = 0
) -> Tokens:
    return Tokens(
        input=read, output=wrote, reasoning=thought, cache=CacheTokens(read=cached, write=stored)
    )


@pytest.mark.parametrize(
    ("counts", "usd"),
    [
        (tokens(), 0),
        (tokens(read=1_000_000), 3),
        (tokens(wrote=1_000_000), 15),
        (tokens(thought=1_000_000), 15),  # as output
        (tokens(cached=1_000_000), 0.3),
        (tokens(stored=1_000_000), 3.75),
        (tokens(read=1, wrote=1, thought=1, cached=1, stored=1), 0.00003705),
    ],
)
def test_each_kind_of_token_has_its_price(counts: Tokens, usd: float) -> None:
    assert cost_of(counts, CHEAP) == usd


@pytest.mark.parametrize(
    ("counts", "dear"),
    [
        (tokens(read=LONG_CONTEXT_TOKENS), False),
        (tokens(read=LONG_CONTEXT_TOKENS + 1), True),
        (tokens(read=1, cached=LONG_CONTEXT_TOKENS), True),
        (tokens(read=1, stored=LONG_CONTEXT_TOKENS), True),
        (tokens(read=1, wrote=LONG_CONTEXT_TOKENS), False),  # what it reads counts alone
    ],
)
def test_a_long_context_has_prices_of_its_own_for_all_its_tokens(
    counts: Tokens, *, dear: bool
) -> None:
    long = DEAR.tiers[0]
    price = ModelCost(input=long.input, output=long.output, cache=long.cache) if dear else CHEAP

    assert cost_of(counts, DEAR) == cost_of(counts, price)
    assert (cost_of(counts, DEAR) != cost_of(counts, CHEAP)) is dear


def test_what_a_model_without_a_price_has_cost_is_not_known() -> None:
    assert cost_of(tokens(read=1), None) is None
    assert cost_of(tokens(), None) == 0


def test_cached_tokens_without_a_price_are_paid_like_the_others() -> None:
    price = ModelCost(input=3, output=15)

    assert cost_of(tokens(cached=1_000_000), price) == 3
    assert cost_of(tokens(stored=1_000_000), price) == 3


def test_prices_are_added_as_decimals() -> None:
    price = ModelCost(input=0.1, output=0.2, cache=CacheCost())

    assert cost_of(tokens(read=1_000_000, wrote=1_000_000), price) == 0.3


def test_counts_that_cannot_be_are_nothing() -> None:
    wrong = Usage(input=-5, output=7, reasoning=-1, cache_read=-2, cache_write=-3)

    assert tokens_of(wrong) == tokens(wrote=7)
    assert tokens_of(None) == tokens()


def test_counts_are_added() -> None:
    one = tokens(read=1, wrote=2, thought=3, cached=4, stored=5)
    two = tokens(read=10, wrote=20, thought=30, cached=40, stored=50)

    assert add_tokens(None, one) == one
    assert total_tokens(add_tokens(one, two)) == 165
