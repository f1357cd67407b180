"""The money of a batch: a request's highest possible cost is held, then its real cost is paid."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from pegboard import hookimpl
from pegboard.budgets import Need, cost_of
from pegboard.errors import BudgetError
from pegboard.providers import ModelRequest, Provider, StreamEvent, StreamFinish, Usage
from pegboard.schema.model import Model, format_usd
from pegboard.schema.session import Tokens
from pegboard.unstable import tokens_of
from pegboard_fleet.journal import Entry, Held, Journal, Paid
from pegboard_fleet.state import BatchState

Before = Callable[[], Awaitable[None]]


class Ledger(Protocol):
    """The money account of a batch, which also records the progress of attempts."""

    @property
    def state(self) -> BatchState:
        """The state of the batch, with the batch's settings."""

    async def note(self, *entries: Entry) -> None:
        """Record journal entries, such as the start of an attempt, before these things happen."""

    async def hold(self, usd: float) -> int:
        """Hold `usd` for a request to a model, and return a number for the request.

        :raises BudgetError: when the rest of the budget is too small.
        """

    async def pay(self, number: int, usd: float) -> None:
        """Replace the amount held for a request with the real cost of the request."""


class JournalLedger:
    """The money account of a batch in a single process, which alone writes the batch's journal."""

    def __init__(self, journal: Journal, state: BatchState) -> None:
        self._state = state
        self._journal = journal
        self._writing = asyncio.Lock()
        self._freed = asyncio.Condition()
        self._number = state.requests
        self._lost_usd = state.lost_usd
        self._running: dict[int, float] = {}

    @property
    def state(self) -> BatchState:
        """The state of the batch, as the journal records it."""
        return self._state

    @property
    def spent_usd(self) -> float:
        """The money paid, plus the money held for running or interrupted requests."""
        return self.state.paid_usd + self._lost_usd + sum(self._running.values())

    async def note(self, *entries: Entry) -> None:
        """Write entries to the journal and apply them, even if the caller is cancelled."""
        await asyncio.shield(self._note(entries))

    async def _note(self, entries: tuple[Entry, ...]) -> None:
        async with self._writing:
            await asyncio.to_thread(self._journal.write, *entries)
            self.state.take(entries)

    async def hold(self, usd: float) -> int:
        """Wait until the budget has `usd` left, hold that amount, and return a request number.

        :raises BudgetError: when the rest of the budget is too small although no request runs.
        """
        limit = self.state.settings.budget_usd
        async with self._freed:
            while limit is not None and self.spent_usd + usd > limit:
                if not self._running:
                    text = f"the batch may spend {format_usd(limit)}"
                    spent = f"{format_usd(self.spent_usd)} are spent"
                    raise BudgetError(f"{text}, {spent}: too little for a request")
                await self._freed.wait()
            self._number += 1
            number = self._number
            self._running[number] = usd
        return number

    async def pay(self, number: int, usd: float) -> None:
        """Replace the amount held for a request with its cost; wake the waiting requests."""
        await self.note(Paid(number=number, usd=usd))
        async with self._freed:
            del self._running[number]
            self._freed.notify_all()


class Metered:
    """A provider that charges each request to a ledger."""

    def __init__(self, inner: Provider, ledger: Ledger, before: Before | None) -> None:
        self._inner = inner
        self._ledger = ledger
        self._before = before

    @property
    def id(self) -> str:
        """The id of the wrapped provider."""
        return self._inner.id

    @property
    def name(self) -> str:
        """The name of the wrapped provider."""
        return self._inner.name

    @property
    def env(self) -> Sequence[str]:
        """The environment variables of the wrapped provider."""
        return self._inner.env

    def models(self) -> Sequence[Model]:
        """Return the models of the wrapped provider."""
        return self._inner.models()

    def resolve(self, model_id: str) -> Model | None:
        """Return the wrapped provider's model with this id, or None if it has no such model."""
        return self._inner.resolve(model_id)

    async def aclose(self) -> None:
        """Close the wrapped provider."""
        await self._inner.aclose()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Hold money for the request, then stream the model's answer.

        :raises BudgetError: when the budget is too small, or the model's price is unknown.
        """
        most = self._most_usd(request)
        if self._before is not None:
            await self._before()
        number = await self._ledger.hold(most)
        paid: float | None = 0.0
        try:
            await self._ledger.note(Held(number=number, usd=most))
            paid = None
            async with aclosing(self._inner.stream(request)) as events:  # type: ignore[type-var] # a generator
                async for event in events:
                    if isinstance(event, StreamFinish):
                        paid = _usd(request, event.usage)
                    yield event
        finally:
            # An answer that broke off is paid as far as it may have come.
            await asyncio.shield(self._ledger.pay(number, most if paid is None else paid))

    def _most_usd(self, request: ModelRequest) -> float:
        if request.model.cost is None and self._ledger.state.settings.budget_usd is not None:
            name = f"{request.model.provider_id}/{request.model.id}"
            raise BudgetError(
                f"the price of {name} is not known, so no budget can be held: set its `cost` in "
                "the configuration, or run without --budget-usd"
            )
        return Need.of(request).usd


class Meter:
    """The plugin of a job's App that charges each request to the batch's ledger.

    The function `before` is called before each request, for example to save a checkpoint.
    """

    def __init__(self, ledger: Ledger, *, before: Before | None = None) -> None:
        self._ledger = ledger
        self._before = before

    @hookimpl
    async def wrap_providers(self, providers: Mapping[str, Provider]) -> Mapping[str, Provider]:
        """Wrap each provider so that the cost of its requests is charged to the batch's budget."""
        return {name: Metered(each, self._ledger, self._before) for name, each in providers.items()}


def _usd(request: ModelRequest, usage: Usage | None) -> float | None:
    """Return the cost of an answer in US dollars, or None if the cost or the usage is unknown."""
    tokens = tokens_of(usage)
    return None if tokens == Tokens() else cost_of(tokens, request.model.cost)
