"""The status of a fleet: its workers, and its batches with the money that they spent."""

import msgspec

from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.jobs import batches_of, state_of
from pegboard_fleet.progress import summary

_WORKERS = (
    "SELECT w.owner, pool, host, pid, concurrency, w.state, count(j.id)::int, "
    "to_char(started AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
    "FROM fleet_worker AS w LEFT JOIN fleet_job AS j ON j.owner = w.owner AND j.state = 'running' "
    "GROUP BY w.owner ORDER BY pool, started, w.owner"
)
_STOPPED = "SELECT count(*) FROM fleet_job WHERE batch_id = %s AND state = 'stopped'"


class WorkerStatus(msgspec.Struct, frozen=True):
    """The status of a worker; `state` is `working`, `draining`, `ended`, or `lost` if it died."""

    id: str
    pool: str
    host: str
    pid: int
    concurrency: int
    state: str
    running: int
    started: str


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a batch; `summary` is a line for people, `stopped` counts stopped attempts."""

    id: str
    pool: str
    attempts: int
    open: int
    stopped: int
    ended: dict[str, int]
    paid_usd: float
    held_usd: float
    budget_usd: float | None
    summary: str


class FleetStatus(msgspec.Struct, frozen=True):
    """All workers and batches of a fleet, with their status."""

    workers: tuple[WorkerStatus, ...]
    batches: tuple[BatchStatus, ...]


async def status_of(database: FleetDatabase) -> FleetStatus:
    """Return the status of all workers and batches of the fleet."""
    batches = [await _batch(database, each) for each in await batches_of(database)]
    return FleetStatus(await workers_of(database), tuple(batches))


async def workers_of(database: FleetDatabase) -> tuple[WorkerStatus, ...]:
    """Return the workers sorted by pool, the oldest first."""
    return tuple(WorkerStatus(*row) for row in await database.run(_WORKERS))


async def _batch(database: FleetDatabase, batch: str) -> BatchStatus:
    state, pool = await state_of(database, batch)
    ((stopped,),) = await database.run(_STOPPED, batch)
    return BatchStatus(
        id=batch,
        pool=pool,
        attempts=len(state.attempts),
        open=len(state.open),
        stopped=stopped,
        ended=dict(state.counts),
        paid_usd=state.paid_usd,
        held_usd=state.lost_usd,
        budget_usd=state.settings.budget_usd,
        summary=summary(state),
    )


def lines_of(status: FleetStatus) -> list[str]:
    """Return the status as lines for people."""
    workers = [
        f"{each.id}  pool {each.pool}, {each.state}, {each.running} of {each.concurrency} running"
        for each in status.workers
    ]
    batches = [
        f"{each.id}  pool {each.pool}, {each.summary}"
        + (f", {each.stopped} stopped" if each.stopped else "")
        for each in status.batches
    ]
    return [*(workers or ["no worker"]), *(batches or ["no batch"])]
