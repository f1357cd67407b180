"""Tokens and money: about how long a request is, and what it cost in US dollars."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from pegboard.providers import (
    Call,
    Content,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
    Usage,
)
from pegboard.schema.model import CostTier, ModelCost
from pegboard.schema.session import CacheTokens, Tokens

CHARS_PER_TOKEN = 4
"""Of text and code in most tokenisers; good to a quarter or so."""
CAREFUL_CHARS = 3
"""Fewer than in most texts, so that a request is thought too long rather than too short."""
MEDIA_TOKENS = 1_500
"""About what a picture of full size costs, whatever its bytes."""
LONGEST_ANSWER_TOKENS = 32_000
"""What is held for an answer whose length nobody limits."""
_MILLION = 1_000_000


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
    return float(total / _MILLION)


def _price(cost: ModelCost, read: int) -> ModelCost | CostTier:
    """What a request costs that reads so many tokens, cached ones included."""
    tiers = [tier for tier in cost.tiers if read > tier.over_tokens]
    return max(tiers, key=lambda tier: tier.over_tokens, default=cost)


def total(tokens: Tokens) -> int:
    """All that was read and written, cached or not."""
    cached = tokens.cache.read + tokens.cache.write
    return tokens.input + tokens.output + tokens.reasoning + cached


def message_tokens(messages: Iterable[ModelMessage], chars: int = CHARS_PER_TOKEN) -> int:
    """About how many tokens messages have, with so many characters in each."""
    return sum(_length(item, chars) for each in messages for item in each.content) // chars


def fixed_tokens(request: ModelRequest, chars: int = CHARS_PER_TOKEN) -> int:
    """About how many tokens the system prompt and the tools of a request have."""
    system = sum(map(len, request.system))
    tools = sum(len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
    return (system + tools) // chars


def _length(item: Content, chars: int) -> int:
    match item:
        case Text(text=text) | Reasoning(text=text):
            return len(text)
        case Media():
            return MEDIA_TOKENS * chars
        case Call():
            return len(item.name) + len(str(item.input))
        case Result(output=output, media=media):
            return len(output) + len(media) * MEDIA_TOKENS * chars


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a request can take: US dollars and tokens."""

    read_tokens: int
    read_usd: float
    answer_tokens: int
    token_usd: float

    @classmethod
    def of(cls, request: ModelRequest) -> "Need":
        """The need of this request, by the length of its texts."""
        price = request.model.cost
        fixed = fixed_tokens(request, CAREFUL_CHARS)
        read = fixed + message_tokens(request.messages, CAREFUL_CHARS)
        read_usd = cost_of(Tokens(input=read), price) or 0.0
        million_usd = (cost_of(Tokens(input=read, output=_MILLION), price) or 0.0) - read_usd
        longest = request.max_output_tokens or request.model.limit.output
        return cls(
            read_tokens=read,
            read_usd=read_usd,
            answer_tokens=longest or LONGEST_ANSWER_TOKENS,
            token_usd=million_usd / _MILLION,
        )
