"""The database of a fleet: its address, its tables and its queries."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files

from pegboard_postgres.connections import Address, Connection, Readers, until_reached
from pegboard_postgres.migrations import migrate
from pegboard_postgres.workers import LEASE_S
from psycopg import Error
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import TupleRow

from pegboard.errors import ConfigError, StorageError
from pegboard_fleet.fleet.options import VARIABLE

REACHED_WITHIN_S = 30.0
"""How long a statement waits for a server that restarts."""
_FILES = ("schema.sql", "schema2.sql")
_KEY = "fleet_version"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('pegboard fleet ' || current_schema(), 0))"
_SHORT = f"SET LOCAL idle_in_transaction_session_timeout = '{LEASE_S:g}s'"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s || current_schema(), 0))"
_HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'meta'"
_VERSION = "SELECT value FROM meta WHERE key = %s"
_PUT = (
    "INSERT INTO meta(key, value) VALUES(%s, %s) "
    "ON CONFLICT(key) DO UPDATE SET value = excluded.value"
)


def database_url(env: Mapping[str, str]) -> str:
    """Return the URL of the fleet's database.

    :raises ConfigError: when the environment names no database, or no PostgreSQL database.
    """
    url = env.get(VARIABLE, "")
    if not url.startswith(("postgresql://", "postgres://")):
        wrong = f"is {url}" if url else "is not set"
        raise ConfigError(
            f"{VARIABLE} {wrong}, and a fleet needs PostgreSQL; set it to "
            "postgresql://user@host/database?passfile=/path/to/the/password, or name a file that "
            "has this in plugins.fleet.options.database_file",
            key=VARIABLE,
        )
    return url


class SweepLock:
    """The lock of the worker that queues the jobs of a pool's dead workers again.

    PostgreSQL releases the lock if its worker is idle.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db

    async def renew(self) -> None:
        """Keep the lock on sweeping the queue, by resetting PostgreSQL's idle timeout.

        :raises psycopg.Error: when the server has released the lock.
        """
        await self._db.execute("SELECT 1")


class FleetDatabase:
    """The PostgreSQL database of a fleet; statements are retried while the server restarts."""

    def __init__(self, url: str) -> None:
        self.address = Address(url)
        self._connections = Readers(self.address)

    async def __aenter__(self) -> "FleetDatabase":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.aclose()

    async def run(
        self, statement: str, *values: object, within_s: float = REACHED_WITHIN_S
    ) -> list[TupleRow]:
        """Run a statement, which must be safe to repeat, and return its rows.

        :raises StorageError: when the statement fails, or the server is unreachable for `within_s`.
        """

        async def work() -> list[TupleRow]:
            async with self._connections.one() as db:
                cursor = await db.execute(statement.encode(), values)
                return await cursor.fetchall() if cursor.description else []

        try:
            return await until_reached(work, within_s=within_s)
        except Error as error:
            raise self.address.failure(error) from error

    async def schema(self) -> tuple[str, str]:
        """Return the names of the current schema and of the connected role."""
        ((schema, role),) = await self.run("SELECT current_schema(), current_user")
        return schema, role

    async def version(self) -> int:
        """Return the version of the fleet's tables, or 0 if there are no tables."""
        if not await self.run(_HAS_TABLES):
            return 0
        return next((int(value) for (value,) in await self.run(_VERSION, _KEY)), 0)

    @asynccontextmanager
    async def alone(self, pool: str) -> AsyncIterator[SweepLock | None]:
        """Yield the lock to queue dead workers' jobs again; None if another worker has it.

        A worker that is stopped loses the lock after its lease time.

        :raises psycopg.Error: when the server is unreachable, or has released the lock.
        """
        async with self._connections.one() as db, db.transaction():
            await db.execute(_SHORT)
            row = await (await db.execute(_TRY_LOCK, (f"pegboard fleet sweep {pool}",))).fetchone()
            yield SweepLock(db) if row == (True,) else None

    async def require_tables(self) -> None:
        """Check that the tables have the version that this Pegboard needs.

        :raises StorageError: when the tables have another version.
        """
        if (version := await self.version()) != len(_FILES):
            way = "run `pegboard fleet init` as the role that owns the tables"
            if version > len(_FILES):
                way = "update pegboard-fleet"
            raise StorageError(
                f"the fleet's tables in {self.address.place} have version {version}, this Pegboard "
                f"needs {len(_FILES)}; {way}"
            )

    async def migrate(self) -> None:
        """Create the tables of sessions and of the fleet, or update them to this version.

        :raises StorageError: when the role lacks the rights, or a later version made the tables.
        """
        try:
            db = await self.address.connect()
            async with db:
                await migrate(db)
                await _migrate(db)
        except InsufficientPrivilege as error:
            raise StorageError(
                f"cannot make the fleet's tables in {self.address.place}: "
                f"{error.diag.message_primary}; use the role that owns the tables"
            ) from error
        except Error as error:
            raise self.address.failure(error, "migrate") from error
        await self.require_tables()


async def _migrate(db: Connection) -> None:
    async with db.transaction():
        await db.execute(_LOCK)  # others wait, and find it done
        row = await (await db.execute(_VERSION, (_KEY,))).fetchone()
        for name in _FILES[int(row[0]) if row else 0 :]:
            await db.execute((files(__package__) / name).read_bytes())
            await db.execute(_PUT, (_KEY, len(_FILES)))
