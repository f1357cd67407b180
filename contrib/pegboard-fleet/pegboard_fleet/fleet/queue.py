"""The queues of a fleet's jobs, stored by DBOS.

A DBOS workflow is one attempt, and its only input is the attempt's key. The content of sessions
is in Pegboard's own tables.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, Serializer
from psycopg.conninfo import conninfo_to_dict

from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.jobs import JobKey

APPLICATION = "pegboard"
_WORKFLOW = "pegboard.job"
_VERSION = "1"
"""The version of workflows: a worker takes those of its own version only."""
_POLL_S = 0.25
_IDENTIFIER_CHARACTERS = 63
_CONNECTIONS = 4
_FOR_EVER_S = 10**9

Run = Callable[[JobKey], Awaitable[None]]


def queue_of(pool: str) -> str:
    """Return the DBOS name of a pool's queue."""
    return f"pegboard.{pool}"


def queue_schema(schema: str, role: str) -> str:
    """Return the name of the database schema with the job queues of the role `role`."""
    return f"{schema}_dbos_{role}"[:_IDENTIFIER_CHARACTERS]


def _engine(url: str) -> sqlalchemy.Engine:
    """Return an SQLAlchemy engine that connects with psycopg, so that all libpq parameters work."""
    arguments = {"connect_timeout": 10, "keepalives_idle": 5, **conninfo_to_dict(url)}
    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(**arguments),  # type: ignore[arg-type] # libpq's own names
        pool_size=_CONNECTIONS,
        max_overflow=_CONNECTIONS,
        pool_pre_ping=True,
    )


class JsonText(Serializer):  # type: ignore[misc] # its types are not there without DBOS
    """A DBOS serializer that stores JSON instead of pickles, which could run code."""

    def name(self) -> str:
        """Return the name of the serialization format."""
        return "json"

    def serialize(self, data: object) -> str:
        """Encode a DBOS value as JSON."""
        return json.dumps(data)

    def deserialize(self, serialized_data: str) -> object:
        """Decode a DBOS value from JSON."""
        return json.loads(serialized_data)


class Queue:
    """The job queues of a PostgreSQL role; a process may have only one `Queue` at a time."""

    def __init__(self, url: str, schema: str) -> None:
        self._engine = _engine(url)
        self._schema = schema

    @classmethod
    async def of(cls, database: FleetDatabase, url: str) -> "Queue":
        """Return the queues of the role that `database` connects as."""
        return cls(url, queue_schema(*await database.schema()))

    def _config(self, executor: str, *, migrates: bool) -> DBOSConfig:
        return {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "dbos_system_schema": self._schema,
            "executor_id": executor,
            "application_version": _VERSION,
            "serializer": JsonText(),
            "run_migrations": migrates,
            "log_level": "ERROR",
            "enable_otlp": False,
            "use_listen_notify": False,
        }

    async def migrate(self, role: str) -> None:
        """Create or update the tables of the job queues, and grant `role` access."""
        DBOS(config=self._config("init", migrates=True))
        try:
            await asyncio.to_thread(DBOS.launch)
        finally:
            await _destroy()
        await asyncio.to_thread(self._grant, role)

    def _grant(self, role: str) -> None:
        quoted = self._engine.dialect.identifier_preparer.quote
        schema, to = quoted(self._schema), quoted(role)
        with self._engine.begin() as db:
            for rights, what in (
                ("USAGE", f"SCHEMA {schema}"),
                ("SELECT, INSERT, UPDATE, DELETE", f"ALL TABLES IN SCHEMA {schema}"),
                ("USAGE, SELECT", f"ALL SEQUENCES IN SCHEMA {schema}"),
                ("EXECUTE", f"ALL FUNCTIONS IN SCHEMA {schema}"),
            ):
                db.execute(sqlalchemy.text(f"GRANT {rights} ON {what} TO {to}"))

    async def put(self, pool: str, keys: Iterable[JobKey]) -> None:
        """Queue attempts; an attempt that is queued already stays unchanged."""
        await asyncio.to_thread(self._put, pool, tuple(keys))

    def _put(self, pool: str, keys: tuple[JobKey, ...]) -> None:
        client = DBOSClient(
            system_database_engine=self._engine,
            dbos_system_schema=self._schema,
            serializer=JsonText(),
            application_name=APPLICATION,
        )
        try:
            for key in keys:
                client.enqueue(
                    {
                        "workflow_name": _WORKFLOW,
                        "queue_name": queue_of(pool),
                        "workflow_id": str(key),
                        "app_version": _VERSION,
                    },
                    str(key),
                )
        finally:
            client.destroy()

    async def work(self, executor: str, pool: str, concurrency: int, run: Run) -> None:
        """Take at most `concurrency` attempts at once from a pool's queue, and call `run` for each.

        The method returns after the start; the attempts run in the caller's event loop.
        """
        DBOS(config=self._config(executor, migrates=False))

        @DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)  # type: ignore[untyped-decorator] # as above
        async def job(key: str) -> None:
            await run(JobKey.of(key))

        DBOS.listen_queues([queue_of(pool)])
        DBOS.launch()  # in this thread, whose loop runs the workflows
        await DBOS.register_queue_async(
            queue_of(pool), worker_concurrency=concurrency, polling_interval_sec=_POLL_S
        )

    async def pending(self, pool: str) -> list[tuple[str, str]]:
        """Return the key of each attempt that a worker runs, with the id of this worker."""
        found = await DBOS.list_workflows_async(
            status="PENDING", queue_name=queue_of(pool), load_input=False, load_output=False
        )
        return [(each.workflow_id, each.executor_id or "") for each in found]

    async def put_back(self, pool: str, key: str) -> None:
        """Queue an unfinished attempt again, for a worker other than the one that runs it."""
        await DBOS.resume_workflow_async(key, queue_name=queue_of(pool))

    async def leave(self) -> None:
        """Stop taking attempts, and leave the running attempts unfinished in the queue."""
        await _destroy()

    async def drain(self) -> None:
        """Stop taking attempts, and return when the running attempts have ended."""
        await _destroy(_FOR_EVER_S)

    def check(self) -> str:
        """Return the error with which the queue tables cannot be read, or ""; blocks the thread."""
        try:
            with self._engine.connect() as db:
                quoted = self._engine.dialect.identifier_preparer.quote(self._schema)
                db.execute(sqlalchemy.text(f"TABLE {quoted}.workflow_status LIMIT 1"))
        except sqlalchemy.exc.DBAPIError as error:
            return str(error.orig).splitlines()[0]
        return ""

    async def aclose(self) -> None:
        """Close the database connections."""
        await asyncio.to_thread(self._engine.dispose)


async def _destroy(wait_s: int = 0) -> None:
    """Shut DBOS down, and give the event loop a new thread pool to replace the pool of DBOS."""
    threads = ThreadPoolExecutor()
    await asyncio.get_running_loop().run_in_executor(
        threads, partial(DBOS.destroy, workflow_completion_timeout_sec=wait_s)
    )
    asyncio.get_running_loop().set_default_executor(threads)
