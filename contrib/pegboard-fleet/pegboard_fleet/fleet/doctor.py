"""The diagnosis of a fleet: its problems, each with a fix."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from pegboard.errors import PegboardError
from pegboard_fleet.checkpoints import check_remote
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.queue import Queue, queue_schema

_CONNECTIONS = 18
"""The most connections of a worker: 6 of the sessions, 4 of the fleet, 8 of DBOS."""
_SETTINGS = (
    "SELECT current_setting('synchronous_commit'), current_setting('max_connections')::int, "
    "(SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async'), "
    "(SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user), "
    "(SELECT count(*) FROM fleet_worker WHERE state IN ('working', 'draining'))"
)
_WAITING = (
    "SELECT b.pool, count(*) FROM fleet_job AS j JOIN fleet_batch AS b ON b.id = j.batch_id "
    "WHERE j.state IN ('queued', 'running') AND NOT EXISTS(SELECT 1 FROM fleet_worker AS w "
    "WHERE w.pool = b.pool AND w.state = 'working') GROUP BY b.pool ORDER BY b.pool"
)


async def problems_of(url: str, remote: str) -> AsyncIterator[str]:
    """Yield the problems of the fleet; a check that depends on a failed check is skipped."""
    try:
        database = FleetDatabase(url)
        async with database:
            await database.run("SELECT 1", within_s=0)
            await database.require_tables()
            async for each in _database_problems(database):
                yield each
            async for each in _queue_problems(database, url):
                yield each
    except PegboardError as error:
        yield str(error)
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        if reason := await check_remote(remote, Path(folder)):
            yield (
                f"nothing can be pushed to the repository {remote}: {reason}; make it with "
                "`git init --bare`, and let this user push to it"
            )


async def _database_problems(database: FleetDatabase) -> AsyncIterator[str]:
    ((commit, most, replicas, sees_all, workers),) = await database.run(_SETTINGS)
    if commit in ("off", "local"):
        yield (
            f"synchronous_commit is {commit}, so a crash loses what was acknowledged; "
            "ALTER DATABASE ... SET synchronous_commit = on"
        )
    if replicas:
        yield (
            f"{replicas} replicas are asynchronous, so a failover loses what was acknowledged; "
            "name them in synchronous_standby_names"
        )
    if sees_all:
        yield (
            "the role sees the rows of all tenants (SUPERUSER or BYPASSRLS); "
            "let workers connect as a role of their own"
        )
    if (workers + 1) * _CONNECTIONS > most:
        yield (
            f"max_connections is {most}, and {workers} workers may need {workers * _CONNECTIONS}; "
            "raise it, or run fewer workers with more --concurrency"
        )
    for pool, number in await database.run(_WAITING):
        yield (
            f"{number} jobs wait in the pool {pool}, where no worker works; run "
            f"`pegboard fleet worker --pool {pool} --remote REPOSITORY`"
        )


async def _queue_problems(database: FleetDatabase, url: str) -> AsyncIterator[str]:
    schema, role = await database.schema()
    queue = await Queue.of(database, url)
    try:
        if reason := await asyncio.to_thread(queue.check):
            yield (
                f"the queues in the schema {queue_schema(schema, role)} cannot be used: {reason}; "
                f"run `pegboard fleet init --role {role}` as the role that owns the tables"
            )
    finally:
        await queue.aclose()
