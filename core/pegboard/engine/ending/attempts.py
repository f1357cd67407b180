"""The attempts at one request to a model."""

import asyncio
import random
from datetime import UTC, datetime

from pegboard.engine.ending.fallback import is_hopeless
from pegboard.engine.ending.retry import EmptyAnswerError, RetryDecision, decide, fault_of
from pegboard.errors import ProviderError
from pegboard.schema.config import RetryConfig

EMPTY_ANSWERS = 2
"""A model that says nothing this often has nothing to say."""


class Attempts:
    """How many attempts there were, `made` of them before, and what follows from the last failure.

    The time for them begins with the first failure: an answer, or a tool in it, may have taken
    long before that. It is the loop's, which no change of the clock moves.
    """

    def __init__(self, limits: RetryConfig, *, made: int = 0) -> None:
        self.made = made
        self._limits = limits
        self._empty = 0
        self._failed_at: float | None = None

    def is_hopeless(self, error: ProviderError, decision: RetryDecision, *, after_s: float) -> bool:
        """Whether another model shall be asked, as this one cannot answer within that time."""
        fault = fault_of(error, now=datetime.now(UTC))
        began_at = self._failed_at
        assert began_at is not None
        left_s = after_s - (asyncio.get_running_loop().time() - began_at)
        return is_hopeless(error, fault.kind, decision, left_s=left_s)

    def failed(self, error: ProviderError) -> RetryDecision:
        """What follows from one more failure."""
        now = datetime.now(UTC)
        time = asyncio.get_running_loop().time()
        if self._failed_at is None:
            self._failed_at = time
        self.made += 1
        self._empty += isinstance(error, EmptyAnswerError)
        if self._empty >= EMPTY_ANSWERS:
            return RetryDecision(kind="gave_up", note=f"{self._empty} times")
        return decide(
            fault_of(error, now=now),
            attempt=self.made,
            elapsed_s=time - self._failed_at,
            limits=self._limits,
            now=now,
            draw=random.random,
        )
