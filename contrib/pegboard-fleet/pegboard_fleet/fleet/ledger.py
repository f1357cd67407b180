"""The money accounts of batches in the database, where all workers share a batch's budget."""

import asyncio
import secrets

from pegboard.errors import BudgetError
from pegboard.schema.model import format_usd
from pegboard_fleet.fleet.jobs import TakenJob
from pegboard_fleet.journal import Began, Entry
from pegboard_fleet.state import BatchState

_AGAIN_S = 0.25
"""How often a request asks again whether others have given money back."""
_HOLD = (
    "WITH known AS (SELECT id FROM fleet_hold WHERE id = %s), "
    "paid AS (UPDATE fleet_batch SET held_usd = held_usd + %s::numeric WHERE id = %s "
    "AND NOT EXISTS(SELECT 1 FROM known) "
    "AND (budget_usd IS NULL OR spent_usd + held_usd + %s::numeric <= budget_usd) RETURNING id), "
    "put AS (INSERT INTO fleet_hold(id, batch_id, owner, usd) "
    "SELECT %s, id, %s, %s::numeric FROM paid RETURNING id) "
    "SELECT id FROM known UNION ALL SELECT id FROM put"
)
_PAY = (
    "WITH gone AS (DELETE FROM fleet_hold WHERE id = %s RETURNING batch_id, usd) "
    "UPDATE fleet_batch SET held_usd = held_usd - gone.usd, spent_usd = spent_usd + %s::numeric "
    "FROM gone WHERE fleet_batch.id = gone.batch_id"
)
_SPENT = (
    "SELECT budget_usd::float8, (spent_usd + held_usd)::float8, "
    "EXISTS(SELECT 1 FROM fleet_hold AS h JOIN fleet_worker AS w USING(owner) "
    "WHERE h.batch_id = b.id AND w.state IN ('working', 'draining')) FROM fleet_batch AS b "
    "WHERE id = %s"
)


class LostJobError(BudgetError):
    """Another worker runs the job, because the fleet declared this worker dead."""


class SharedLedger:
    """The money account that an attempt uses; all attempts of a batch share the batch's budget.

    Money that a dead worker has held for a request is never freed, because the request's cost is
    unknown.
    """

    def __init__(self, job: TakenJob) -> None:
        self._job = job
        self._database = job.database

    @property
    def state(self) -> BatchState:
        """The state of the batch, which contains only the attempt of this account."""
        return self._job.state

    async def note(self, *entries: Entry) -> None:
        """Apply journal entries to the state, and store the start of an attempt for other workers.

        :raises LostJobError: when another worker has taken over the job.
        """
        for entry in entries:
            self.state.take((entry,))
            if isinstance(entry, Began) and not await self._job.begin(self._job.attempt.begun):
                raise LostJobError(f"another worker has taken over {self._job.key}")

    async def hold(self, usd: float) -> int:
        """Wait until the budget has `usd` left, hold that amount, and return a request number.

        :raises BudgetError: when the rest of the budget is too small although no request runs.
        """
        number, batch, owner = secrets.randbits(62), self._job.key.batch, self._job.owner
        while True:  # the time limit of the attempt ends it
            values = (number, usd, batch, usd, number, owner, usd)
            if await self._database.run(_HOLD, *values):
                return number
            ((limit, spent, is_running),) = await self._database.run(_SPENT, batch)
            if not is_running and spent + usd > limit:
                raise BudgetError(
                    f"the batch may spend {format_usd(limit)}, {format_usd(spent)} are spent: "
                    "too little for a request"
                )
            await asyncio.sleep(_AGAIN_S)

    async def pay(self, number: int, usd: float) -> None:
        """Replace the amount held for a request with its cost; a repeated call does nothing."""
        await self._database.run(_PAY, number, usd)
