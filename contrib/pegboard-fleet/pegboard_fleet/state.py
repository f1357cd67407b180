"""The state of a batch, read from its journal."""

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

    `begun` are the steps of its session at each begin, `round` counts the sessions that it had,
    `base` is the commit of its folder, None before that is set up.
    """

    job: Job
    number: int
    round: int = 0
    begun: list[int] = msgspec.field(default_factory=list)
    base: str | None = None
    result: JobResult | None = None

    @property
    def name(self) -> str:
        """The attempt's name, for its folder."""
        return f"{self.job.id}-{self.number}" + (f"-{self.round}" if self.round else "")

    @property
    def is_stuck(self) -> bool:
        """Whether it was begun again and again, and never came further."""
        last = self.begun[-PARKED_AFTER:]
        return len(last) == PARKED_AFTER and len(set(last)) == 1


class BatchState(msgspec.Struct, kw_only=True):
    """A batch: its attempts in order, and its money in US dollars.

    `lost_usd` is held for requests whose cost is not known, since the process was killed
    meanwhile; it counts as spent.
    """

    id: str
    settings: Settings
    attempts: dict[tuple[str, int], Attempt]
    paid_usd: float = 0.0
    held: dict[int, float] = msgspec.field(default_factory=dict)
    requests: int = 0

    @classmethod
    def of(cls, folder: Path) -> "BatchState":
        """Return the state of a folder's batch; it blocks.

        :raises InvalidInputError: when there is none, or its journal is damaged.
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
        """Return the state of a batch that begins."""
        numbers = range(1, opened.settings.repeat + 1)
        attempts = {
            (job.id, number): Attempt(job=job, number=number)
            for number in numbers
            for job in opened.jobs
        }
        return cls(id=opened.id, settings=opened.settings, attempts=attempts)

    @property
    def lost_usd(self) -> float:
        """The money held for requests whose end the journal does not have."""
        return sum(self.held.values())

    @property
    def open(self) -> tuple[Attempt, ...]:
        """The attempts that have not ended."""
        return tuple(each for each in self.attempts.values() if each.result is None)

    @property
    def results(self) -> Iterator[JobResult]:
        """The results, in the order of the jobs."""
        return (each.result for each in self.attempts.values() if each.result is not None)

    @property
    def counts(self) -> Counter[str]:
        """The number of attempts by the way in which they ended."""
        return Counter(result.status for result in self.results)

    def session_id(self, attempt: Attempt) -> str:
        """Return the id of an attempt's session, which is the same after a kill."""
        text = f"{self.id}/{attempt.job.id}/{attempt.number}/{attempt.round}"
        return f"ses_{hashlib.sha256(text.encode()).hexdigest()[:26]}"

    def take(self, entries: Iterable[Entry]) -> None:
        """Apply lines of the journal."""
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
