# ruff: noqa: S608 - conditions are our own words
"""The batches and jobs of a fleet as rows: who has a job, and how it stands."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec
from psycopg.rows import TupleRow

from pegboard.errors import NotFoundError
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.jobs import Job
from pegboard_fleet.journal import JobResult, Settings
from pegboard_fleet.state import Attempt, BatchState

_PUT_BATCH = (
    "INSERT INTO fleet_batch(id, pool, settings, budget_usd) VALUES(%s, %s, %s, %s::numeric) "
    "ON CONFLICT(id) DO NOTHING"
)
_PUT_JOBS = (
    "INSERT INTO fleet_job(batch_id, id, attempt, data) "
    "SELECT %s, id, attempt, data FROM unnest(%s::text[], %s::int[], %s::bytea[]) "
    "AS j(id, attempt, data) ON CONFLICT DO NOTHING"
)
_BATCH = (
    "SELECT settings, budget_usd::float8, spent_usd::float8, held_usd::float8, pool "
    "FROM fleet_batch WHERE id = %s"
)
_COLUMNS = "data, attempt, round, begun, result"
_ATTEMPTS = f"SELECT {_COLUMNS} FROM fleet_job WHERE batch_id = %s ORDER BY ordinal"
_WHICH = "batch_id = %s AND id = %s AND attempt = %s"
# A worker that is lost has no job, although its rows still name it.
_TAKE = (
    f"UPDATE fleet_job AS j SET state = 'running', owner = %s WHERE {_WHICH} AND (state = 'queued' "
    "OR state = 'running' AND NOT EXISTS(SELECT 1 FROM fleet_worker AS w WHERE w.owner = j.owner "
    f"AND w.state IN ('working', 'draining') AND w.owner <> %s)) RETURNING {_COLUMNS}"
)
_OPEN = f"SELECT 1 FROM fleet_job WHERE {_WHICH} AND result IS NULL"
_MINE = f"{_WHICH} AND state = 'running' AND owner = %s"
_BEGUN = f"UPDATE fleet_job SET begun = %s WHERE {_MINE} RETURNING 1"
_AGAIN = f"UPDATE fleet_job SET begun = '{{}}', round = %s WHERE {_MINE} RETURNING 1"
_ENDED = f"UPDATE fleet_job SET state = %s, result = %s WHERE {_MINE} RETURNING 1"
_PAUSE = (
    "UPDATE fleet_batch SET begins_at = greatest(begins_at, clock_timestamp() + "
    "%s * interval '1 s') WHERE id = %s"
)
_PAUSED_S = (
    "SELECT extract(epoch FROM begins_at - clock_timestamp())::float8 FROM fleet_batch "
    "WHERE id = %s AND begins_at > clock_timestamp()"
)
_BATCHES = "SELECT id FROM fleet_batch ORDER BY created, id"
_QUEUED = (
    "SELECT id, attempt FROM fleet_job WHERE batch_id = %s AND state = 'queued' ORDER BY ordinal"
)


class JobKey(NamedTuple):
    """The name of an attempt: its batch, its job and its number."""

    batch: str
    id: str
    attempt: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the key that `str` wrote."""
        batch, id_, attempt = text.split("/")
        return cls(batch, id_, int(attempt))

    def __str__(self) -> str:
        return f"{self.batch}/{self.id}/{self.attempt}"


async def put_batch(
    database: FleetDatabase, batch: str, pool: str, settings: Settings, jobs: Sequence[Job]
) -> None:
    """Store a batch and its jobs; what is there already stays as it is."""
    encoded = msgspec.json.encode(settings)
    await database.run(_PUT_BATCH, batch, pool, encoded, settings.budget_usd)
    rows = [
        (job.id, number, msgspec.json.encode(job))
        for number in range(1, settings.repeat + 1)
        for job in jobs
    ]
    await database.run(_PUT_JOBS, batch, *map(list, zip(*rows, strict=True)))


async def queued_of(database: FleetDatabase, batch: str) -> tuple[JobKey, ...]:
    """Return the attempts of a batch that have not begun."""
    return tuple(JobKey(batch, *row) for row in await database.run(_QUEUED, batch))


async def batches_of(database: FleetDatabase) -> tuple[str, ...]:
    """Return the ids of all batches, the oldest first."""
    return tuple(id_ for (id_,) in await database.run(_BATCHES))


async def has_ended(database: FleetDatabase, key: JobKey) -> bool:
    """Return whether an attempt has a result, or is not there."""
    return not await database.run(_OPEN, *key)


async def state_of(database: FleetDatabase, batch: str) -> tuple[BatchState, str]:
    """Return the state of a batch, and its pool.

    :raises NotFoundError: when there is none.
    """
    state, pool = await _batch(database, batch)
    found = map(_attempt, await database.run(_ATTEMPTS, batch))
    state.attempts = {(each.job.id, each.number): each for each in found}
    return state, pool


async def _batch(database: FleetDatabase, batch: str) -> tuple[BatchState, str]:
    rows = await database.run(_BATCH, batch)
    if not rows:
        raise NotFoundError("batch", batch)
    ((encoded, budget, spent, held, pool),) = rows
    settings = msgspec.json.decode(encoded, type=Settings)
    settings = msgspec.structs.replace(settings, budget_usd=budget)
    state = BatchState(
        id=batch, settings=settings, attempts={}, paid_usd=spent, held={0: held} if held else {}
    )
    return state, pool


def _attempt(row: TupleRow) -> Attempt:
    data, number, round_, begun, result = row
    return Attempt(
        job=msgspec.json.decode(data, type=Job),
        number=number,
        round=round_,
        begun=list(begun),
        result=None if result is None else msgspec.json.decode(result, type=JobResult),
    )


class TakenJob:
    """An attempt that this worker runs; `owner` is the worker.

    Its changes answer whether the worker still has it: a worker that was taken for dead has lost
    its jobs to others.
    """

    def __init__(self, database: FleetDatabase, key: JobKey, owner: str, state: BatchState) -> None:
        self.database = database
        self.key = key
        self.owner = owner
        self.state = state

    @classmethod
    async def take(cls, database: FleetDatabase, key: JobKey, owner: str) -> Self | None:
        """Take a job that no living worker runs; None when it has ended or is taken."""
        rows = await database.run(_TAKE, owner, *key, owner)
        if not rows:
            return None
        state, _ = await _batch(database, key.batch)
        state.attempts = {(key.id, key.attempt): _attempt(rows[0])}
        return cls(database, key, owner, state)

    @property
    def attempt(self) -> Attempt:
        """The attempt as it stands."""
        return self.state.attempts[self.key.id, self.key.attempt]

    async def begin(self, begun: list[int]) -> bool:
        """Store how many steps the session had at each begin."""
        return bool(await self.database.run(_BEGUN, begun, *self.key, self.owner))

    async def again(self) -> bool:
        """Store that the attempt is made once more, in a new session, after the batch's pause."""
        await self.database.run(_PAUSE, self.state.settings.pause_s, self.key.batch)
        fresh = Attempt(
            job=self.attempt.job, number=self.attempt.number, round=self.attempt.round + 1
        )
        self.state.attempts[self.key.id, self.key.attempt] = fresh
        return bool(await self.database.run(_AGAIN, fresh.round, *self.key, self.owner))

    async def paused_s(self) -> float:
        """Return for how long no attempt of the batch begins."""
        rows = await self.database.run(_PAUSED_S, self.key.batch)
        return max((float(seconds) for (seconds,) in rows), default=0.0)

    async def end(self, result: JobResult) -> bool:
        """Store the result."""
        encoded = msgspec.json.encode(result)
        return bool(await self.database.run(_ENDED, result.status, encoded, *self.key, self.owner))
