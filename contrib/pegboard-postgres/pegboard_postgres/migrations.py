"""The migrations: numbered SQL files that create and update the tables of the storage."""

from importlib.resources import files

from psycopg.errors import InsufficientPrivilege

from pegboard.errors import StorageError
from pegboard_postgres.connections import Connection

_FILES = ("schema.sql",)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('pegboard ' || current_schema(), 0))"
# `to_regclass` would answer from before the wait for the lock.
_HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'meta'"
_VERSION = "SELECT value FROM meta WHERE key = 'schema_version'"
_PUT = (
    "INSERT INTO meta(key, value) VALUES('schema_version', %s) "
    "ON CONFLICT(key) DO UPDATE SET value = excluded.value"
)
_BASE = "SELECT value FROM meta WHERE key = 'seq_base'"


async def migrate(db: Connection) -> int:
    """Create or update the tables; return the base for event numbers.

    An event's number is derived from the number of its transaction plus this base.

    :raises StorageError: when a later Pegboard made the tables, or the role may not change them.
    """
    version = await _version(db)
    if version < len(_FILES):
        try:
            await _migrate(db)
        except InsufficientPrivilege as error:
            raise StorageError(
                f"the tables of the database have version {version}, this Pegboard needs "
                f"{len(_FILES)}, and the role may not change them ({error.diag.message_primary}); "
                "open the database once as the role that owns the tables: pegboard session list"
            ) from error
    elif version > len(_FILES):
        raise StorageError(
            f"the tables of the database have version {version}, this Pegboard knows "
            f"{len(_FILES)}; update pegboard-postgres"
        )
    row = await (await db.execute(_BASE)).fetchone()
    return int(row[0]) if row else 0


async def _version(db: Connection) -> int:
    if await (await db.execute(_HAS_TABLES)).fetchone() is None:
        return 0
    row = await (await db.execute(_VERSION)).fetchone()
    return int(row[0]) if row else 0


async def _migrate(db: Connection) -> None:
    async with db.transaction():
        await db.execute(_LOCK)  # others that open the database wait, and find it done
        for name in _FILES[await _version(db) :]:
            await db.execute((files(__package__) / name).read_bytes())
        await db.execute(_PUT, (len(_FILES),))
