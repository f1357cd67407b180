"""Tokens and money: what a request cost, in US dollars."""

from decimal import Decimal

from pegboard.contract.providers import Usage
from pegboard.schema.model import ModelCost
from pegboard.schema.session import CacheTokens, Tokens

_PER = Decimal(1_000_000)
LONG_CONTEXT_TOKENS = 200_000
"""Above this many tokens read, cached ones included, the price for long contexts counts."""


def tokens_of(usage: Usage | None) -> Tokens:
    """The protocol's counts; what a provider did not say, or said wrongly, is 0."""
    if usage is None:
        return Tokens()
    return Tokens(
        input=max(usage.input, 0),
        output=max(usage.output, 0),
        reasoning=max(usage.reasoning, 0),
        cache=CacheTokens(read=max(usage.cache_read, 0), write=max(usage.cache_write, 0)),
    )


def cost_of(tokens: Tokens, cost: ModelCost) -> float:
    """The price of one request; reasoning is paid like output."""
    price_in, price_out, cache = cost.input, cost.output, cost.cache
    long = cost.over_200k
    read = tokens.input + tokens.cache.read + tokens.cache.write
    if long is not None and read > LONG_CONTEXT_TOKENS:
        price_in, price_out, cache = long.input, long.output, long.cache
    total = (
        Decimal(tokens.input) * Decimal(str(price_in))
        + Decimal(tokens.output + tokens.reasoning) * Decimal(str(price_out))
        + Decimal(tokens.cache.read) * Decimal(str(cache.read))
        + Decimal(tokens.cache.write) * Decimal(str(cache.write))
    )
    return float(total / _PER)


def total(tokens: Tokens) -> int:
    """All that was read and written, cached or not."""
    cached = tokens.cache.read + tokens.cache.write
    return tokens.input + tokens.output + tokens.reasoning + cached
