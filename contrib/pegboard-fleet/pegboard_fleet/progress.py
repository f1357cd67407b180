"""The progress display of a batch: one updated line on a terminal, else one line per attempt."""

import asyncio
import os
import time
from typing import TextIO

from pegboard.display import escape_controls
from pegboard.schema.model import format_usd
from pegboard_fleet.journal import JobResult
from pegboard_fleet.state import Attempt, BatchState

TICK_S = 1.0
"""The time between two drawings of the line of a terminal."""
WIDTH = 80
"""The columns of a terminal that does not tell them."""
_CLEAR = "\r\x1b[K"
_REASON_LETTERS = 160


class Progress:
    """The progress display of a batch; on a terminal, one line that is redrawn every second."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_live = out.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._running = 0
        self._ended = 0

    async def follow(self, state: BatchState) -> None:
        """Redraw the progress line every second, until the calling task is cancelled."""
        while self._is_live:
            self._draw(state)
            await asyncio.sleep(TICK_S)

    def begin(self) -> None:
        """Count an attempt that starts or continues."""
        self._running += 1

    def end(self, state: BatchState, result: JobResult) -> None:
        """Count an ended attempt, and print the attempt's name and result."""
        self._running -= 1
        self._ended += 1
        reason = escape_controls(result.error.partition("\n")[0][:_REASON_LETTERS])
        line = f"{result.id} #{result.attempt}: {result.status}" + (reason and f": {reason}")
        if not self._is_live:
            self._out.write(f"{line}; {summary(state)}\n")
        elif result.status != "done":
            self._out.write(f"{_CLEAR}{line}\n")
        self._draw(state)

    def throttle(self, attempt: Attempt, pause_s: float) -> None:
        """Report an attempt that the provider refused because of too many requests."""
        self._running -= 1
        clear = _CLEAR if self._is_live else ""
        line = f"{attempt.job.id} #{attempt.number}: the provider gets too many requests"
        self._out.write(f"{clear}{line}; no attempt begins for {pause_s:g} s\n")
        self._out.flush()

    def close(self) -> None:
        """Clear the progress line."""
        if self._is_live:
            self._out.write(_CLEAR)
            self._out.flush()

    def _draw(self, state: BatchState) -> None:
        if self._is_live:
            facts = (_ended(state), f"{self._running} running", *self._rate(state), _money(state))
            line = " · ".join(filter(None, (*facts, _ways(state))))
            self._out.write(f"{_CLEAR}{line[: self._columns() - 1]}")
        self._out.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or WIDTH
        except OSError:
            return WIDTH

    def _rate(self, state: BatchState) -> tuple[str, ...]:
        """Return texts with the rate and the remaining time; () before an attempt has ended."""
        if not self._ended:
            return ()
        seconds = time.monotonic() - self._began
        left_s = seconds / self._ended * len(state.open)
        return f"{self._ended / seconds * 60:.1f} a minute", f"{_span(left_s)} left"


def summary(state: BatchState) -> str:
    """Return one line with the number of attempts by status, and their total cost."""
    lost = f", {format_usd(state.lost_usd)} held or not known" if state.lost_usd else ""
    text = ": ".join(filter(None, (_ended(state), _ways(state))))
    return f"{text} · {_money(state)}{lost}"


def _ended(state: BatchState) -> str:
    return f"{len(state.attempts) - len(state.open)} of {len(state.attempts)}"


def _ways(state: BatchState) -> str:
    return ", ".join(f"{number} {status}" for status, number in sorted(state.counts.items()))


def _money(state: BatchState) -> str:
    limit = state.settings.budget_usd
    of_limit = "" if limit is None else f" of {format_usd(limit)}"
    return f"{format_usd(state.paid_usd)}{of_limit}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
