"""Tokens and money: what a request cost, in US dollars."""

from decimal import Decimal

from pegboard.contract.providers import Usage
from pegboard.schema.model import CostTier, ModelCost
from pegboard.schema.session import CacheTokens, Tokens

_PER = Decimal(1_000_000)


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


def cost_of(tokens: Tokens, cost: ModelCost | None) -> float | None:
    """The price of one request, None if nobody knows it; reasoning is paid like output.

    Cached tokens, the prices of which are not known, are paid like those that are not.
    """
    if cost is None:
        return 0.0 if tokens == Tokens() else None
    price = _price(cost, tokens.input + tokens.cache.read + tokens.cache.write)
    read = price.input if price.cache.read is None else price.cache.read
    write = price.input if price.cache.write is None else price.cache.write
    total = (
        Decimal(tokens.input) * Decimal(str(price.input))
        + Decimal(tokens.output + tokens.reasoning) * Decimal(str(price.output))
        + Decimal(tokens.cache.read) * Decimal(str(read))
        + Decimal(tokens.cache.write) * Decimal(str(write))
    )
    return float(total / _PER)


def _price(cost: ModelCost, read: int) -> ModelCost | CostTier:
    """What a request costs that reads so many tokens, cached ones included."""
    tiers = [tier for tier in cost.tiers if read > tier.over_tokens]
    return max(tiers, key=lambda tier: tier.over_tokens, default=cost)


def total(tokens: Tokens) -> int:
    """All that was read and written, cached or not."""
    cached = tokens.cache.read + tokens.cache.write
    return tokens.input + tokens.output + tokens.reasoning + cached
