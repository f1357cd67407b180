"""Database connections, and the translation of psycopg errors into Pegboard's errors."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psycopg
from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation
from psycopg.rows import TupleRow

from pegboard.errors import ConfigError, InvalidInputError, NotFoundError, StorageError

Connection = AsyncConnection[TupleRow]
AGAIN = (DeadlockDetected, SerializationFailure)
"""The errors of a transaction that may succeed when it is repeated."""

# Shutdown, crash, start; a class of its own for connections (PostgreSQL, appendix A).
_AWAY = ("57P01", "57P02", "57P03")
_CONNECTION = "08"
_NOT_FOUND, _OTHER_MESSAGE = "PB404", "PB422"
_RETRY_S = 0.1
_READERS = 4
# A cable that is cut is noticed in 11 s; without these, in hours.
_KEEPALIVE: dict[str, str | int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 10,
    "application_name": "pegboard",
}
_OPTIONS = "-c statement_timeout=60s -c idle_in_transaction_session_timeout=60s"

_Value = TypeVar("_Value")


class Address:
    """The address of a database, without a password; `place` is the address in error messages."""

    def __init__(self, url: str) -> None:
        try:
            found = conninfo_to_dict(url)
        except Error as error:
            raise ConfigError(f"PEGBOARD_DATABASE is not a URI of PostgreSQL: {error}") from error
        if "password" in found or "PGPASSWORD" in os.environ:
            raise ConfigError(
                "the environment has the password of the database, in PEGBOARD_DATABASE or "
                "PGPASSWORD, where the processes of tools can read it; put it into a file with "
                "mode 0600, and name that: PEGBOARD_DATABASE=postgresql://.../?passfile=/path/to/it"
            )
        options = f"{_OPTIONS} {found.get('options', '')}".strip()
        host, name = found.get("host", "local"), found.get("dbname", found.get("service", ""))
        self.place = f"postgresql://{host}/{name}"
        absent = {name: value for name, value in _KEEPALIVE.items() if name not in found}
        self._info = make_conninfo(make_conninfo(url, **absent), options=options)

    async def connect(self) -> Connection:
        """Open a connection in autocommit mode."""
        found = await AsyncConnection.connect(self._info, autocommit=True)
        found.prepare_threshold = 1
        return found

    def connect_blocking(self) -> psycopg.Connection[TupleRow]:
        """Open a blocking connection in autocommit mode, for use in a thread."""
        return psycopg.connect(self._info, autocommit=True)

    def failure(self, error: Error, doing: str = "use") -> StorageError:
        """Translate a psycopg error to a StorageError, "cannot DOING the database"."""
        reason = " ".join(str(error).split())
        return StorageError(
            f"cannot {doing} the database {self.place}: {reason}; see whether the server runs and "
            "lets this user in"
        )


async def until_reached(attempt: Callable[[], Awaitable[_Value]], *, within_s: float) -> _Value:
    """Call `attempt` until the server is reachable, and return the attempt's result.

    :raises psycopg.Error: from the last attempt after `within_s`, or for any other database error.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + within_s
    while True:
        try:
            return await attempt()
        except (OperationalError, InterfaceError) as error:
            state = error.sqlstate
            is_away = state is None or state in _AWAY or state.startswith(_CONNECTION)
            if not is_away or clock() > end:
                raise
        await asyncio.sleep(_RETRY_S)


class Readers:
    """A pool of connections for queries, which opens connections on demand, up to a limit."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(_READERS)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Borrow a connection from the pool; close it if the `async with` block raises."""
        async with self._free:
            db = self._idle.pop() if self._idle else await self._address.connect()
            try:
                yield db
            except BaseException:
                await db.close()  # perhaps in the middle of a transaction, or lost
                raise
            self._idle.append(db)

    async def aclose(self) -> None:
        """Close the pool's idle connections."""
        while self._idle:
            await self._idle.pop().close()


def refusal_of(error: Error) -> NotFoundError | InvalidInputError | None:
    """Return Pegboard's error for a change that the database rejects; None for other errors."""
    detail = error.diag.message_detail or ""
    message = error.diag.message_primary or ""
    if error.sqlstate == _NOT_FOUND:
        return NotFoundError(message, detail)
    if error.sqlstate == _OTHER_MESSAGE:
        return InvalidInputError(f"part {detail} belongs to message {message} already")
    if isinstance(error, UniqueViolation):
        return InvalidInputError(f"another process has stored the same: {detail}")
    if isinstance(error, DataError):
        return InvalidInputError(f"cannot be stored: {error}")
    return None
