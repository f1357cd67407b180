"""The state of a batch, computed from the entries of its journal."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pegboard.errors import InvalidInputError
from pegboard_fleet.jobs import Job
from pegboard_fleet.journal import (
    Again,
    AttemptEnded,
    Began,
    Entry,
    Held,
    JobResult,
    Opened,
    Paid,
    Raised,
    Ready,
    Settings,
    entries_of,
)

PARKED_AFTER = 4
"""An attempt that was begun so often without a new step is not begun again."""


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt at a job.

    `begun` lists how many steps the session had at each start or continuation. `round` is the
    number of times that the attempt was repeated in a new session. `base` is the commit of its
    folder, None before the setup.
    """

    job: Job
    number: int
    round: int = 0
    begun: list[int] = msgspec.field(default_factory=list)
    base: str | None = None
    result: JobResult | None = None

    @property
    def name(self) -> str:
        """The name of the attempt, which is also the name of its folder."""
        return f"{self.job.id}-{self.number}" + (f"-{self.round}" if self.round else "")

    @property
    def is_stuck(self) -> bool:
        """Whether the session made no step between the last `PARKED_AFTER` starts."""
        last = self.begun[-PARKED_AFTER:]
        return len(last) == PARKED_AFTER and len(set(last)) == 1


class BatchState(msgspec.Struct, kw_only=True):
    """The state of a batch: its attempts in order, and its money in US dollars.

    `held` has, by request number, the money for requests that have not ended or were interrupted.
    """

    id: str
    settings: Settings
    attempts: dict[tuple[str, int], Attempt]
    paid_usd: float = 0.0
    held: dict[int, float] = msgspec.field(default_factory=dict)
    requests: int = 0

    @classmethod
    def of(cls, folder: Path) -> "BatchState":
        """Read the state of the batch in `folder`; blocks the thread.

        :raises InvalidInputError: when there is no batch, or its journal is damaged.
        """
        entries = entries_of(folder)
        first = next(entries, None)
        if not isinstance(first, Opened):
            raise InvalidInputError(f"{folder} has no batch: its journal has no first line")
        state = cls.new(first)
        state.take(entries)
        return state

    @classmethod
    def new(cls, opened: Opened) -> "BatchState":
        """Return the state of a new batch."""
        numbers = range(1, opened.settings.repeat + 1)
        attempts = {
            (job.id, number): Attempt(job=job, number=number)
            for number in numbers
            for job in opened.jobs
        }
        return cls(id=opened.id, settings=opened.settings, attempts=attempts)

    @property
    def lost_usd(self) -> float:
        """The money held for requests without an end in the journal; this money counts as spent."""
        return sum(self.held.values())

    @property
    def open(self) -> tuple[Attempt, ...]:
        """The attempts that have not ended."""
        return tuple(each for each in self.attempts.values() if each.result is None)

    @property
    def results(self) -> Iterator[JobResult]:
        """The results so far, in the order of the batch's jobs."""
        return (each.result for each in self.attempts.values() if each.result is not None)

    @property
    def counts(self) -> Counter[str]:
        """The number of ended attempts by status."""
        return Counter(result.status for result in self.results)

    def session_id(self, attempt: Attempt) -> str:
        """Return the session id of an attempt, which is the same after a restart."""
        text = f"{self.id}/{attempt.job.id}/{attempt.number}/{attempt.round}"
        return f"ses_{hashlib.sha256(text.encode()).hexdigest()[:26]}"

    def take(self, entries: Iterable[Entry]) -> None:
        """Apply entries of the journal to the state."""
        for entry in entries:
            match entry:
                case Raised(budget_usd=usd):
                    self.settings = msgspec.structs.replace(self.settings, budget_usd=usd)
                case Began(steps=steps):
                    self.attempts[entry.id, entry.attempt].begun.append(steps)
                case Ready(base=base):
                    self.attempts[entry.id, entry.attempt].base = base
                case Held(number=number, usd=usd):
                    self.requests, self.held[number] = number, usd
                case Paid(number=number, usd=usd):
                    self.held.pop(number, None)
                    self.paid_usd += usd
                case AttemptEnded(result=result):
                    self.attempts[result.id, result.attempt].result = result
                case Again():
                    known = self.attempts[entry.id, entry.attempt]
                    fresh = Attempt(job=known.job, number=known.number, round=known.round + 1)
                    self.attempts[entry.id, entry.attempt] = fresh
                case Opened():
                    pass
