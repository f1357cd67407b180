"""The run of a batch: parallel attempts until all have ended or a signal stops the batch."""

import asyncio
import secrets
import time
from collections import deque
from pathlib import Path

from pegboard.errors import InvalidInputError
from pegboard_fleet.attempts import Attempts, is_throttled
from pegboard_fleet.folders import Folders
from pegboard_fleet.jobs import Job
from pegboard_fleet.journal import (
    Again,
    AttemptEnded,
    Journal,
    Opened,
    Raised,
    Settings,
    Status,
)
from pegboard_fleet.money import JournalLedger
from pegboard_fleet.progress import Progress
from pegboard_fleet.results import write_results
from pegboard_fleet.state import Attempt, BatchState

MOST_ROUNDS = 3
"""Sessions of an attempt whose provider gets too many requests."""


async def begin(
    folder: Path, jobs: tuple[Job, ...], settings: Settings, progress: Progress
) -> BatchState:
    """Run a new batch until it ends, and return the final state of the batch.

    :raises InvalidInputError: when the folder contains a batch already.
    """
    opened = Opened(id=secrets.token_hex(8), settings=settings, jobs=jobs)
    with Journal.create(folder) as journal:
        await asyncio.to_thread(journal.write, opened)
        return await _run(journal, JournalLedger(journal, BatchState.new(opened)), progress)


async def resume(
    folder: Path, progress: Progress, *, budget_usd: float | None = None, retry: frozenset[Status]
) -> BatchState:
    """Continue a batch, and repeat attempts that ended with a status in `retry`; return the state.

    :raises InvalidInputError: when there is no batch, when it runs, or if `budget_usd` is already
        spent.
    """
    with Journal.open(folder) as journal:
        state = await asyncio.to_thread(BatchState.of, folder)
        ledger = JournalLedger(journal, state)
        if budget_usd is not None:
            if budget_usd < ledger.spent_usd:
                raise InvalidInputError(
                    f"--budget-usd {budget_usd:g}: {ledger.spent_usd:.4f} are spent already"
                )
            await ledger.note(Raised(budget_usd=budget_usd))
            retry |= {"stopped_budget"}
        ended = [result for result in state.results if result.status in retry]
        if ended:
            await ledger.note(*(Again(id=each.id, attempt=each.attempt) for each in ended))
        return await _run(journal, ledger, progress)


class _Batch:
    """The queue of a batch's attempts, and the methods that its parallel workers run."""

    def __init__(self, ledger: JournalLedger, attempts: Attempts, progress: Progress) -> None:
        self._ledger = ledger
        self._attempts = attempts
        self._progress = progress
        self._waiting = deque(ledger.state.open)
        self._begins_at = 0.0

    async def work(self) -> None:
        """Run attempts from the queue until the queue is empty."""
        while self._waiting:
            await asyncio.sleep(max(0.0, self._begins_at - time.monotonic()))
            if not self._waiting:
                return
            attempt = self._waiting.popleft()
            self._progress.begin()
            result = await self._attempts.make(attempt)
            await self._ledger.note(AttemptEnded(result=result))
            if is_throttled(result) and attempt.round < MOST_ROUNDS:
                await self._again(attempt)
            else:
                self._progress.end(self._ledger.state, result)

    async def _again(self, attempt: Attempt) -> None:
        """Queue an attempt again because the provider throttles, and delay further starts."""
        state = self._ledger.state
        pause_s = state.settings.pause_s
        self._progress.throttle(attempt, pause_s)
        self._begins_at = time.monotonic() + pause_s
        await self._ledger.note(Again(id=attempt.job.id, attempt=attempt.number))
        self._waiting.append(state.attempts[attempt.job.id, attempt.number])


async def _run(journal: Journal, ledger: JournalLedger, progress: Progress) -> BatchState:
    state = ledger.state
    folders = Folders(journal.folder)
    batch = _Batch(ledger, Attempts(journal.folder, ledger, folders=folders), progress)
    drawing = asyncio.create_task(progress.follow(state), name="progress")
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(state.settings.concurrency, len(state.open))):
                group.create_task(batch.work())
    finally:
        drawing.cancel()
        await asyncio.wait([drawing])
        await write_results(journal.folder, state, "jsonl")
    return state
