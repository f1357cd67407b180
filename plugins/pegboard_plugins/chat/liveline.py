"""The line that says what goes on while a turn runs, for how long, and how to stop it."""

from time import time
from typing import TYPE_CHECKING

import msgspec

from pegboard.display import Span
from pegboard.schema.session import Retry, Tokens
from pegboard.unstable import one_line, shown_line
from pegboard_plugins.chat import short_count
from pegboard_plugins.chat.modes import SpanLine

if TYPE_CHECKING:
    from pegboard_plugins.chat.course import Course

LETTERS_PER_TOKEN = 4
MS_PER_S = 1000
REASON_LETTERS = 60
"""Of the reason of a retry; the transcript has all of it."""
STOPS = "Esc stops"
LOST = "No connection to the server, trying again"


class TurnProgress(msgspec.Struct):
    """The start of the running turn, and the model's output in it."""

    begun_s: float = 0.0
    tokens: int = 0
    letters: int = 0

    def look(self, *, busy: bool) -> None:
        """Note whether a turn runs, from now on or no longer."""
        if not busy:
            self.begun_s, self.tokens, self.letters = 0.0, 0, 0
        elif not self.begun_s:
            self.begun_s = time()

    def step(self, tokens: Tokens) -> None:
        """Count the tokens of a step that has ended, in place of its letters."""
        if self.begun_s:
            self.tokens += tokens.output + tokens.reasoning
        self.letters = 0

    @property
    def written(self) -> int:
        """The tokens that the model has written in this turn, as far as they are known."""
        return self.tokens + self.letters // LETTERS_PER_TOKEN


def live_line(course: "Course", width: int, *, is_connected: bool) -> SpanLine:
    """Return the line for a session; an empty one at rest or while a dialog is open.

    Where the window is narrow, what goes on is cut, and the rest of the line stays whole.
    """
    progress = course.progress
    progress.look(busy=course.busy)
    if not course.busy or course.requests:
        return ()
    facts, written = [f"{time() - progress.begun_s:.0f} s"], progress.written
    facts += [f"{short_count(written)} token{'s' * (written != 1)}"] if written else []
    rest = "".join(f" · {fact}" for fact in (*facts, STOPS))
    doing = _doing(course) if is_connected else LOST
    return shown_line(
        (Span(one_line(doing, max(1, width - len(rest))), "active"), Span(rest, "dim"))
    )


def _doing(course: "Course") -> str:
    if isinstance(course.status, Retry):
        return retry_text(course.status, REASON_LETTERS)
    tools = [part.tool for part in course.calls.values()]
    if tools:
        return f"Running {tools[0]}" if len(tools) == 1 else f"Running {len(tools)} tools"
    if course.writes:
        return "Writing"
    return "Thinking" if course.thinking else "Waiting for the model"


def retry_text(status: Retry, letters: int = 100) -> str:
    """Return when the model is asked again, and why."""
    wait_s = max(0, round(status.next / MS_PER_S - time()))
    why = one_line(status.message, letters)
    return f"Retrying in {wait_s} s (attempt {status.attempt + 1}): {why}"


def compacted_text(tokens: Tokens | None) -> str:
    """Return what a compaction did, by the tokens of the request that summarised, if known."""
    if tokens is None or not tokens.output:
        return "compacted: a summary replaces the history"
    return f"compacted: {tokens.input + tokens.cache.read:,} → {tokens.output:,} tokens"
