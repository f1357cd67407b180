"""The attempts at one request to a model."""

import asyncio
import random
from datetime import UTC, datetime

from pegboard.errors import ProviderError
from pegboard.schema.config import RetryConfig
from pegboard.session.retry import Decision, EmptyAnswerError, decide, fault_of

EMPTY_ANSWERS = 2
"""A model that says nothing this often has nothing to say."""


class Attempts:
    """How many attempts there were, and what follows from the failure of the last one.

    Time is the loop's, which no change of the clock moves.
    """

    def __init__(self, limits: RetryConfig) -> None:
        self.made = 0
        self._limits = limits
        self._empty = 0
        self._began_at = asyncio.get_running_loop().time()

    def failed(self, error: ProviderError) -> Decision:
        """What follows from one more failure."""
        now = datetime.now(UTC)
        self.made += 1
        self._empty += isinstance(error, EmptyAnswerError)
        if self._empty >= EMPTY_ANSWERS:
            return Decision(kind="gave_up", note=f"{self._empty} times")
        return decide(
            fault_of(error, now=now),
            attempt=self.made,
            elapsed_s=asyncio.get_running_loop().time() - self._began_at,
            limits=self._limits,
            now=now,
            draw=random.random,
        )
