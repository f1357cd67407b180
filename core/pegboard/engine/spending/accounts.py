"""The accounts of a session, with what it has spent before."""

import msgspec

from pegboard.contract.changes import PutState
from pegboard.contract.storage import Storage
from pegboard.engine.spending.budget import Account, Budget, Subagents
from pegboard.engine.spending.usage import total
from pegboard.policy.clock import current_clock
from pegboard.schema.config import BudgetConfig, Limits
from pegboard.schema.session import Session, Tokens

STATE_KEY = "pegboard.budget"
"""Where a session's counts are kept that its record does not have."""


class _Counts(msgspec.Struct, frozen=True):
    steps: int = 0
    tool_calls: int = 0
    seconds: float = 0.0


async def open_budget(
    storage: Storage, limits: BudgetConfig, session: Session, parent: Budget | None
) -> Budget:
    """The budget of a session's run; `parent` is that of the run which called it as a subagent.

    Steps, calls and minutes of a session count from when a limit on them was set.
    """
    if parent is not None:
        return parent.below(*_limited(_begun("this subagent", limits.subagent)))
    run, whole = _begun("this run", limits.run), _begun("this session", limits)
    whole.usd, whole.tokens = session.cost or 0.0, total(session.tokens or Tokens())
    if _counts_matter(limits):
        stored = await storage.state(session.id, STATE_KEY)
        counts = msgspec.convert(stored or {}, _Counts)
        whole.steps, whole.tool_calls = counts.steps, counts.tool_calls
        whole.seconds = counts.seconds
    subagents = Subagents(most=limits.run.subagents)
    return Budget(
        accounts=(*_limited(run), *_limited(whole)),
        unpriced=limits.unpriced == "allow",
        subagents=subagents,
    )


def counts_of(budget: Budget, session: Session) -> tuple[PutState, ...]:
    """What has to be stored of a session's counts."""
    if session.parent_id is not None:
        return ()
    return tuple(
        PutState(
            session.id,
            STATE_KEY,
            msgspec.to_builtins(
                _Counts(
                    steps=account.steps,
                    tool_calls=account.tool_calls,
                    seconds=account.spent_s(),
                )
            ),
        )
        for account in budget.accounts
        if account.purpose == "this session" and _counts_matter(account.limits)
    )


def _begun(purpose: str, limits: Limits) -> Account:
    clock = current_clock()
    return Account(purpose=purpose, limits=limits, clock=clock, began_at=clock.now())


def _limited(account: Account) -> tuple[Account, ...]:
    """The account, if there is a limit on it."""
    values = (getattr(account.limits, name) for name in Limits.__struct_fields__)
    return (account,) if any(value is not None for value in values) else ()


def _counts_matter(limits: Limits) -> bool:
    return any(value is not None for value in (limits.steps, limits.tool_calls, limits.minutes))
