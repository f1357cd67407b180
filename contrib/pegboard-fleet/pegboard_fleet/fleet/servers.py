# ruff: noqa: S608 - conditions are our own words
"""The registry of a fleet's servers: which server runs which session, by their database leases."""

from typing import Any

from pegboard_postgres.storage import PostgresStorage
from pegboard_postgres.workers import ALIVE

from pegboard import App
from pegboard.errors import ConfigError
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.options import VARIABLE
from pegboard_plugins.server import FleetServer

_PUT = (
    "INSERT INTO fleet_server(owner, server, host, url) VALUES(%s, %s, %s, %s) "
    "ON CONFLICT(owner) DO NOTHING"
)
# One that was stopped and wakes up has its row of `worker` again.
_FORGET = "DELETE FROM fleet_server WHERE NOT EXISTS(SELECT 1 FROM worker WHERE id = owner)"
_IS_WORKER = "EXISTS(SELECT 1 FROM fleet_worker AS w WHERE w.owner = fleet_server.owner)"
_OTHERS = (
    f"SELECT DISTINCT server, host, url, {_IS_WORKER} FROM fleet_server "
    f"WHERE server <> %s AND EXISTS({ALIVE})"
)
_OWNER = f"{_OTHERS} AND owner = (SELECT owner FROM session WHERE id = %s)"
_LEAVE = "DELETE FROM fleet_server WHERE server = %s"


async def put_server(database: FleetDatabase, owner: str, server: FleetServer) -> None:
    """Store that the sessions of the process `owner` run on `server`."""
    await database.run(_PUT, owner, server.id, server.host, server.url)


class ServerMembership:
    """The membership of a server in a fleet, from `begin` to `aclose`.

    The methods are those of `FleetMembership`. `storage` keeps the lease of the server, even while
    none of its Apps is open.
    """

    def __init__(
        self, database: FleetDatabase, storage: PostgresStorage, server: FleetServer
    ) -> None:
        self._database = database
        self._storage = storage
        self._server = server

    async def begin(self) -> None:
        """Register this server, so that the fleet's other servers find it.

        :raises StorageError: when the database cannot be used.
        """
        await self._database.run(_FORGET)
        await put_server(self._database, self._storage.own, self._server)

    async def add(self, app: App) -> None:
        """Record that the sessions of this App run on this server.

        :raises ConfigError: when the App's sessions are not stored in PostgreSQL.
        """
        if not isinstance(app.storage, PostgresStorage):
            raise ConfigError(
                f"the sessions of {app.workspace.directory} are not in PostgreSQL, which the "
                f"servers of a fleet share; set {VARIABLE}",
                key=VARIABLE,
            )
        await put_server(self._database, app.storage.own, self._server)

    async def owner(self, session_id: str) -> FleetServer | None:
        """Return the other living server that runs the session, or None if no other server does."""
        rows = await self._database.run(_OWNER, self._server.id, session_id)
        return next(map(_server_of, rows), None)

    async def others(self) -> tuple[FleetServer, ...]:
        """Return all living servers except this one."""
        rows = await self._database.run(_OTHERS, self._server.id)
        return tuple(map(_server_of, rows))

    async def aclose(self) -> None:
        """Remove this server from the fleet, and close the database connections."""
        async with self._database:
            try:
                await self._database.run(_LEAVE, self._server.id)
            finally:
                await self._storage.aclose()


def _server_of(row: tuple[Any, ...]) -> FleetServer:
    id_, host, url, is_worker = row
    return FleetServer(id=id_, host=host, url=url, is_worker=is_worker)
