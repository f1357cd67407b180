"""The limits on money, tokens, minutes, steps and tool calls.

Before a request, the budget reserves the most that the request can cost. Afterwards it counts the
real cost. Subagents that work at the same time thus cannot together exceed a limit.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pegboard import ToolError, hookimpl
from pegboard.budgets import Budget, Clock, Need, OpenBudget, cost_of
from pegboard.errors import BudgetError
from pegboard.providers import (
    ModelRequest,
    Provider,
    ReasoningDelta,
    StreamEvent,
    StreamFinish,
    TextDelta,
    ToolInputDelta,
    Usage,
)
from pegboard.schema.config import BudgetConfig, Limits, RunLimits
from pegboard.schema.model import Model, format_usd
from pegboard.schema.session import Estimate, Session, Tokens
from pegboard.unstable import (
    closing,
    tokens_of,
    total_tokens,
)

CAREFUL_CHARS = 3
"""Characters of a token, fewer than in most texts, so that an answer counts as too long."""
SHORTEST_ANSWER_TOKENS = 256
"""With less room than this an answer is not worth its request."""
WARNED_SHARE = 0.8
"""The share of the steps at which the user is warned."""
_LIMITS = {
    "this run": "`budget.run.steps` in the configuration, or `--max-steps`,",
    "this session": "`budget.steps` in the configuration",
    "this subagent": "`budget.subagent.steps` in the configuration",
}


class Account(msgspec.Struct, kw_only=True):
    """The limits for one purpose, the amounts spent, and the amounts reserved for running requests.

    `clock` times the run, and stands still while Pegboard waits for the user. The run began when
    `clock` showed `began_at`. `seconds` is the time of earlier runs. `refused` is the reason for
    which a tool call was refused, or "".
    """

    purpose: str
    limits: Limits
    clock: Clock = msgspec.field(default_factory=Clock)
    began_at: float = 0.0
    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0
    tool_calls: int = 0
    held_usd: float = 0.0
    held_tokens: int = 0
    holds: int = 0
    refused: str = ""

    def weighs(self) -> bool:
        """Return whether there is a limit on money or tokens, so that text length matters."""
        return self.limits.usd is not None or self.limits.tokens is not None

    def rooms(self, need: Need, *, with_held: bool) -> Iterator[tuple[float, str]]:
        """Yield for each limit how many tokens the model's answer may have, and the limit in words.

        `with_held` subtracts the amounts reserved for other requests.
        """
        limits = self.limits
        if limits.usd is not None:
            left = limits.usd - self.usd - need.read_usd - self.held_usd * with_held
            room = left / need.token_usd if need.token_usd else math.copysign(math.inf, left)
            usd, spent = format_usd(limits.usd), format_usd(self.usd)
            yield room, f"{usd} for {self.purpose}: {spent} are spent"
        if limits.tokens is not None:
            left = limits.tokens - self.tokens - need.read_tokens - self.held_tokens * with_held
            yield left, f"{limits.tokens:,} tokens for {self.purpose}: {self.tokens:,} are used"

    def change_held(self, hold: "Hold", sign: Literal[1, -1]) -> None:
        """Add an amount to the account's reserved amounts (`sign` 1), or subtract it (-1)."""
        self.holds += sign
        self.held_tokens += sign * hold.tokens
        # What floats leave over must not look like somebody's hold.
        self.held_usd = self.held_usd + sign * hold.usd if self.holds else 0.0

    def check_step(self) -> None:
        """Check that the limit on steps allows another step.

        :raises BudgetError: when it is not.
        """
        if self.refused:
            raise BudgetError(self.refused)
        left_s = self.left_s()
        if left_s is not None and left_s <= 0:
            raise self.too_late()
        if self.limits.steps is not None and self.steps >= self.limits.steps:
            raise _over(f"steps than {self.limits.steps:,} for {self.purpose}; {self._way_on()}")

    def nears_its_end(self) -> str:
        """Return a warning if 80 percent of the allowed steps have just been taken, else ""."""
        most = self.limits.steps
        if most is None or self.steps != math.ceil(most * WARNED_SHARE):
            return ""
        return f"{self.steps:,} of {most:,} steps for {self.purpose} are taken; {self._way_on()}"

    def _way_on(self) -> str:
        """Return advice to the user that names the setting for the limit on steps."""
        return f"{_LIMITS[self.purpose]} is the limit"

    def check_call(self) -> None:
        """Check that the limit on tool calls allows another call.

        A refusal also ends the turn before its next step.

        :raises BudgetError: when the limit is reached.
        """
        if self.limits.tool_calls is not None and self.tool_calls >= self.limits.tool_calls:
            error = _over(f"tool calls than {self.limits.tool_calls} for {self.purpose}")
            self.refused = str(error)
            raise error

    def too_late(self) -> BudgetError:
        """Return the error for a run that exceeds its limit of minutes."""
        return _over(f"minutes than {self.limits.minutes or 0:g} for {self.purpose}")

    def spent_s(self) -> float:
        """Return the time in seconds that the session's runs have taken, earlier ones included."""
        return self.seconds + self.clock.now() - self.began_at

    def left_s(self) -> float | None:
        """Return the seconds until the run's time limit, or None if the run has no time limit."""
        minutes = self.limits.minutes
        return None if minutes is None else minutes * 60 - self.spent_s()


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """An amount reserved for a request, whose output limit may be reduced to fit the budget."""

    request: ModelRequest
    need: Need
    usd: float
    tokens: int


@dataclass(slots=True)
class Shared:
    """The values that a top-level run shares with all its subagents.

    `unpriced` permits models without a known price in spite of a limit in US dollars. `subagents`
    limits how many subagents may start, and `begun` counts those that did.
    """

    unpriced: bool = False
    subagents: int = RunLimits().subagents
    begun: int = 0
    freed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Accounts(Budget):
    """The accounts that a session's run spends from: its own and its callers' accounts.

    `whole` is the account of the session's whole life, or None in a subagent.
    """

    accounts: tuple[Account, ...] = ()
    shared: Shared = field(default_factory=Shared)
    whole: Account | None = None

    def take_step(self) -> list[str]:
        """Count a step; return warnings about limits on steps that are near.

        :raises BudgetError: when a limit does not allow the step.
        """
        for account in self.accounts:
            account.check_step()
        for account in self.accounts:
            account.steps += 1
        return [warning for account in self.accounts if (warning := account.nears_its_end())]

    def take_call(self) -> None:
        """Count a tool call.

        :raises BudgetError: when a limit does not allow the call.
        """
        for account in self.accounts:
            account.check_call()
        for account in self.accounts:
            account.tool_calls += 1

    def take_subagent(self) -> None:
        """Count a subagent of the top-level run, at any depth below this run.

        :raises ToolError: when the run has started the allowed number of subagents.
        """
        if self.shared.begun >= self.shared.subagents:
            raise ToolError(
                f"no more subagents can be begun: there were {self.shared.begun} for this prompt,"
                " those that subagents began among them. Do what is left yourself, or say what is"
                " not done. A subagent that has ended can go on with its session_id."
            )
        self.shared.begun += 1

    def counts(self) -> Mapping[str, Any] | None:
        """Return the counts to store for the session, or None if no limit needs stored counts."""
        if self.whole is None or not _counts_matter(self.whole.limits):
            return None
        whole = self.whole
        return {"steps": whole.steps, "tool_calls": whole.tool_calls, "seconds": whole.spent_s()}

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Limit the time of the `async with` block.

        :raises BudgetError: when a limit of minutes ends the block.
        """
        limits: list[tuple[asyncio.Timeout, Account]] = []
        try:
            async with AsyncExitStack() as stack:
                for account in self.accounts:
                    stack.enter_context(Clock.current().awaited_by(account.clock))
                    if (left_s := account.left_s()) is not None:
                        limit = await stack.enter_async_context(account.clock.limit(left_s))
                        limits.append((limit, account))
                yield
        except TimeoutError as error:
            late = [account for limit, account in limits if limit.expired()]
            if not late:
                raise
            raise late[0].too_late() from error

    async def answer(self, provider: Provider, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Return the provider's stream once the budget allows the request; then count its cost."""
        if not any(account.weighs() for account in self.accounts):
            return provider.stream(request)
        hold = await self.hold(request)
        return self.metered(provider.stream(hold.request), hold)

    async def hold(self, request: ModelRequest) -> Hold:
        """Reserve the cost of a request; if other requests hold too much of the budget, wait.

        If no other request is running and the budget is nearly used up, the answer gets a smaller
        limit. Other requests free their amounts when their answers end, at the latest by the idle
        timeout.

        :raises BudgetError: when the budget is too small even after all other requests.
        """
        self._check_price(request.model)
        need = Need.of(request)
        while True:
            best, reason = self._room(need, with_held=False)
            if best < min(SHORTEST_ANSWER_TOKENS, need.answer_tokens):
                raise _over(f"than {reason}")
            room, _ = self._room(need, with_held=True)
            if room >= need.answer_tokens:
                return self._held(request, need, need.answer_tokens)
            if not any(account.holds for account in self.accounts):
                return self._held(replace(request, max_output_tokens=int(room)), need, int(room))
            self.shared.freed.clear()
            await self.shared.freed.wait()

    def _check_price(self, model: Model) -> None:
        if model.cost is not None or self.shared.unpriced:
            return
        limits = [each.limits.usd for each in self.accounts if each.limits.usd is not None]
        if limits:
            name = f"{model.provider_id}/{model.id}"
            table = f'[provider.{model.provider_id}.models."{model.id}"]'
            raise BudgetError(
                f"the price of {name} is not known, so a budget of {format_usd(limits[0])} "
                f"cannot be held. Set `cost` in `{table}`, or "
                '`budget.unpriced = "allow"` to count it as nothing'
            )

    async def metered(
        self, answer: AsyncIterator[StreamEvent], hold: Hold
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of an answer, then count its cost and free its reserved amount.

        If the provider reports no usage, the length of the answer's text determines the cost.
        """
        written, ended = 0, False
        try:
            async with closing(answer):
                async for event in answer:
                    match event:
                        case TextDelta() | ReasoningDelta() | ToolInputDelta():
                            written += len(event.text)
                        case StreamFinish() if not ended:
                            ended = True
                            self._settle(hold, _counted(event.usage, hold, written))
                        case _:
                            pass
                    yield event
        finally:
            if not ended:
                self._settle(hold, _counted(None, hold, written) if written else Tokens())

    def _room(self, need: Need, *, with_held: bool) -> tuple[float, str]:
        found = (each.rooms(need, with_held=with_held) for each in self.accounts)
        return min(chain.from_iterable(found), default=(math.inf, ""))

    def _held(self, request: ModelRequest, need: Need, answer_tokens: int) -> Hold:
        hold = Hold(
            request=request,
            need=need,
            usd=need.read_usd + answer_tokens * need.token_usd,
            tokens=need.read_tokens + answer_tokens,
        )
        for account in self.accounts:
            account.change_held(hold, 1)
        return hold

    def _settle(self, hold: Hold, spent: Tokens) -> None:
        usd = cost_of(spent, hold.request.model.cost) or 0.0
        for account in self.accounts:
            account.change_held(hold, -1)
            account.usd += usd
            account.tokens += total_tokens(spent)
        self.shared.freed.set()


def _counted(usage: Usage | None, hold: Hold, written: int) -> Tokens:
    if (reported := tokens_of(usage)) != Tokens():
        return reported
    return Tokens(input=hold.need.read_tokens, output=written // CAREFUL_CHARS)


def _over(limit: str) -> BudgetError:
    return BudgetError(f"the budget allows no more {limit}")


async def open_budget(
    limits: BudgetConfig,
    session: Session,
    parent: Budget | None,
    stored: Callable[[], Awaitable[Any]],
) -> Budget:
    """Open the budget of a session's run; see `OpenBudget`.

    A limit on a session's steps, tool calls or minutes does not count what came before the limit.
    """
    if isinstance(parent, Accounts):
        own = _limited(_begun("this subagent", limits.subagent))
        return Accounts((*own, *parent.accounts), parent.shared)
    run, whole = _begun("this run", limits.run), _begun("this session", limits)
    unreported = session.estimate or Estimate()
    whole.usd = (session.cost or 0.0) + unreported.cost
    whole.tokens = total_tokens(session.tokens or Tokens()) + unreported.tokens
    if _counts_matter(limits):
        whole = replace(whole, **(await stored() or {}))
    return Accounts(
        accounts=(*_limited(run), *_limited(whole)),
        shared=Shared(limits.unpriced == "allow", limits.run.subagents),
        whole=whole if session.parent_id is None else None,
    )


def _begun(purpose: str, limits: Limits) -> Account:
    clock = Clock.current()
    return Account(purpose=purpose, limits=limits, clock=clock, began_at=clock.now())


def _limited(account: Account) -> tuple[Account, ...]:
    """Return a tuple of the account if the account has any limit, else an empty tuple."""
    values = (getattr(account.limits, name) for name in Limits.__struct_fields__)
    return (account,) if any(value is not None for value in values) else ()


def _counts_matter(limits: Limits) -> bool:
    return any(value is not None for value in (limits.steps, limits.tool_calls, limits.minutes))


@hookimpl
async def register_budget() -> OpenBudget:
    """Return the function that opens a budget for a session's run."""
    return open_budget
