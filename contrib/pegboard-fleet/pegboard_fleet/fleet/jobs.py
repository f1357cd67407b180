# ruff: noqa: S608 - conditions are our own words
"""A fleet's batches and jobs as database rows, with the worker and the state of each job."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec
from psycopg.rows import TupleRow

from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.schema.model import format_usd
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.jobs import Job
from pegboard_fleet.journal import JobResult, Settings, Status
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
_WHICH = "batch_id = %s AND id = %s AND attempt = %s AND delivery = %s"
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
    "SELECT id, attempt, delivery FROM fleet_job WHERE batch_id = %s AND state = 'queued' "
    "ORDER BY ordinal"
)
_ACTIVE = "batch_id = %s AND state IN ('queued', 'running')"
_IS_ACTIVE = f"SELECT 1 FROM fleet_job WHERE {_ACTIVE} LIMIT 1"
_STOP = (
    "UPDATE fleet_job SET state = 'stopped', owner = NULL, delivery = delivery + 1 "
    f"WHERE {_ACTIVE} AND (cardinality(%s::text[]) = 0 OR id = ANY(%s::text[])) RETURNING id"
)
_KNOWN = "SELECT DISTINCT id FROM fleet_job WHERE batch_id = %s"
_GO_ON = "UPDATE fleet_job SET state = 'queued' WHERE batch_id = %s AND state = 'stopped'"
_RETRY = (
    "UPDATE fleet_job SET state = 'queued', owner = NULL, result = NULL, begun = '{}', "
    "round = round + 1, delivery = delivery + 1 WHERE batch_id = %s AND state = ANY(%s::text[])"
)
_RAISE = (
    "UPDATE fleet_batch SET budget_usd = %s::numeric WHERE id = %s "
    "AND spent_usd + held_usd <= %s::numeric RETURNING 1"
)
_WITHDRAWN = (
    "SELECT k.* FROM unnest(%s::text[], %s::text[], %s::int[], %s::int[]) "
    "AS k(batch_id, id, attempt, delivery) WHERE NOT EXISTS(SELECT 1 FROM fleet_job AS j WHERE "
    "(j.batch_id, j.id, j.attempt, j.delivery) = (k.batch_id, k.id, k.attempt, k.delivery))"
)


class JobKey(NamedTuple):
    """The key of a queued attempt: its batch, its job, its number, and its delivery number.

    The delivery number distinguishes the deliveries of an attempt: a command that stops or repeats
    the attempt increases it. The queue then takes the attempt for a new one, and a worker with the
    earlier key can no longer change it.
    """

    batch: str
    id: str
    attempt: int
    delivery: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse the string that `str(key)` returned."""
        batch, id_, attempt, delivery = text.split("/")
        return cls(batch, id_, int(attempt), int(delivery))

    def __str__(self) -> str:
        return f"{self.batch}/{self.id}/{self.attempt}/{self.delivery}"


async def put_batch(
    database: FleetDatabase, batch: str, pool: str, settings: Settings, jobs: Sequence[Job]
) -> None:
    """Store a batch and the batch's jobs; rows that exist already stay unchanged."""
    encoded = msgspec.json.encode(settings)
    await database.run(_PUT_BATCH, batch, pool, encoded, settings.budget_usd)
    rows = [
        (job.id, number, msgspec.json.encode(job))
        for number in range(1, settings.repeat + 1)
        for job in jobs
    ]
    await database.run(_PUT_JOBS, batch, *map(list, zip(*rows, strict=True)))


async def queued_of(database: FleetDatabase, batch: str) -> tuple[JobKey, ...]:
    """Return the keys of a batch's queued attempts."""
    return tuple(JobKey(batch, *row) for row in await database.run(_QUEUED, batch))


async def batches_of(database: FleetDatabase) -> tuple[str, ...]:
    """Return the ids of all batches, the oldest first."""
    return tuple(id_ for (id_,) in await database.run(_BATCHES))


async def has_ended(database: FleetDatabase, key: JobKey) -> bool:
    """Return whether the attempt has a result, was withdrawn by a command, or does not exist."""
    return not await database.run(_OPEN, *key)


async def withdrawn_of(database: FleetDatabase, keys: Sequence[JobKey]) -> tuple[JobKey, ...]:
    """Return the keys of attempts that a command has stopped or repeated meanwhile."""
    columns = map(list, zip(*keys, strict=True))
    return tuple(JobKey(*row) for row in await database.run(_WITHDRAWN, *columns))


async def is_active(database: FleetDatabase, batch: str) -> bool:
    """Return whether any attempt of a batch is queued or running."""
    return bool(await database.run(_IS_ACTIVE, batch))


async def stop_jobs(database: FleetDatabase, batch: str, ids: Sequence[str]) -> int:
    """Stop the queued and running attempts of a batch; return how many were stopped.

    `ids` limits the command to some jobs; if it is empty, all jobs are stopped.

    :raises NotFoundError: when the batch or a job does not exist.
    """
    known = {id_ for (id_,) in await database.run(_KNOWN, batch)}
    if not known:
        raise NotFoundError("batch", batch)
    for id_ in ids:
        if id_ not in known:
            raise NotFoundError("job", id_)
    return len(await database.run(_STOP, batch, list(ids), list(ids)))


async def go_on(
    database: FleetDatabase, batch: str, *, budget_usd: float | None, retry: frozenset[Status]
) -> None:
    """Queue stopped attempts again, and repeat attempts that ended with a status in `retry`.

    A repeated attempt has a new session. A higher budget also repeats the attempts that ended
    because the budget was spent.

    :raises NotFoundError: when the batch does not exist.
    :raises InvalidInputError: for a budget that is already spent.
    """
    state, _ = await _batch(database, batch)
    if budget_usd is not None:
        if not await database.run(_RAISE, budget_usd, batch, budget_usd):
            spent = format_usd(state.paid_usd + state.lost_usd)
            raise InvalidInputError(f"--budget-usd {budget_usd:g}: {spent} are spent already")
        retry |= {"stopped_budget"}
    await database.run(_GO_ON, batch)
    await database.run(_RETRY, batch, list(retry))


async def state_of(database: FleetDatabase, batch: str) -> tuple[BatchState, str]:
    """Return the state of a batch, and the name of its pool.

    :raises NotFoundError: when the batch does not exist.
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
    """An attempt that this worker runs; `owner` is the id of the worker.

    The methods that store a change return whether the worker still owns the attempt. If the fleet
    declared the worker dead, other workers run its jobs.
    """

    def __init__(self, database: FleetDatabase, key: JobKey, owner: str, state: BatchState) -> None:
        self.database = database
        self.key = key
        self.owner = owner
        self.state = state

    @classmethod
    async def take(cls, database: FleetDatabase, key: JobKey, owner: str) -> Self | None:
        """Claim an attempt for a worker; None if it has ended or another living worker runs it."""
        rows = await database.run(_TAKE, owner, *key, owner)
        if not rows:
            return None
        state, _ = await _batch(database, key.batch)
        state.attempts = {(key.id, key.attempt): _attempt(rows[0])}
        return cls(database, key, owner, state)

    @property
    def attempt(self) -> Attempt:
        """The current state of the attempt."""
        return self.state.attempts[self.key.id, self.key.attempt]

    async def begin(self, begun: list[int]) -> bool:
        """Store `begun`, the session's number of model steps at each start of the attempt."""
        return bool(await self.database.run(_BEGUN, begun, *self.key, self.owner))

    async def again(self) -> bool:
        """Pause the batch, and store that the attempt will be repeated in a new session."""
        await self.database.run(_PAUSE, self.state.settings.pause_s, self.key.batch)
        fresh = Attempt(
            job=self.attempt.job, number=self.attempt.number, round=self.attempt.round + 1
        )
        self.state.attempts[self.key.id, self.key.attempt] = fresh
        return bool(await self.database.run(_AGAIN, fresh.round, *self.key, self.owner))

    async def paused_s(self) -> float:
        """Return how many seconds the batch still pauses before attempts may start."""
        rows = await self.database.run(_PAUSED_S, self.key.batch)
        return max((float(seconds) for (seconds,) in rows), default=0.0)

    async def end(self, result: JobResult) -> bool:
        """Store the result of the attempt; return whether the worker still owns the attempt."""
        encoded = msgspec.json.encode(result)
        return bool(await self.database.run(_ENDED, result.status, encoded, *self.key, self.owner))
