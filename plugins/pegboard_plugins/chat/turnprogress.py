"""The progress of a running turn: its duration, its output, and texts about it."""

from time import time

import msgspec

from pegboard.schema.session import Retry, Tokens
from pegboard.unstable import one_line

LETTERS_PER_TOKEN = 4
MS_PER_S = 1000


class TurnProgress(msgspec.Struct):
    """The start time of the running turn, and the amount of the model's output."""

    begun_s: float = 0.0
    tokens: int = 0
    letters: int = 0

    def look(self, *, busy: bool) -> None:
        """Start or reset the progress when a turn starts or ends."""
        if not busy:
            self.begun_s, self.tokens, self.letters = 0.0, 0, 0
        elif not self.begun_s:
            self.begun_s = time()

    def step(self, tokens: Tokens) -> None:
        """Add the exact tokens of a finished model request in place of the estimate."""
        if self.begun_s:
            self.tokens += tokens.output + tokens.reasoning
        self.letters = 0

    @property
    def written(self) -> int:
        """The model's output tokens in this turn; estimated for a running step."""
        return self.tokens + self.letters // LETTERS_PER_TOKEN


def retry_text(status: Retry, letters: int = 100) -> str:
    """Return a text with the time and the reason of the next retry."""
    wait_s = max(0, round(status.next / MS_PER_S - time()))
    why = one_line(status.message, letters)
    return f"Retrying in {wait_s} s (attempt {status.attempt + 1}): {why}"


def compacted_text(tokens: Tokens | None) -> str:
    """Return a text about a compaction, with the numbers of tokens if known."""
    if tokens is None or not tokens.output:
        return "compacted: a summary replaces the history"
    return f"compacted: {tokens.input + tokens.cache.read:,} → {tokens.output:,} tokens"
