"""Tokens and money: the estimated size of a request, its cost, and the budget of a run."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from decimal import Decimal
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from pegboard.providers import (
    Call,
    Content,
    Media,
    ModelMessage,
    ModelRequest,
    Provider,
    Reasoning,
    Result,
    StreamEvent,
    Text,
    Usage,
)
from pegboard.schema.config import BudgetConfig
from pegboard.schema.model import CostTier, ModelCost
from pegboard.schema.session import CacheTokens, Estimate, Session, Tokens, add_tokens

CHARS_PER_TOKEN = 4
"""Of text and code in most tokenisers; good to a quarter or so."""
CHARS_AT_LEAST = 3
"""Of the same where the tokens must not be more than estimated."""
MEDIA_TOKENS = 1_500
"""The approximate tokens of a picture of full size, whatever its bytes."""
LONGEST_ANSWER_TOKENS = 32_000
"""What is held for an answer of unlimited length."""
_MILLION = 1_000_000


def tokens_of(usage: Usage | None) -> Tokens:
    """Convert a provider's usage to token counts; a missing or negative count is 0."""
    if usage is None:
        return Tokens()
    return Tokens(
        input=max(usage.input, 0),
        output=max(usage.output, 0),
        reasoning=max(usage.reasoning, 0),
        cache=CacheTokens(read=max(usage.cache_read, 0), write=max(usage.cache_write, 0)),
    )


def cost_of(tokens: Tokens, cost: ModelCost | None) -> float | None:
    """Return the price of one request in US dollars, or None if the price is unknown.

    Reasoning costs as much as output. Cached tokens without a known price cost as much as other
    tokens.
    """
    if cost is None:
        return 0.0 if tokens == Tokens() else None
    sent = tokens.input + tokens.cache.read + tokens.cache.write
    tiers = [tier for tier in cost.tiers if sent > tier.over_tokens]
    price: ModelCost | CostTier = max(tiers, key=lambda tier: tier.over_tokens, default=cost)
    read = price.input if price.cache.read is None else price.cache.read
    write = price.input if price.cache.write is None else price.cache.write
    total = (
        Decimal(tokens.input) * Decimal(str(price.input))
        + Decimal(tokens.output + tokens.reasoning) * Decimal(str(price.output))
        + Decimal(tokens.cache.read) * Decimal(str(read))
        + Decimal(tokens.cache.write) * Decimal(str(write))
    )
    return float(total / _MILLION)


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a request can use, in US dollars and tokens; an unknown price counts as 0."""

    read_tokens: int
    read_usd: float
    answer_tokens: int
    token_usd: float

    @classmethod
    def of(cls, request: ModelRequest) -> "Need":
        """Estimate the need of a request from the length of its texts and of the longest answer."""
        model = request.model
        read = request_tokens(request)
        read_usd = cost_of(Tokens(input=read), model.cost) or 0.0
        million_usd = (cost_of(Tokens(input=read, output=_MILLION), model.cost) or 0.0) - read_usd
        return cls(
            read_tokens=read,
            read_usd=read_usd,
            answer_tokens=request.max_output_tokens or model.limit.output or LONGEST_ANSWER_TOKENS,
            token_usd=million_usd / _MILLION,
        )

    @property
    def usd(self) -> float:
        """The cost of the request and of its longest answer, in US dollars."""
        return self.read_usd + self.answer_tokens * self.token_usd


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of requests as reported by providers, and estimated where not reported."""

    cost: float = 0.0
    tokens: Tokens = Tokens()
    estimate: Estimate | None = None

    @property
    def total_cost(self) -> float | None:
        """The cost in US dollars, or None if the cost of any request is unknown."""
        return None if self.estimate and self.estimate.requests else self.cost

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum of this usage and another."""
        return Spent(
            cost=self.cost + other.cost,
            tokens=add_tokens(self.tokens, other.tokens),
            estimate=other.estimate.plus(self.estimate) if other.estimate else self.estimate,
        )


def spent_on(request: ModelRequest, usage: Usage | None, written_chars: int) -> Spent:
    """Return the usage of a request, or an estimate if the provider reported none.

    If all reported counts are zero, the usage counts as not reported, since each request has
    tokens.
    """
    tokens, price = tokens_of(usage), request.model.cost
    if tokens != Tokens():
        cost = cost_of(tokens, price)
        unpriced = Estimate(requests=1) if cost is None else None
        counts = replace(tokens, total=total_tokens(tokens))
        return Spent(cost=cost or 0.0, tokens=counts, estimate=unpriced)
    read = request_tokens(request)
    guess = Tokens(input=read, output=written_chars // CHARS_AT_LEAST)
    cost, all_tokens = cost_of(guess, price), total_tokens(guess)
    return Spent(estimate=Estimate(requests=int(cost != 0), cost=cost or 0.0, tokens=all_tokens))


def total_tokens(tokens: Tokens) -> int:
    """Return the number of all tokens that were read and written, cached or not."""
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write


def message_tokens(messages: Iterable[ModelMessage], chars: int = CHARS_PER_TOKEN) -> int:
    """Estimate the tokens of messages, with `chars` characters per token."""
    return sum(_length(item, chars) for each in messages for item in each.content) // chars


def fixed_tokens(request: ModelRequest, chars: int = CHARS_PER_TOKEN) -> int:
    """Estimate the tokens of a request's system prompt and tools."""
    return (_system_length(request) + _tools_length(request)) // chars


def request_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request, with an estimate that is rather too high."""
    return fixed_tokens(request, CHARS_AT_LEAST) + message_tokens(request.messages, CHARS_AT_LEAST)


def _system_length(request: ModelRequest) -> int:
    return sum(map(len, request.system))


def _tools_length(request: ModelRequest) -> int:
    return sum(len(tool.description) + len(str(tool.parameters)) for tool in request.tools)


def sizes_of(request: ModelRequest) -> str:
    """Return the estimated tokens of a request's parts, and ways to shorten it, as one text."""
    window = request.model.limit.input or request.model.limit.context
    system, tools = (
        _system_length(request) // CHARS_AT_LEAST,
        _tools_length(request) // CHARS_AT_LEAST,
    )
    messages = message_tokens(request.messages, CHARS_AT_LEAST)
    of_window = f", and the window of the model has {window:,}" if window else ""
    way_out = (
        "choose a model with a larger window, switch tools off (`tools` of the agent), or shorten "
        "the instructions"
        if system + tools > messages
        else "shorten the prompt and its files, start a new session, or choose a model with a "
        "larger window"
    )
    return (
        f"the system prompt has about {system:,} tokens, the {len(request.tools)} tools {tools:,}, "
        f"the {len(request.messages)} messages {messages:,}{of_window}: {way_out}"
    )


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


class Budget:
    """The limits of a run; this class itself, for runs without a budget plugin, has no limits.

    If a method raises `BudgetError`, the step ends or the call fails, with the error's message.
    Methods are called on the event loop and must be fast.
    """

    def take_step(self) -> Sequence[str]:
        """Count a step that begins; return warnings for the user.

        :raises BudgetError: when the step would exceed a limit.
        """
        return ()

    def take_call(self) -> None:
        """Count a tool call against the budget, before the call runs.

        :raises BudgetError: when the call would exceed a limit.
        """

    def take_subagent(self) -> None:
        """Count a subagent against the budget, before the subagent starts.

        :raises ToolError: when it would exceed the limit; the message is for the model.
        """

    def in_time(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager for a step, which is ended when the budget's time is over.

        :raises BudgetError: when the time is over.
        """
        return nullcontext()

    async def answer(self, provider: Provider, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Return the provider's stream of events if the budget allows the request.

        :raises BudgetError: when it does not.
        """
        return provider.stream(request)

    def counts(self) -> Mapping[str, Any] | None:
        """Return JSON to store with the session for its next run, or None if there is none."""
        return None


class OpenBudget(Protocol):
    """A function that opens the budget of a run; `register_budget` returns it."""

    def __call__(
        self,
        limits: BudgetConfig,
        session: Session,
        parent: Budget | None,
        stored: Callable[[], Awaitable[Any]],
    ) -> Awaitable[Budget]:
        """Open the budget of a session's run.

        The run also uses the budget of its caller, `parent`. `stored` returns what `Budget.counts`
        last returned in this session, or None.
        """
        ...


def can_be_shortened(request: ModelRequest) -> bool:
    """Return whether a shorter history could make the request fit into the model's window."""
    window = request.model.limit.input or request.model.limit.context
    return not window or fixed_tokens(request, CHARS_AT_LEAST) < window


def within_window(request: ModelRequest) -> ModelRequest:
    """Return the request with its answer limited to the space left in the model's window."""
    window, longest = request.model.limit.context, request.max_output_tokens
    if not window or not longest or longest <= window // 4:
        return request
    sent = request_tokens(request)
    return replace(request, max_output_tokens=max(min(longest, window - sent), 1))
