"""How a batch stands: a line that changes on a terminal, a line an attempt elsewhere."""

import time
from typing import TextIO

from pegboard.schema.model import format_usd
from pegboard_fleet.journal import JobResult
from pegboard_fleet.state import BatchState

_CLEAR = "\r\x1b[K"
_FIRST_LETTERS = 160


class Progress:
    """A display of the attempts that end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._began = time.monotonic()
        self._ended = 0

    def report(self, state: BatchState, result: JobResult) -> None:
        """Show that an attempt has ended."""
        self._ended += 1
        reason = result.error.partition("\n")[0][:_FIRST_LETTERS]
        line = f"{result.id} #{result.attempt}: {result.status}" + (reason and f": {reason}")
        if not self._live:
            self._out.write(f"{line}; {summary(state)}\n")
            return
        if result.status != "done":
            self._out.write(f"{_CLEAR}{line}\n")
        self._out.write(f"{_CLEAR}{summary(state)}{self._left(state)}")
        self._out.flush()

    def end(self) -> None:
        """Leave the changing line as it is."""
        if self._live and self._ended:
            self._out.write("\n")

    def _left(self, state: BatchState) -> str:
        seconds = time.monotonic() - self._began
        left_s = seconds / self._ended * len(state.open)
        return f" · {self._ended / seconds * 60:.1f} a minute · {_span(left_s)} left"


def summary(state: BatchState) -> str:
    """Return one line: how many attempts have ended in which way, and their cost."""
    ways = ", ".join(f"{number} {status}" for status, number in sorted(state.counts.items()))
    limit = state.settings.budget_usd
    of_limit = "" if limit is None else f" of {format_usd(limit)}"
    lost = f", {format_usd(state.lost_usd)} held or not known" if state.lost_usd else ""
    ended = len(state.attempts) - len(state.open)
    text = f"{ended} of {len(state.attempts)}" + (f": {ways}" if ways else "")
    return f"{text} · {format_usd(state.paid_usd)}{of_limit}{lost}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
